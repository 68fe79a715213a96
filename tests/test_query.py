"""Running SQL files: strict, whole or not at all, the same bytes every time, in bounded memory."""

import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from atenbench import query
from atenbench.errors import UserError

NUMBERS = pa.schema([pa.field("n", pa.int64(), nullable=False), pa.field("text", pa.string())])


def table(rows: int, seed: int = 0) -> pa.Table:
    numbers = list(range(rows))
    random.Random(seed).shuffle(numbers)
    return pa.table({"n": numbers, "text": [f"text of {n}" for n in numbers]})


@pytest.fixture
def sql(tmp_path: Path):
    def write(text: str) -> Path:
        file = tmp_path / "query.sql"
        file.write_text(text)
        return file

    return write


def test_parameters_metadata_and_declared_types(sql, tmp_path: Path) -> None:
    out = tmp_path / "new folder" / "out.parquet"
    rows = query.write(
        sql("SELECT n::INTEGER AS n, NULL AS text FROM given WHERE n < $limit ORDER BY n"),
        out,
        {"given": table(10)},
        params={"limit": 3},
        schema=NUMBERS,
        metadata={"device": "none", "threshold": "1.3"},
    )
    assert rows == 3
    assert pq.read_table(out).to_pylist() == [{"n": n, "text": None} for n in range(3)]
    assert pq.read_schema(out).equals(NUMBERS)
    assert query.file_metadata(out) == {"device": "none", "threshold": "1.3"}
    assert pq.read_metadata(out).row_group(0).column(0).compression == "ZSTD"
    assert [file.name for file in out.parent.iterdir()] == ["out.parquet"]


def test_several_files_are_one_relation(sql, tmp_path: Path) -> None:
    for part in (1, 2):
        pq.write_table(table(part), tmp_path / f"{part}'s.parquet")
    files = [tmp_path / "1's.parquet", str(tmp_path / "2's.parquet")]
    counted = query.fetch(sql("SELECT count(*) AS n FROM given"), {"given": files})
    assert counted.to_pylist() == [{"n": 3}]


def test_no_rows_keep_the_schema(sql, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    text = sql("SELECT * FROM given WHERE n < 0 ORDER BY n")
    assert query.write(text, out, {"given": table(3)}, schema=NUMBERS) == 0
    assert pq.read_table(out).schema.equals(NUMBERS)


def test_equal_rows_give_equal_bytes(sql, tmp_path: Path) -> None:
    text = sql("SELECT * FROM given ORDER BY n")
    written = set()
    for threads, seed in ((1, 0), (2, 1), (4, 2)):
        out = tmp_path / "out.parquet"
        query.write(text, out, {"given": table(150_000, seed)}, schema=NUMBERS, threads=threads)
        written.add(out.read_bytes())
    assert len(written) == 1
    groups = pq.read_metadata(out)
    sizes = [groups.row_group(index).num_rows for index in range(groups.num_row_groups)]
    assert sizes == [20_480] * 7 + [150_000 - 7 * 20_480]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT n FROM given ORDER BY n", "declared are"),
        ("SELECT text, n FROM given ORDER BY n", "declared are"),
        ("SELECT NULL::BIGINT AS n, text FROM given ORDER BY text", "null"),
        ("SELECT 'x' AS n, text FROM given ORDER BY text", "'x'"),
        ("CREATE TABLE t AS SELECT * FROM given", "must be one SELECT"),
        ("SELECT * FROM given; SELECT 1", "must be one SELECT"),
        ("SELECT * FROM unknown", "unknown"),
        ("SELECT n, $other::VARCHAR AS text FROM given ORDER BY n", "other"),
    ],
)
def test_what_breaks_the_contract_writes_nothing(sql, tmp_path: Path, text, message) -> None:
    unknown = table(1)  # noqa: F841  (a local variable is no relation)
    out = tmp_path / "out.parquet"
    out.write_text("as it was")
    with pytest.raises(Exception, match=message):
        query.write(sql(text), out, {"given": table(3)}, schema=NUMBERS)
    assert out.read_text() == "as it was"
    assert {file.name for file in tmp_path.iterdir()} == {"out.parquet", "query.sql"}


def test_a_column_twice_and_a_wrong_number_of_rows_are_refused(sql, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    with pytest.raises(ValueError, match="twice"):
        query.write(sql("SELECT n, n FROM given"), out, {"given": table(3)})
    text = sql("SELECT n FROM given WHERE n > 0 ORDER BY n")
    with pytest.raises(ValueError, match=r"2 rows.* 3"):
        query.write(text, out, {"given": table(3)}, expected_rows=3)
    assert not out.exists()


def test_an_error_that_sql_raises_for_the_user(sql, tmp_path: Path) -> None:
    # In the middle of the stream, where Arrow stands between DuckDB and us.
    text = "SELECT CASE WHEN n < 99999 THEN n ELSE error('UserError: no; do this') END AS n"
    with pytest.raises(UserError, match=r"^no; do this$"):
        query.write(sql(f"{text} FROM given"), tmp_path / "out", {"given": table(100_000)})
    with pytest.raises(Exception, match="ours") as caught:
        query.fetch(sql("SELECT error('ours') AS n FROM given"), {"given": table(1)})
    assert not isinstance(caught.value, UserError)


@pytest.mark.parametrize(("limit", "at_most", "at_least"), [("150MB", 500, 0), ("8GB", 9999, 550)])
def test_memory_stays_within_its_limit(tmp_path: Path, limit, at_most, at_least) -> None:
    """Rows of 350 MB, sorted; without a tight limit the same rows do take more."""
    (tmp_path / "query.sql").write_text(
        "SELECT i, hash(i)::VARCHAR || repeat('x', 80) AS text FROM range(3000000) numbers(i) "
        "ORDER BY hash(i)"
    )
    code = (
        "import re, sys; from pathlib import Path; from atenbench import query;"
        "query.write('query.sql', 'out.parquet', {}, memory_limit=sys.argv[1], threads=2);"
        # Not getrusage's maximum: a process inherits that of the one that started it.
        "status = Path('/proc/self/status').read_text();"
        r"print(int(re.search(r'VmHWM:\s+(\d+)', status)[1]) // 1024)"
    )
    source = Path(query.__file__).parents[1]
    ran = subprocess.run(
        [sys.executable, "-c", code, limit],
        cwd=tmp_path,
        env={"PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert at_least <= int(ran.stdout) <= at_most
    assert pq.read_metadata(tmp_path / "out.parquet").num_rows == 3_000_000
    assert {file.name for file in tmp_path.iterdir()} == {"out.parquet", "query.sql"}
