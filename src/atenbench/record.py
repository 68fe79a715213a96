"""What a published table is made of: documented fields, an Arrow schema, a strict JSON file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
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
    with (
        pq.ParquetFile(table) as file,
        replacing(Path(output)) as part,
        part.open("w", encoding="utf-8") as text,
    ):
        text.write("[")
        separator = "\n"
        for batch in file.iter_batches():
            for record in batch.to_pylist():
                line = json.dumps(record, allow_nan=False, ensure_ascii=False)
                text.write(f"{separator}{line}")
                separator = ",\n"
        text.write("\n]\n")


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
