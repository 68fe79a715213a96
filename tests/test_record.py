"""Strict JSON and the field table."""

import json
import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from atenbench.record import Field, field_table, schema, write_json

FIELDS = (
    Field("n", pa.float64(), "a number", nullable=True),
    Field("names", pa.list_(pa.string()), "some `names`"),
)


def written(folder: Path, *rows: tuple) -> Path:
    records = [dict(zip(("n", "names"), row, strict=True)) for row in rows]
    pq.write_table(pa.Table.from_pylist(records, schema=schema(FIELDS)), folder / "t.parquet")
    write_json(folder / "t.parquet", folder / "t.json")
    return folder / "t.json"


def test_one_record_a_line(tmp_path: Path) -> None:
    rows = [(0.1, ["a", "é\n\u2028"]), (None, [])]
    opening, *lines, closing = written(tmp_path, *rows).read_text(encoding="utf-8").split("\n")[:-1]
    assert (opening, closing) == ("[", "]")
    read = [json.loads(line.removesuffix(",")) for line in lines]
    assert read == [{"n": n, "names": names} for n, names in rows]


def test_no_rows_are_an_empty_array(tmp_path: Path) -> None:
    assert json.loads(written(tmp_path).read_text()) == []


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_json_cannot_say_is_refused_and_leaves_the_file(tmp_path: Path, number) -> None:
    """B25."""
    before = written(tmp_path, (1.0, [])).read_bytes()
    with pytest.raises(ValueError, match=r"JSON compliant|NaN"):
        written(tmp_path, (2.0, []), (number, []))
    assert (tmp_path / "t.json").read_bytes() == before
    assert {file.name for file in tmp_path.iterdir()} == {"t.json", "t.parquet"}


def test_rows_of_several_batches(tmp_path: Path) -> None:
    rows = [(float(number), [str(number)]) for number in range(70_000)]
    read = json.loads(written(tmp_path, *rows).read_text())
    assert [(row["n"], row["names"]) for row in read] == rows


def test_the_field_table() -> None:
    assert field_table(FIELDS) == (
        "| column | type | meaning |\n"
        "|---|---|---|\n"
        "| `n` | double | a number |\n"
        "| `names` | list&lt;string&gt; | some `names` |\n"
    )
