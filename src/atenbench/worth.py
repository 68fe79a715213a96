"""Calls and measurements → ``worth.parquet``: what each measured problem is worth; SQL does it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import pyarrow as pa

from atenbench import query
from atenbench.record import Field, schema

logger = logging.getLogger(__name__)

_BY_MODEL = pa.list_(
    pa.struct(
        [
            pa.field("model", pa.string()),
            pa.field("calls", pa.int64()),
            pa.field("share", pa.float64()),
        ]
    )
)

WORTH = (
    Field(
        "total_ms",
        pa.float64(),
        "operator time that the problem stands for: `count` × `runtime_ms`; null where it was not "
        "measured or is synthetic",
        nullable=True,
    ),
    Field(
        "share_of_time",
        pa.float64(),
        "its share of the operator time of the whole set, as far as that was measured",
        nullable=True,
    ),
    Field(
        "rank_by_time",
        pa.int64(),
        "its place when problems are ordered by that share, from 1",
        nullable=True,
    ),
    Field(
        "cumulative_share",
        pa.float64(),
        "the share of it and of all problems before it in that order",
        nullable=True,
    ),
    Field(
        "share_by_model",
        _BY_MODEL,
        "for each model that calls it, sorted by name: `model`, `calls` there, and its `share` of "
        "the operator time of that model",
        nullable=True,
    ),
)
"""What is added to ``problem_details`` of what a problem is worth."""


def write_worth(
    calls: query.Source, cases: str, measurements: Sequence[str], sql: str, output: str
) -> None:
    """Write one row for each problem that was measured and is called: its uuid and ``WORTH``."""
    relations: Mapping[str, query.Source] = {
        "calls": calls,
        "cases": cases,
        "measurements": measurements,
    }
    uuid = Field("uuid", pa.string(), "the problem's key")
    rows = query.write(sql, output, relations, schema=schema((uuid, *WORTH)))
    logger.info("%s problems have a share of the operator time", f"{rows:,}")
