"""``cases.parquet`` → ``inspected.parquet``: the facts of every problem that need no device.

Method: :func:`atenbench.inspection.inspect_case` in worker processes, many cases at a time. If
some case crashes, hangs or eats its worker's memory, the cases it stood with are done one by one.
"""

from __future__ import annotations

import importlib
import itertools
import logging
import resource
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from atenbench.atomic import replacing
from atenbench.isolation import Limits, Outcome, Status, Workers
from atenbench.kept import KEY, keep, kept_table

logger = logging.getLogger(__name__)

INSPECTED = pa.schema(
    [
        pa.field("uuid", pa.string(), nullable=False),
        pa.field("op_name", pa.string(), nullable=False),
        pa.field("args", pa.string(), nullable=False),
        pa.field("meta_status", pa.string(), nullable=False),
        pa.field("meta_reason", pa.string()),
        pa.field("meta_error", pa.string()),
        pa.field("is_random", pa.bool_(), nullable=False),
        pa.field("is_in_place", pa.bool_(), nullable=False),
        pa.field("is_view", pa.bool_(), nullable=False),
        pa.field("is_creation", pa.bool_(), nullable=False),
        pa.field("needs_indices", pa.bool_(), nullable=False),
        pa.field("reader_understands", pa.bool_(), nullable=False),
        pa.field("degenerate_inputs", pa.bool_(), nullable=False),
        pa.field("dtypes", pa.list_(pa.string()), nullable=False),
        pa.field("input_bytes", pa.int64()),
        pa.field("output_bytes", pa.int64()),
        pa.field("bytes_moved", pa.int64()),
        pa.field("flops", pa.int64()),
    ]
)

Case = tuple[str, str, str]
"""uuid, op_name, args."""

_CASES_AT_A_TIME = 256
_SECONDS_FOR_MANY, _SECONDS_FOR_ONE = 60.0, 20.0
_MEMORY = 4 * 2**30
"""What a worker may take beside what torch itself has mapped, in bytes."""
_REASONS = {
    Status.CRASHED: "crashed",
    Status.TIMEOUT: "timed out",
    Status.OUT_OF_MEMORY: "out of memory",
    Status.ERROR: "crashed",
}
"""What a case that ended its worker is said to have done (an operator's own exceptions are facts
already; an error that gets here came from behind it)."""


def inspect_table(cases: Path, inspected: Path, workers: int, kept: Kept | None = None) -> None:
    """Inspect every case of a table, in the table's order, with so many worker processes.

    With ``kept``, a case that was inspected before is not inspected again.
    """
    table = pq.read_table(cases, columns=["uuid", "op_name", "args"])
    known = _known(kept)
    new = table.filter(pc.invert(pc.is_in(table["uuid"], known["uuid"])))
    rows = list(
        _inspected(zip(*(column.to_pylist() for column in new.columns), strict=True), workers)
    )
    found = pa.concat_tables([known, pa.Table.from_pylist(rows, schema=INSPECTED)])
    found = found.take(pc.index_in(table["uuid"], found["uuid"])).combine_chunks()
    with replacing(inspected) as part:
        marked = found.replace_schema_metadata({KEY: kept.key} if kept else None)
        pq.write_table(marked, part, compression="zstd")
        if kept:
            keep(part, kept.path)
    failed = pc.sum(pc.equal(found["meta_status"], "failed")).as_py() or 0
    numbers = (f"{number:,}" for number in (found.num_rows, len(rows), failed))
    logger.info("%s problems, %s of them inspected now; %s do not run", *numbers)


@dataclass(frozen=True, slots=True)
class Kept:
    """Where the last table is kept, and the key of the code that inspects."""

    path: Path
    key: str


def _known(kept: Kept | None) -> pa.Table:
    """What was inspected before; not what ended its worker, since a busy machine may do that."""
    table = kept_table(kept.path, kept.key) if kept else None
    if table is None:
        return INSPECTED.empty_table()
    is_unsure = pc.is_in(table["meta_reason"], pa.array(_REASONS.values()))
    return table.filter(pc.invert(is_unsure)).replace_schema_metadata(None)


def inspect_many(cases: list[Case]) -> list[dict[str, Any]]:
    """The rows of some cases; run in a worker process, the only one that needs torch."""
    from atenbench.inspection import inspect_case

    return [
        {"uuid": uuid, "op_name": op_name, "args": args, **inspect_case(op_name, args)}
        for uuid, op_name, args in cases
    ]


def _inspected(cases: Iterable[Case], workers: int) -> Iterator[dict[str, Any]]:
    bundles = (list(bundle) for bundle in _batched(cases, _CASES_AT_A_TIME))
    with _pool(_SECONDS_FOR_MANY, workers) as pool:
        suspects: list[Case] = []
        for outcome in pool.map(bundles):
            yield from outcome.value or []
            suspects += [] if outcome.status is Status.OK else outcome.item
    with _pool(_SECONDS_FOR_ONE, workers) as pool:
        for outcome in pool.map([case] for case in suspects):
            yield from outcome.value or [_ended_its_worker(outcome)]


def _pool(seconds: float, workers: int) -> Workers[list[Case], list[dict[str, Any]]]:
    # Meta tensors need no parallel kernels; threads would only take the cores of other workers.
    limits = Limits(seconds, environment={"OMP_NUM_THREADS": "1"})
    return Workers(inspect_many, limits, workers=workers, initializer=_prepare)


def _prepare() -> None:
    """In a new worker: import torch, and only then limit the memory.

    A build of torch for CUDA maps many GiB that it never uses.
    """
    importlib.import_module("atenbench.inspection")
    limit = psutil.Process().memory_info().vms + _MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _ended_its_worker(outcome: Outcome[list[Case], Any]) -> dict[str, Any]:
    ((uuid, op_name, args),) = outcome.item
    logger.warning("%s %s: %s", op_name, args[:200], outcome.detail)
    flags = {field.name: False for field in INSPECTED if field.type == pa.bool_()}
    return flags | {
        "uuid": uuid,
        "op_name": op_name,
        "args": args,
        "meta_status": "failed",
        "meta_reason": _REASONS[outcome.status],
        "meta_error": outcome.detail,
        "dtypes": [],
    }


def _batched(cases: Iterable[Case], size: int) -> Iterator[tuple[Case, ...]]:
    """``itertools.batched``, which Python 3.11 does not have."""
    iterator = iter(cases)
    while batch := tuple(itertools.islice(iterator, size)):
        yield batch
