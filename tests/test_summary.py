"""What a run came to, in numbers and in words."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from atenbench.ingest import REJECTS
from atenbench.report_tables import page, write_table
from atenbench.summary import in_words, summarized, write_summary
from curated import SQL
from looked_at import HOSTILE, small_set


def summary(folder: Path) -> dict:
    tables = small_set(folder)
    bad = {"file": "timm/x.txt", "line": 3, "reason": "not a call", "text": "?"}
    pq.write_table(pa.Table.from_pylist([bad, bad], schema=REJECTS), tables["rejects"])
    given = {name: tables[name] for name in ("problems", "calls", "rejects")}
    return summarized(SQL / "summary.sql", given) | {"seconds_by_rule": {"tag": 1.5, "measure": 60}}


def test_the_numbers(tmp_path: Path) -> None:
    found = summary(tmp_path)
    assert {name: found[name] for name in list(found)[:10]} == {
        "lines": 9,
        "rejected": 2,
        "pairs": 7,
        "operators": 7,
        "models": 3,
        "synthetic": 1,
        "runnable": 6,
        "included": 4,
        "measured": 6,
        "overhead_dominated": 1,
    }
    assert sorted(found["by_reason"].values()) == [1, 1, 1]
    write_summary(found, tmp_path / "summary.json")
    assert '"pairs": 7' in (tmp_path / "summary.json").read_text()


def test_the_words(tmp_path: Path) -> None:
    text = in_words(summary(tmp_path))
    assert "9 trace lines, 7 problems of 7 operators, called by 3 models." in text
    assert "measure 60.0 s, tag 1.5 s" in text
    assert text.endswith("2 trace lines could not be read; they are in results/rejects.parquet.")


def test_the_reports_tables_escape_what_traces_say(tmp_path: Path) -> None:
    tables = small_set(tmp_path)
    given = {name: tables[name] for name in ("problems", "details")}
    for sql in sorted((SQL / "tables").glob("*.sql")):
        write_table(sql, given, tmp_path / f"{sql.stem}.html")
        text = (tmp_path / f"{sql.stem}.html").read_text()
        assert "<tbody>\n<tr>" in text and "<img" not in text, sql.stem
    assert "&lt;img src=x" in (tmp_path / "worth.html").read_text()


def test_cells_of_a_table() -> None:
    row = {"n": 1234, "x": 0.123456, "y": 1.6e6, "s": HOSTILE}
    text = page("t", list(row), [row, dict.fromkeys(row)])
    numbers = [f'<td class="number">{shown}</td>' for shown in ("1,234", "0.1235", "1,600,000")]
    assert f"<tr>{''.join(numbers)}<td>&lt;img" in text
    assert "<tr><td></td><td></td><td></td><td></td></tr>" in text
