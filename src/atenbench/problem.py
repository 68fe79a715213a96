"""The published record: its columns in order, what each means, and how each reader gets its types.

Everything that states the record (the parquet schema, the schema for each reader, the README's
table) comes from the fields below.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from atenbench.record import Field, schema

if TYPE_CHECKING:
    import datasets  # type: ignore[import-untyped]
    import polars


_STRINGS = pa.list_(pa.string())

PROBLEM = (
    Field("uuid", pa.string(), "SHA-256 of `args` followed by `op_name`, in hex"),
    Field("op_name", pa.string(), "the operator and its overload, such as `aten.add.Tensor`"),
    Field("args", pa.string(), "its arguments as text, `((positional, ...), {keywords})`"),
    Field(
        "runnable",
        pa.bool_(),
        "whether the problem runs and BackendBench can run it; independent of being included",
    ),
    Field(
        "included_in_benchmark",
        pa.bool_(),
        "whether it is part of the benchmark: runnable, and no reason against it",
    ),
    Field("why_excluded", _STRINGS, "every reason against including it; empty where included"),
    Field("is_synthetic", pa.bool_(), "whether no model makes this call: it was made up"),
    Field(
        "runtime_ms",
        pa.float64(),
        "time of one call in milliseconds; null where it was not measured",
        nullable=True,
    ),
    Field(
        "relative_runtime_to_kernel_launch",
        pa.float64(),
        "that time over the time of a launch that does nothing, side by side on the same device: "
        "`torch.empty(0, device='cuda')`, on a CPU the same op called as the operators are",
        nullable=True,
    ),
    Field(
        "is_overhead_dominated_op",
        pa.bool_(),
        "whether the relative runtime is below the threshold (1.3 in the published set), so that "
        "most of it is launching; false where it was not measured",
    ),
    Field("count", pa.int64(), "how often the models call it in all; 0 for a synthetic one"),
    Field("in_models", _STRINGS, "the models that call it, as `SUITE/model`, sorted"),
    Field("in_models_count", pa.int64(), "how many models those are"),
)
"""The columns of ``backend_bench_problems``."""

DETAILS = (
    Field("uuid", pa.string(), "the problem's key, as in the problems"),
    Field("op_name", pa.string(), "as in the problems"),
    Field("args", pa.string(), "as in the problems"),
    Field(
        "status",
        pa.string(),
        "how measuring ended: `ok`, `skipped`, `unsupported` (the device has no kernel for it), "
        "`timeout`, `oom`, `crashed`, `error`, `too_large`; `invalid` where it already failed "
        "without a device, `off` where it was given to none",
    ),
    Field("reason", pa.string(), "why the status is not `ok`, in fixed words", nullable=True),
    Field("runs", pa.bool_(), "whether it runs, whatever BackendBench can do with it"),
    Field(
        "meta_status",
        pa.string(),
        "run without data: `ok`, `failed`, or `undecided` where only a device can tell",
    ),
    Field("meta_reason", pa.string(), "why that failed, in fixed words", nullable=True),
    Field("meta_error", pa.string(), "torch's own words for it", nullable=True),
    Field("is_random", pa.bool_(), "the result depends on a random generator"),
    Field("is_in_place", pa.bool_(), "an argument is written to"),
    Field("is_view", pa.bool_(), "the result shares storage with an argument"),
    Field("is_creation", pa.bool_(), "the result holds no argument's values"),
    Field("needs_indices", pa.bool_(), "an argument holds indices, which must be in range"),
    Field("reader_understands", pa.bool_(), "BackendBench's reader knows every form in `args`"),
    Field(
        "degenerate_inputs",
        pa.bool_(),
        "some tensor of several elements stores one value, so that wrong results can look right",
    ),
    Field("dtypes", _STRINGS, "the dtypes of the tensors, abbreviated, sorted"),
    Field("input_bytes", pa.int64(), "storage of the tensors in `args`", nullable=True),
    Field("output_bytes", pa.int64(), "storage of the results", nullable=True),
    Field(
        "bytes_moved",
        pa.int64(),
        "what a perfect kernel must read and write; 0 for a view",
        nullable=True,
    ),
    Field("flops", pa.int64(), "by torch's formula for the operator, if any", nullable=True),
)
"""The columns of ``problem_details`` up to those of the measurement, which follow as measured.

What each problem is worth comes last (:data:`atenbench.worth.WORTH`).
"""


# What readers of the JSON files must be told, since a column of empty lists or nulls tells nothing.


def duckdb_columns(fields: Iterable[Field] = PROBLEM) -> dict[str, str]:
    """For ``read_json(file, format = 'array', columns = ...)``."""
    names = {"string": "VARCHAR", "bool": "BOOLEAN", "double": "DOUBLE", "int64": "BIGINT"}
    return {
        field.name: f"{names[str(field.type.value_type)]}[]"
        if pa.types.is_list(field.type)
        else names[str(field.type)]
        for field in fields
    }


def pandas_dtypes(fields: Iterable[Field] = PROBLEM) -> dict[str, str]:
    """For ``pandas.read_json(file, dtype=..., precise_float=True)``; lists are objects there."""
    names = {"string": "str", "bool": "bool", "double": "float64", "int64": "int64"}
    return {field.name: names.get(str(field.type), "object") for field in fields}


def polars_schema(fields: Iterable[Field] = PROBLEM) -> polars.Schema:
    """For ``polars.read_json(file, schema=...)``."""
    import polars

    empty = polars.from_arrow(schema(fields).empty_table())
    assert isinstance(empty, polars.DataFrame)
    return empty.schema


def datasets_features(fields: Iterable[Field] = PROBLEM) -> datasets.Features:
    """For ``datasets.load_dataset("json", data_files=file, features=...)``."""
    import datasets

    return datasets.Features.from_arrow_schema(schema(fields))
