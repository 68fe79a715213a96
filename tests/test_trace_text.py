"""Trace text again: parquet → trace → parquet is the identity."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from atenbench.ingest import ingest
from atenbench.query import write
from atenbench.trace import find_traces
from atenbench.trace_text import write_all, write_models

REPOSITORY = Path(__file__).parent.parent
SQL = REPOSITORY / "workflow/sql"

TRACES = {
    "timm/a.train.txt": "Operator: aten.relu.default\ncnt: 3, ((T([2], f16),), {})\n"
    "cnt: 1, ((T([4],f16),),{})\nOperator: aten.add.Tensor\ncnt: 2, ((T([2], f16), 1e-5), {})\n",
    "timm/a.eval.txt": "Operator: aten.relu.default\ncnt: 5, ((T([4], f16),), {})\n",
    "mine/b.txt": "Operator: aten.relu.default\ncnt: 3, ((T([2], f16),), {})\n",
    "made/up.txt": "Operator: aten.relu.default\ncnt: 0, ((T([8], f16),), {})\n",
}


def tables(folder: Path, traces: list[Path]) -> tuple[str, str]:
    """The tables of calls and of cases."""
    calls, cases = folder / "calls.parquet", folder / "cases.parquet"
    found = find_traces(traces)
    ingest(found, {"timm": "TIMM"}, {}, "error", calls, folder / "rejects.parquet")
    write(SQL / "cases.sql", cases, {"calls": calls})
    return str(calls), str(cases)


def columns(cases: str, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in pq.read_table(cases).to_pylist()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in TRACES.items():
        path = tmp_path / "traces" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path


def test_one_trace_of_all_problems_gives_them_again(folder: Path) -> None:
    _, cases = tables(folder, [folder / "traces"])
    write_all(cases, str(SQL / "all_trace_lines.sql"), folder / "again/traces/all.txt")
    _, again = tables(folder / "again", [folder / "again"])
    kept = ("uuid", "op_name", "args", "count", "is_synthetic")
    assert columns(again, *kept) == columns(cases, *kept)
    assert len(columns(cases, "uuid")) == 4


def test_traces_of_models_give_their_problems_with_models_and_modes(folder: Path) -> None:
    calls, cases = tables(folder, [folder / "traces"])
    write_models(calls, cases, str(SQL / "trace_lines.sql"), folder / "again/models")
    written = {str(p.relative_to(folder / "again/models")) for p in folder.glob("again/*/*/*")}
    assert written == {"TIMM/a.train.txt", "TIMM/a.eval.txt", "mine/b.txt"}
    _, again = tables(folder / "again", [folder / "again/models"])
    kept = ("uuid", "args", "count", "in_models", "is_synthetic")
    real = [row for row in columns(cases, *kept) if not row[-1]]
    assert columns(again, *kept) == real and len(real) == 3
    # Merged spellings are written in the one that is kept, each call under its own model.
    text = (folder / "again/models/TIMM/a.train.txt").read_text()
    assert text == (
        "Operator: aten.add.Tensor\ncnt: 2, ((T([2], f16), 1e-5), {})\n"
        "Operator: aten.relu.default\ncnt: 3, ((T([2], f16),), {})\ncnt: 1, ((T([4], f16),), {})\n"
    )


def test_models_that_are_gone_leave_no_file_behind(folder: Path) -> None:
    models = folder / "again/models"
    for _ in range(2):
        calls, cases = tables(folder, [folder / "traces"])
        write_models(calls, cases, str(SQL / "trace_lines.sql"), models)
        (folder / "traces/mine/b.txt").unlink(missing_ok=True)
    assert not (models / "mine").exists() and (models / "TIMM/a.eval.txt").exists()


def test_the_repositorys_own_traces_give_themselves_again(tmp_path: Path) -> None:
    _, cases = tables(tmp_path, [REPOSITORY / "resources/traces"])
    write_all(cases, str(SQL / "all_trace_lines.sql"), tmp_path / "again/traces/all.txt")
    _, again = tables(tmp_path / "again", [tmp_path / "again"])
    kept = ("uuid", "op_name", "args", "count", "is_synthetic")
    assert columns(again, *kept) == columns(cases, *kept)
