"""``inspected.parquet`` → shards: the problems to measure, parted by the hash of their uuids.

A problem stays in its shard whatever others come or go, and equal problems give equal bytes.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from atenbench.atomic import replacing

logger = logging.getLogger(__name__)

COLUMNS = (
    *("uuid", "op_name", "args", "meta_status", "is_view", "dtypes"),
    *("input_bytes", "output_bytes", "bytes_moved", "flops"),
)
"""Of the inspected table: the problem, and what predicts its time."""


def shard_of(uuid: str, shards: int) -> int:
    """The shard of a problem, 1 to ``shards``; a uuid is a hash already."""
    return int(uuid[:15], 16) % shards + 1


def write_shards(inspected: Path, outputs: Sequence[Path]) -> None:
    """Part the problems that run on meta tensors, or may run, over the tables, in their order."""
    table = pq.read_table(inspected, columns=list(COLUMNS))
    table = table.filter(pc.field("meta_status") != "failed").sort_by("uuid")
    numbers = [shard_of(uuid, len(outputs)) for uuid in table.column("uuid").to_pylist()]
    for number, output in enumerate(outputs, start=1):
        part = table.filter(pa.array([each == number for each in numbers], pa.bool_()))
        with replacing(output) as path:
            pq.write_table(part, path, compression="zstd")
    logger.info("%s problems to measure in %s shards", f"{table.num_rows:,}", len(outputs))
