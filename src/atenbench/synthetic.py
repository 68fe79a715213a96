"""``calls.parquet`` → a trace of synthetic calls: the largest of each operator, made larger.

Method: :class:`atenbench.growth.Grower` in worker processes, one operator at a time, on meta
tensors. The trace has ``cnt: 0`` on every line, which marks what no model calls.
"""

from __future__ import annotations

import itertools
import logging
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from atenbench import query
from atenbench.arguments import Tensor, parse
from atenbench.atomic import replacing
from atenbench.errors import UserError
from atenbench.isolation import Limits, Outcome, Status, Workers

logger = logging.getLogger(__name__)

SYNTHETIC = pa.schema(
    [
        pa.field("op_name", pa.string(), nullable=False),
        pa.field("source", pa.string()),  # the arguments that were made larger
        pa.field("args", pa.string()),  # what became of them; null where nothing did
        pa.field("factor", pa.int64()),  # by which the sizes were multiplied
        pa.field("sizes", pa.list_(pa.string()), nullable=False),  # which: argument.dimension
        pa.field("source_bytes", pa.int64()),  # in and out
        pa.field("bytes", pa.int64()),
        pa.field("reason", pa.string()),  # why there is nothing; null where there is
    ]
)
UNKNOWN = "operator not in this torch"
AGAIN = "it grows to the same call as a larger one"
_ENDED = {
    Status.CRASHED: "crashed",
    Status.TIMEOUT: "timed out",
    Status.OUT_OF_MEMORY: "out of memory",
    Status.ERROR: "crashed",
}
_SECONDS = 300.0  # for one operator; all of a hundred take a minute


@dataclass(frozen=True, slots=True)
class Task:
    """An operator, all arguments it is called with, how many to make larger, and bytes at most."""

    op_name: str
    calls: list[str]
    largest: int
    limit: int


def make_synthetic(
    calls: str, sql: str, trace: Path, table: Path, *, largest: int, limit_gib: float, workers: int
) -> None:
    """Write the trace, and the table of what was made of what, or why nothing was.

    ``largest`` calls of each operator are made larger, up to ``limit_gib`` GiB in and out.

    Raises:
        UserError: nothing can be made larger within the limit.
    """
    limits = Limits(_SECONDS, environment={"OMP_NUM_THREADS": "1"})
    with tempfile.TemporaryDirectory() as scratch:
        listed = Path(scratch) / "calls.parquet"
        query.write(sql, listed, {"calls": calls})
        tasks = _tasks(listed, largest, int(limit_gib * 2**30))
        with Workers(grow_operator, limits, workers=workers) as pool:
            rows = [row for outcome in pool.map(tasks) for row in _rows_of(outcome)]
    rows.sort(key=lambda row: (row["op_name"], -(row["source_bytes"] or 0), row["source"] or ""))
    if not any(row["args"] for row in rows):
        raise UserError(
            f"synthetic_memory_gib: nothing can be made larger within {limit_gib:g} GiB; raise it"
        )
    with replacing(trace) as part:
        part.write_text("".join(_lines(rows)), encoding="utf-8")
    with replacing(table) as part:
        pq.write_table(pa.Table.from_pylist(rows, schema=SYNTHETIC), part, compression="zstd")
    _report(rows)


def grow_operator(task: Task) -> list[dict[str, Any]]:
    """The rows of one operator; run in a worker process, the only one that needs torch."""
    from atenbench.growth import Grower, Grown, knows

    calls = [parse(args) for args in task.calls]
    sizes = [sum(t.nbytes for t in call.tensors() if isinstance(t, Tensor)) for call in calls]
    order = sorted(range(len(calls)), key=lambda i: (-sizes[i], task.calls[i]))[: task.largest]
    if not knows(task.op_name):
        return [_row(task.op_name, source=task.calls[i], reason=UNKNOWN) for i in order]
    grower = Grower(task.op_name, calls, task.limit)
    rows: list[dict[str, Any]] = []
    for i in order:
        grown = grower.grow(calls[i])
        if not isinstance(grown, Grown):
            row = _row(task.op_name, source=task.calls[i], reason=grown)
        elif grown.args in {row["args"] for row in rows}:
            row = _row(task.op_name, source=task.calls[i], reason=AGAIN)
        else:
            row = _row(
                task.op_name,
                source=task.calls[i],
                args=grown.args,
                factor=grown.factor,
                sizes=grown.sizes,
                source_bytes=grown.bytes_before,
                bytes=grown.bytes,
            )
        rows.append(row)
    return rows


def _row(op_name: str, **known: Any) -> dict[str, Any]:
    return dict.fromkeys(SYNTHETIC.names) | {"op_name": op_name, "sizes": []} | known


def _tasks(listed: Path, largest: int, limit: int) -> Iterator[Task]:
    def pairs() -> Iterator[tuple[str, str]]:
        with pq.ParquetFile(listed) as file:
            for batch in file.iter_batches():
                yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    for op_name, found in itertools.groupby(pairs(), lambda pair: pair[0]):
        yield Task(op_name, [args for _, args in found], largest, limit)


def _rows_of(outcome: Outcome[Task, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    if outcome.status is Status.OK:
        return outcome.value or []
    logger.warning("%s: %s", outcome.item.op_name, outcome.detail)
    return [_row(outcome.item.op_name, reason=_ENDED[outcome.status])]


def _lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    made = [row for row in rows if row["args"]]
    for op_name, group in itertools.groupby(made, lambda row: row["op_name"]):
        yield f"Operator: {op_name}\n"
        yield from (f"cnt: 0, {row['args']}\n" for row in group)


def _report(rows: list[dict[str, Any]]) -> None:
    """How much larger the problems are, and which operators have none and why."""
    best: Counter[str] = Counter()
    reasons: dict[str, set[str]] = {}
    for row in rows:
        name = row["op_name"]
        if row["args"]:
            best[name] = max(best[name], row["bytes"] // row["source_bytes"])
        else:
            reasons.setdefault(name, set()).add(row["reason"])
    for name in sorted(reasons.keys() - best.keys()):
        logger.info("%s: not made larger: %s", name, "; ".join(sorted(reasons[name])))
    logger.info(
        "%s synthetic problems of %s operators, %s of which are at least 3 times larger",
        f"{sum(bool(row['args']) for row in rows):,}",
        len(best),
        sum(times >= 3 for times in best.values()),
    )
