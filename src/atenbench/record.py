"""What a published table is made of: documented fields, an Arrow schema, a strict JSON file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from atenbench.atomic import replacing


@dataclass(frozen=True, slots=True)
class Field:
    """One column: its name, type and meaning."""

    name: str
    type: pa.DataType
    doc: str
    nullable: bool = False


def schema(fields: Iterable[Field]) -> pa.Schema:
    """The Arrow schema of a record."""
    return pa.schema([pa.field(field.name, field.type, field.nullable) for field in fields])


def write_json(table: str | Path, output: str | Path) -> None:
    """Write a parquet file's rows as one strict JSON array, a record a line.

    Raises:
        ValueError: a number is NaN or infinite, for which JSON has no words.
    """
    _refuse_what_json_lacks(table)
    with replacing(Path(output)) as part, duckdb.connect() as connection:
        connection.execute("SET autoinstall_known_extensions = false")  # a run needs no network
        connection.read_parquet(str(table)).create_view("written")
        copy = "COPY written TO $output (FORMAT json, ARRAY true)"
        connection.execute(copy, {"output": str(part)})


def _refuse_what_json_lacks(table: str | Path) -> None:
    # Not by SQL: DuckDB goes by the statistics of the file, which leave NaN out.
    with pq.ParquetFile(table) as file:
        numbers = [field.name for field in file.schema_arrow if pa.types.is_floating(field.type)]
        for batch in file.iter_batches(columns=numbers):
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                if pc.any(pc.invert(pc.is_finite(column))).as_py():
                    raise ValueError(f"{table}: {name} holds NaN or an infinity")


def field_table(fields: Iterable[Field]) -> str:
    """The fields as a Markdown table, for the README."""
    rows = [f"| `{field.name}` | {_type_name(field.type)} | {field.doc} |" for field in fields]
    return "\n".join(["| column | type | meaning |", "|---|---|---|", *rows, ""])


def _type_name(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"list&lt;{_type_name(kind.value_type)}&gt;"
    if pa.types.is_struct(kind):
        return f"struct&lt;{', '.join(f'{part.name} {_type_name(part.type)}' for part in kind)}&gt;"
    return str(kind)
