"""``cases.parquet`` → which model calls which operator with which arguments."""

from __future__ import annotations

import pyarrow as pa

from atenbench import query
from atenbench.record import Field, schema, write_json

MAPPING = (
    Field("operator name", pa.string(), "the operator and its overload"),
    Field("used in model", pa.string(), "a model that calls it, as `SUITE/model`"),
    Field("args", pa.string(), "arguments that it is called with there, as in the problems"),
)
"""The columns of ``operator_input_models_mapping``."""


def map_to_models(
    cases: query.Source, sql: str, parquet: str, json: str, threads: int | None = None
) -> None:
    """Write what the SQL file selects from the cases, in both formats."""
    query.write(sql, parquet, {"cases": cases}, schema=schema(MAPPING), threads=threads)
    write_json(parquet, json)
