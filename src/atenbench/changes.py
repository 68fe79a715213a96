"""A release beside an earlier one → ``changes.parquet``: what became of every problem.

The comparison is in ``workflow/sql/changes.sql``. Here the earlier release is read: a folder as
``results/dataset``, or the problems alone, as parquet or JSON, also with older columns. Where there
are no details of its measurements there are no intervals, and runtimes are not compared.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from atenbench import query
from atenbench.arguments import ArgumentError
from atenbench.canonical import canonical
from atenbench.errors import UserError
from atenbench.sources import release_files

logger = logging.getLogger(__name__)

_STRINGS = pa.list_(pa.string())
_COMPARED = pa.schema(
    [
        pa.field("uuid", pa.string()),
        pa.field("op_name", pa.string()),
        pa.field("args", pa.string()),
        pa.field("count", pa.int64()),
        pa.field("in_models", _STRINGS),
        pa.field("is_synthetic", pa.bool_()),
        pa.field("runnable", pa.bool_()),
        pa.field("included_in_benchmark", pa.bool_()),
        pa.field("why_excluded", _STRINGS),
        pa.field("is_overhead_dominated_op", pa.bool_()),
    ]
)
_TIMED = pa.schema(
    [
        pa.field("uuid", pa.string()),
        pa.field("device", pa.string()),
        pa.field("method", pa.int64()),
        pa.field("runtime_ms", pa.float64()),
        pa.field("relative_runtime_to_kernel_launch", pa.float64()),
        pa.field("ratio_low", pa.float64()),
        pa.field("ratio_high", pa.float64()),
        pa.field("between_visit_cv", pa.float64()),
    ]
)
_EACH_SIDE = (
    ("uuid", pa.string()),
    ("count", pa.int64()),
    ("in_models", _STRINGS),
    ("is_synthetic", pa.bool_()),
    ("runnable", pa.bool_()),
    ("included", pa.bool_()),
    ("why_excluded", _STRINGS),
    ("is_overhead", pa.bool_()),
    ("runtime_ms", pa.float64()),
)
CHANGES = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),  # added, removed, retagged, recounted, …
        pa.field("op_name", pa.string(), nullable=False),
        pa.field("args", pa.string(), nullable=False),  # as spelled now, if it is still there
        *(
            pa.field(f"{prefix}{name}", kind)
            for name, kind in _EACH_SIDE
            for prefix in ("previous_", "")
        ),
        pa.field("previous_low_ms", pa.float64()),  # the intervals of the runtimes
        pa.field("previous_high_ms", pa.float64()),
        pa.field("low_ms", pa.float64()),
        pa.field("high_ms", pa.float64()),
    ]
)
KINDS = ("added", "removed", "retagged", "recounted", "retimed", "overhead")


@dataclass(frozen=True, slots=True)
class Devices:
    """What both releases were measured on; empty where nothing is known of a measurement."""

    previous: list[str]
    current: list[str]

    @property
    def comparable(self) -> bool:
        """Whether there is a device that both were measured on."""
        return bool(set(self.previous) & set(self.current))


def compare(
    previous: Path, problems: Path, details: Path, renames: Mapping[str, str], sql: str, out: Path
) -> Devices:
    """Write the changes from the ``previous`` release to ``problems`` and ``details``.

    ``renames`` maps operator names of another torch version to today's, for older releases.

    Raises:
        UserError: the earlier release is not there or cannot be read.
    """
    earlier, *timed = release_files(previous)
    before = _columns(timed[0], _TIMED) if timed else _TIMED.empty_table()
    now = _columns(details, _TIMED)
    relations: dict[str, query.Source] = {
        "previous": _with_meaning(_columns(earlier, _COMPARED), renames),
        "previous_details": before,
        "current": _with_meaning(_columns(problems, _COMPARED), {}),
        "current_details": now,
    }
    rows = query.write(sql, out, relations, schema=CHANGES)
    logger.info("%s changes since %s", f"{rows:,}", previous)
    return Devices(_devices(before), _devices(now))


def _columns(path: Path, schema: pa.Schema) -> pa.Table:
    """The columns of the schema, null where the file lacks one."""
    try:
        found = _json(path, schema) if path.suffix == ".json" else pq.read_table(path)
        names = found.schema.names
        columns = [
            found.column(field.name).cast(field.type)
            if field.name in names
            else pa.nulls(found.num_rows, field.type)
            for field in schema
        ]
    except (pa.ArrowException, duckdb.Error, OSError) as error:
        raise UserError(f"{path}: cannot be read: {str(error).splitlines()[0]}") from None
    return pa.Table.from_arrays(columns, schema=schema)


_DUCKDB = {
    pa.string(): "VARCHAR",
    pa.int64(): "BIGINT",
    pa.bool_(): "BOOLEAN",
    _STRINGS: "VARCHAR[]",
    pa.float64(): "DOUBLE",
}


def _json(path: Path, schema: pa.Schema) -> pa.Table:
    columns = {field.name: _DUCKDB[field.type] for field in schema}
    with duckdb.connect() as connection:
        given = {"path": str(path), "columns": columns}
        found = connection.sql("FROM read_json($path, columns = $columns)", params=given)
        return found.to_arrow_table()


def _with_meaning(problems: pa.Table, renames: Mapping[str, str]) -> pa.Table:
    """The problems with today's operator names, and what their arguments mean, however spelled."""
    names = [renames.get(name, name) for name in problems.column("op_name").to_pylist()]
    meanings = [_meaning(args) for args in problems.column("args").to_pylist()]
    position = problems.schema.names.index("op_name")
    renamed = problems.set_column(position, "op_name", pa.array(names, pa.string()))
    return renamed.append_column("meaning", pa.array(meanings, pa.string()))


def _meaning(args: str) -> str:
    try:
        return canonical(args)
    except ArgumentError:  # of an earlier release, which may have let more pass
        return args.strip()


def _devices(details: pa.Table) -> list[str]:
    return sorted(filter(None, details.column("device").unique().to_pylist()))
