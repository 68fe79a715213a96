"""Runs one SQL file over named tables; the result leaves as a parquet file, whole or not at all.

The relations that the SQL names are the caller's inputs (parquet files or Arrow tables), its
``$name`` values are the caller's parameters. Rows stream from DuckDB into the file in row groups
of one fixed size, so that memory stays bounded and equal rows give equal bytes, whatever the
number of threads. A fault of the user's that only the data shows is raised in SQL as
``error('UserError: …')`` and arrives as :class:`~atenbench.errors.UserError`.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from atenbench.atomic import replacing
from atenbench.errors import UserError

Source: TypeAlias = str | Path | Sequence[str | Path] | pa.Table
"""One relation: a parquet file, several of one kind, or rows in memory."""

ROWS_PER_GROUP = 20_480
"""Also the most rows that wait in memory to be written, beside one batch of DuckDB's."""

_ROWS_PER_BATCH = 4_096  # the smaller, the less is held twice: a batch by DuckDB, a group here
MEMORY_LIMIT = "2GB"

_USER_ERROR = "UserError: "


def write(
    sql: str | Path,
    output: str | Path,
    inputs: Mapping[str, Source],
    *,
    params: Mapping[str, object] | None = None,
    schema: pa.Schema | None = None,
    metadata: Mapping[str, str] | None = None,
    expected_rows: int | None = None,
    threads: int | None = None,
    memory_limit: str = MEMORY_LIMIT,
) -> int:
    """Write the rows that the SQL file selects to a parquet file, and return their number.

    With a ``schema`` the columns must have its names and order, and are cast to its types; a null
    in a column that it declares without nulls is an error, and so is another number of rows than
    expected: a join that loses or doubles rows must not go unseen. Beyond the memory limit DuckDB
    spills into a folder beside the output.
    """
    output = Path(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    spill = output.with_name(f".{output.name}.spill")
    settings = {"memory_limit": memory_limit, "temp_directory": str(spill)}
    if threads is not None:
        settings["threads"] = str(threads)
    try:
        with (
            _rows(sql, inputs, params, settings) as reader,
            replacing(output) as temporary,
        ):
            rows = _write_rows(reader, temporary, schema, metadata)
            if expected_rows not in (None, rows):
                raise ValueError(f"{sql} selects {rows} rows, expected were {expected_rows}")
            return rows
    finally:
        shutil.rmtree(spill, ignore_errors=True)


def fetch(
    sql: str | Path, inputs: Mapping[str, Source], params: Mapping[str, object] | None = None
) -> pa.Table:
    """The rows that the SQL file selects, in memory: for results that are small by their nature."""
    with tempfile.TemporaryDirectory() as spill:
        settings = {"memory_limit": MEMORY_LIMIT, "temp_directory": spill}
        with _rows(sql, inputs, params, settings) as reader:
            return reader.read_all()


@contextmanager
def _rows(
    sql: str | Path,
    inputs: Mapping[str, Source],
    params: Mapping[str, object] | None,
    settings: Mapping[str, str],
) -> Iterator[pa.RecordBatchReader]:
    strict = {
        "python_enable_replacements": "false",  # a relation is an input, never a local variable
        "autoinstall_known_extensions": "false",  # a run needs no network
        "preserve_insertion_order": "false",  # the SQL states its order; the rest may spill
    }
    with duckdb.connect(config={**strict, **settings}) as connection:
        connection.execute("SET enable_progress_bar = false")
        for name, source in inputs.items():
            _add_relation(connection, name, source)
        statements = connection.extract_statements(Path(sql).read_text(encoding="utf-8"))
        if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
            raise ValueError(f"{sql} must be one SELECT")
        try:
            relation = connection.sql(statements[0], params=dict(params) if params else None)
            yield relation.to_arrow_reader(_ROWS_PER_BATCH)
        except (duckdb.Error, OSError) as error:
            # Arrow wraps what DuckDB raises while rows stream into an OSError with the same text.
            _, marked, message = str(error).partition(_USER_ERROR)
            if not marked:
                raise
            raise UserError(message.splitlines()[0]) from None


def _add_relation(connection: duckdb.DuckDBPyConnection, name: str, source: Source) -> None:
    if isinstance(source, pa.Table):
        connection.register(name, source)
        return
    files = [source] if isinstance(source, str | Path) else list(source)
    paths = [str(file) for file in files]
    connection.read_parquet(paths, union_by_name=True).create_view(name)


def _write_rows(
    reader: pa.RecordBatchReader,
    path: Path,
    schema: pa.Schema | None,
    metadata: Mapping[str, str] | None,
) -> int:
    names = reader.schema.names
    if schema is not None and names != schema.names:
        raise ValueError(f"the SQL selects {names}, declared are {schema.names}")
    if len(set(names)) != len(names):
        raise ValueError(f"the SQL selects a column twice: {names}")
    if schema is None:
        schema = reader.schema
    if metadata is not None:
        schema = schema.with_metadata(dict(metadata))
    rows = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for group in _groups(reader, schema):
            writer.write_table(group, row_group_size=ROWS_PER_GROUP)
            rows += group.num_rows
    return rows


def _groups(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows in groups of one size: where DuckDB cuts its batches depends on the threads."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= ROWS_PER_GROUP:
            table = pa.Table.from_batches(waiting)
            while rows >= ROWS_PER_GROUP:
                yield _declared(table.slice(0, ROWS_PER_GROUP), schema)
                table = table.slice(ROWS_PER_GROUP)
                rows = table.num_rows
            waiting = table.to_batches()
    if rows:
        yield _declared(pa.Table.from_batches(waiting), schema)


def _declared(table: pa.Table, schema: pa.Schema) -> pa.Table:
    return table.combine_chunks().cast(schema)


def file_metadata(path: str | Path) -> dict[str, str]:
    """The file metadata that :func:`write` was given."""
    stored: dict[bytes, bytes] = pq.read_schema(path).metadata or {}
    return {key.decode(): value.decode() for key, value in stored.items()}
