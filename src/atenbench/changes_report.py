"""``changes.parquet`` → ``changes.md``: the changes since a release, by operator and by model."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from tabulate import tabulate

from atenbench.atomic import replacing
from atenbench.changes import KINDS, Devices

Row = Mapping[str, Any]

_HEADINGS = {
    "added": "Added",
    "removed": "Removed",
    "retagged": "Re-tagged",
    "recounted": "Counts changed",
    "retimed": "Runtimes changed",
    "overhead": "Overhead-dominated or not any more",
}
_SHOWN = 20  # runtimes that are listed one by one


def write_report(changes: Path, previous: str, devices: Devices, report: Path) -> None:
    """Write the report on a table of changes since the release that ``previous`` names."""
    text = render(pq.read_table(changes).to_pylist(), previous, devices)
    with replacing(report) as part:
        part.write_text(text, encoding="utf-8")


def render(rows: list[Row], previous: str, devices: Devices) -> str:
    """The report as Markdown."""
    by_kind = {kind: [row for row in rows if row["kind"] == kind] for kind in KINDS}
    parts = [f"# Changes since {previous}", summary(rows), _on_devices(devices)]
    sections: dict[str, Callable[[list[Row]], Iterable[str]]] = {
        "added": _by_operator,
        "removed": _by_operator,
        "retagged": _retagged,
        "recounted": _recounted,
        "retimed": _retimed,
        "overhead": _overhead,
    }
    for kind, section in sections.items():
        if by_kind[kind]:
            parts += [f"## {_HEADINGS[kind]}", *section(by_kind[kind])]
    if rows:
        parts += ["## By model", _by_model(rows)]
    parts.append("Every problem that changed is in `changes.parquet`, one row for each change.")
    return "\n\n".join(parts) + "\n"


def summary(rows: Iterable[Row]) -> str:
    """How many problems and operators changed in each way, as a Markdown table."""
    problems: Counter[str] = Counter()
    operators: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        problems[row["kind"]] += 1
        operators[row["kind"]].add(row["op_name"])
    found = [
        [_HEADINGS[kind], problems[kind], len(operators[kind])] for kind in KINDS if problems[kind]
    ]
    if not found:
        return "No problem has changed."
    return _table(found, ["change", "problems", "operators"])


def _on_devices(devices: Devices) -> str:
    if devices.comparable:
        return f"Runtimes are compared on {'; '.join(devices.current)}."
    if not devices.previous:
        return "Runtimes are not compared: no details of the earlier release's measurements."
    if not devices.current:
        return "Runtimes are not compared: nothing was measured for this release."
    was, now = "; ".join(devices.previous), "; ".join(devices.current)
    return f"Runtimes are not compared: the earlier release was measured on {was}, this on {now}."


def _by_operator(rows: list[Row]) -> Iterator[str]:
    found = [
        [f"`{name}`", len(group), _total(group, "previous_count") + _total(group, "count")]
        for name, group in _grouped(rows, lambda row: row["op_name"])
    ]
    yield _table(found, ["operator", "problems", "calls"])


def _retagged(rows: list[Row]) -> Iterator[str]:
    def tags(row: Row) -> tuple[str, str, str]:
        return row["op_name"], _tag(row, "previous_"), _tag(row, "")

    found = [
        [f"`{name}`", len(group), was, now] for (name, was, now), group in _grouped(rows, tags)
    ]
    yield _table(found, ["operator", "problems", "was", "is"])


def _tag(row: Row, prefix: str) -> str:
    if row[f"{prefix}included"]:
        tag = "included"
    else:
        tag = "; ".join(row[f"{prefix}why_excluded"] or []) or "not included, no reason given"
    runs = "" if row[f"{prefix}runnable"] is not False else " (not runnable)"
    return f"{tag}{runs}" + (" (synthetic)" if row[f"{prefix}is_synthetic"] else "")


def _recounted(rows: list[Row]) -> Iterator[str]:
    found = [
        [f"`{name}`", len(group), _total(group, "previous_count"), _total(group, "count")]
        for name, group in _grouped(rows, lambda row: row["op_name"])
    ]
    yield _table(found, ["operator", "problems", "calls were", "calls are"])


def _retimed(rows: list[Row]) -> Iterator[str]:
    yield (
        "A runtime counts as changed where its interval and the earlier one have nothing in common."
    )
    found = []
    for name, group in _grouped(rows, lambda row: row["op_name"]):
        ratios = [row["runtime_ms"] / row["previous_runtime_ms"] for row in group]
        faster = sum(ratio < 1 for ratio in ratios)
        median = f"{statistics.median(ratios):.2f}"
        found.append([f"`{name}`", faster, len(group) - faster, median])
    yield _table(found, ["operator", "faster", "slower", "median of now / then"])
    largest = sorted(rows, key=lambda row: -_distance(row))[:_SHOWN]
    listed = [
        [f"`{row['op_name']}`", _shown(row["args"]), _interval(row, "previous_"), _interval(row)]
        for row in largest
    ]
    yield f"The {len(largest)} that changed most:"
    yield _table(listed, ["operator", "arguments", "was (ms)", "is (ms)"])


def _distance(row: Row) -> float:
    """How many times a runtime has changed, in either direction."""
    ratio = row["runtime_ms"] / row["previous_runtime_ms"]
    return float(max(ratio, 1 / ratio))


def _shown(args: str) -> str:
    """Arguments in a cell of a table, cut where they are long."""
    cut = args if len(args) <= 100 else f"{args[:99]}…"
    return f"`{cut}`".replace("|", "\\|")


def _interval(row: Row, prefix: str = "") -> str:
    low, value, high = (row[f"{prefix}{name}_ms"] for name in ("low", "runtime", "high"))
    return f"{value:.4g} ({low:.4g} – {high:.4g})"


def _overhead(rows: list[Row]) -> Iterator[str]:
    found = []
    for name, group in _grouped(rows, lambda row: row["op_name"]):
        came = sum(row["is_overhead"] for row in group)
        found.append([f"`{name}`", came, len(group) - came])
    yield _table(found, ["operator", "now dominated", "not any more"])


def _by_model(rows: list[Row]) -> str:
    """For each model, the changed problems that it calls now or did before."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        for model in touched_models(row) or ["(no model)"]:
            counts[model][row["kind"]] += 1
    kinds = [kind for kind in KINDS if any(count[kind] for count in counts.values())]
    found = [[model, *(counts[model][kind] for kind in kinds)] for model in sorted(counts)]
    return _table(found, ["model", *(_HEADINGS[kind].lower() for kind in kinds)])


def touched_models(row: Row) -> list[str]:
    """The models that a change is about: of a changed count those that came or went, if any did."""
    was, now = set(row["previous_in_models"] or []), set(row["in_models"] or [])
    came_or_went = was ^ now
    return sorted(came_or_went if row["kind"] == "recounted" and came_or_went else was | now)


def _grouped(rows: list[Row], key: Callable[[Row], Any]) -> Iterator[tuple[Any, list[Row]]]:
    groups: defaultdict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    yield from sorted(groups.items(), key=lambda item: item[0])


def _total(rows: list[Row], column: str) -> int:
    return sum(row[column] or 0 for row in rows)


def _table(rows: list[list[Any]], headers: list[str]) -> str:
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True)
