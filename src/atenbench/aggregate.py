"""Tables of calls → ``cases.parquet``: one problem per operator and arguments, by the SQL."""

from __future__ import annotations

import logging

import pyarrow as pa

from atenbench import query

logger = logging.getLogger(__name__)

CASES = pa.schema(
    [
        pa.field("uuid", pa.string(), nullable=False),
        pa.field("op_name", pa.string(), nullable=False),
        pa.field("args", pa.string(), nullable=False),
        pa.field("count", pa.int64(), nullable=False),
        pa.field("in_models", pa.list_(pa.string()), nullable=False),
        pa.field("in_models_count", pa.int64(), nullable=False),
        pa.field("is_synthetic", pa.bool_(), nullable=False),
    ]
)


def aggregate(calls: query.Source, sql: str, cases: str, threads: int | None = None) -> None:
    """Write what the SQL file selects from the calls to ``cases``.

    Raises:
        UserError: the count of a case does not fit 64 bits.
    """
    rows = query.write(sql, cases, {"calls": calls}, schema=CASES, threads=threads)
    logger.info("%s problems", f"{rows:,}")
