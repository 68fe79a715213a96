"""Tables of calls → ``cases.parquet`` and which model calls what; the rules are in the SQL."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import pyarrow as pa

from atenbench import query
from atenbench.record import Field, schema, write_json

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

MAPPING = (
    Field("operator name", pa.string(), "the operator and its overload"),
    Field("used in model", pa.string(), "a model that calls it, as `SUITE/model`"),
    Field("args", pa.string(), "arguments that it is called with there, as in the problems"),
)
"""The columns of ``operator_input_models_mapping``."""


def aggregate(
    calls: query.Source, sql: Mapping[str, str], out: Mapping[str, str], threads: int
) -> None:
    """Write the tables that ``out`` names, ``cases`` and ``mapping``, and ``mapping_json``.

    ``sql`` holds the files of the same names.

    Raises:
        UserError: the count of a case does not fit 64 bits.
    """
    cases = query.write(sql["cases"], out["cases"], {"calls": calls}, schema=CASES, threads=threads)
    query.write(
        sql["mapping"],
        out["mapping"],
        {"cases": out["cases"]},
        schema=schema(MAPPING),
        threads=threads,
    )
    write_json(out["mapping"], out["mapping_json"])
    logger.info("%s problems", f"{cases:,}")
