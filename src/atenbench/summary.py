"""Tables → what a run came to: ``summary.json``, and the same in words for the terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from atenbench import query
from atenbench.atomic import replacing
from atenbench.words import many

COUNTS = (
    *("lines", "rejected", "pairs", "operators", "models", "synthetic", "runnable", "included"),
    *("measured", "overhead_dominated"),
)


def summarized(sql: Path, tables: Mapping[str, query.Source]) -> dict[str, Any]:
    """The counts, and by reason and by suite.

    Args:
        sql: the file ``summary.sql``.
        tables: ``problems``, ``calls`` and ``rejects``.
    """
    (row,) = query.fetch(sql, tables).to_pylist()
    counts = {name: row[name] for name in COUNTS}
    reasons = {each["reason"]: each["problems"] for each in row["reasons"] or []}
    suites = {each.pop("suite"): each for each in row["suites"] or []}
    return {**counts, "by_reason": reasons, "by_suite": suites}


def write_summary(summary: Mapping[str, Any], output: Path) -> None:
    """Write it as JSON."""
    with replacing(output) as part:
        part.write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def in_words(summary: Mapping[str, Any]) -> str:
    """A few lines for the terminal."""
    lines = [
        f"{many(summary['lines'], 'trace line')}, {many(summary['pairs'], 'problem')} of "
        f"{many(summary['operators'], 'operator')}, called by {many(summary['models'], 'model')}.",
        f"In the benchmark {summary['included']:,}, runnable {summary['runnable']:,}.",
        *(f"  left out {left:,}: {reason}" for reason, left in summary["by_reason"].items()),
        f"Measured {summary['measured']:,}, of these launch overhead "
        f"{summary['overhead_dominated']:,}.",
    ]
    slowest = sorted(summary["seconds_by_rule"].items(), key=lambda item: -item[1])
    if slowest:
        spent = ", ".join(f"{rule} {seconds:,.1f} s" for rule, seconds in slowest)
        lines.append(f"Time of each rule's last run: {spent}.")
    if summary["rejected"]:
        lines.append(rejected_sentence(summary["rejected"]))
    return "\n".join(lines)


def rejected_sentence(rejected: int) -> str:
    """What is said of trace lines that could not be read."""
    return f"{rejected} trace lines could not be read; they are in results/rejects.parquet."
