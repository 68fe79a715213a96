"""Tables → the data set's card: a README whose head tells the Hugging Face hub what loads how."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from string import Template
from typing import Any

import pyarrow.parquet as pq

from atenbench import changes_report, query
from atenbench.atomic import replacing
from atenbench.mapping import MAPPING
from atenbench.problem import PROBLEM
from atenbench.record import field_table
from atenbench.summary import summarized

TEMPLATE = Path(__file__).with_suffix(".md")

_WORDS = {
    "lines": "trace lines",
    "pairs": "problems",
    "operators": "operators",
    "models": "models",
    "synthetic": "synthetic problems",
    "runnable": "runnable",
    "included": "in the benchmark",
    "measured": "measured",
    "overhead_dominated": "overhead-dominated",
}


def write_card(
    sql: Path,
    tables: Mapping[str, query.Source],
    overhead_threshold: float,
    output: Path,
    changes: tuple[str, Path] | None = None,
) -> None:
    """Write the card.

    Args:
        sql: the file ``summary.sql``.
        tables: ``problems``, ``calls`` and ``rejects``.
        overhead_threshold: what was taken for it.
        output: the card.
        changes: the earlier release that this one was compared with, and ``changes.parquet``.
    """
    said = query.file_metadata(str(tables["problems"]))
    since = "" if changes is None else _changes(*changes)
    text = card(summarized(sql, tables), said, overhead_threshold, since)
    with replacing(output) as part:
        part.write_text(text, encoding="utf-8")


def _changes(previous: str, table: Path) -> str:
    """The differences to an earlier release, as a section of the card."""
    found = changes_report.summary(pq.read_table(table).to_pylist())
    return f"\n## Changes since {_plain(previous)}\n\n{found}\n\n`changes.md` lists them.\n"


def card(
    summary: Mapping[str, Any],
    said: Mapping[str, str],
    overhead_threshold: float,
    changes: str = "",
) -> str:
    """The text of the card, from the summary and the metadata of the problems' file."""
    device = said.get("device", "off")
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        size=_size(summary["pairs"]),
        models=f"{summary['models']:,}",
        pairs=f"{summary['pairs']:,}",
        counts=_lines((words, f"{summary[name]:,}") for name, words in _WORDS.items()),
        reasons=_lines((reason, f"{n:,}") for reason, n in summary["by_reason"].items()),
        suites=_lines(
            (suite, f"{has['models']:,}", f"{has['problems']:,}")
            for suite, has in summary["by_suite"].items()
        ),
        device="Nothing was measured" if device == "off" else f"Measured on {_plain(device)}",
        threshold=f"{overhead_threshold:g}",
        changes=changes,
        problem_fields=field_table(PROBLEM),
        mapping_fields=field_table(MAPPING),
        provenance=_lines(said.items()),
    )


def _lines(rows: Iterable[Iterable[str]]) -> str:
    return "\n".join(f"| {' | '.join(map(_plain, row))} |" for row in rows)


def _plain(text: str) -> str:
    """Text of the traces' (a suite's name) as it is: no markup, no HTML, no cell of its own."""
    return re.sub(r"([\\`*_<>|\[\]!#&])", r"\\\1", text)


def _size(rows: int) -> str:
    """The hub's word for so many rows."""
    for most, word in ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K")):
        if rows < most:
            return word
    return "100K<n<1M" if rows < 1_000_000 else "1M<n<10M"
