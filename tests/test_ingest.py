"""Traces to the tables of calls and rejects."""

import logging
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from atenbench.call_table import CALLS
from atenbench.errors import UserError
from atenbench.ingest import REJECTS, ingest, read_renames
from atenbench.trace import find_traces

A = "((T([2], f16),), {})"
GOOD = f"Operator: aten.relu.default\ncnt: 3, {A}\ncnt: 1, ((T([4],f16),),{{}})\n"
BAD = f"Operator: aten.relu.default\ncnt: 3, ((T([2], f1\ncnt: 4, {A}\nOperatr: x\ncnt: 5, {A}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in {"timm/resnet18.train.txt": GOOD, "mine/m.txt": GOOD}.items():
        path = tmp_path / "traces" / name
        path.parent.mkdir(parents=True)
        path.write_text(content)
    return tmp_path


def run(folder: Path, on_bad_line: str = "error") -> tuple[Path, Path]:
    calls, rejects = folder / "calls.parquet", folder / "rejects.parquet"
    traces = find_traces([folder / "traces"])
    ingest(traces, {"timm": "TIMM"}, {}, on_bad_line, calls, rejects)
    return calls, rejects


def test_every_line_is_a_row(folder: Path) -> None:
    calls, rejects = map(pq.read_table, run(folder))
    assert calls.schema.equals(CALLS) and rejects.schema.equals(REJECTS)
    assert rejects.num_rows == 0
    rows = calls.to_pylist()
    assert [
        (row["suite"], row["model"], row["mode"], row["file"], row["line"]) for row in rows
    ] == [
        ("mine", "m", None, "mine/m.txt", 2),
        ("mine", "m", None, "mine/m.txt", 3),
        ("TIMM", "resnet18", "train", "timm/resnet18.train.txt", 2),
        ("TIMM", "resnet18", "train", "timm/resnet18.train.txt", 3),
    ]
    assert [(row["args"], row["canonical"]) for row in rows[:2]] == [
        (A, None),
        ("((T([4],f16),),{})", "((T([4], f16),), {})"),
    ]


def test_bad_lines_stop_the_run_after_all_are_listed(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bad = folder / "traces/mine/bad.txt"
    bad.write_text(BAD)
    with pytest.raises(UserError, match="3 bad lines"):
        run(folder)
    told = [r.message for r in caplog.records if r.levelno == logging.ERROR]
    assert [line.split(": ")[0] for line in told] == [f"{bad}:{number}" for number in (2, 4, 5)]
    assert not list(folder.glob("*.parquet")) and not list(folder.glob(".*"))


def test_bad_lines_can_be_rejected_and_are_kept(folder: Path) -> None:
    (folder / "traces/mine/bad.txt").write_text(BAD)
    calls, rejects = map(pq.read_table, run(folder, "reject"))
    assert [(row["file"], row["line"], row["text"]) for row in rejects.to_pylist()] == [
        ("mine/bad.txt", 2, "cnt: 3, ((T([2], f1"),
        ("mine/bad.txt", 4, "Operatr: x"),
        ("mine/bad.txt", 5, f"cnt: 5, {A}"),
    ]
    assert calls.num_rows == 5


def test_a_failed_run_leaves_the_earlier_tables(folder: Path) -> None:
    before = [path.read_bytes() for path in run(folder)]
    (folder / "traces/mine/bad.txt").write_text(BAD)
    with pytest.raises(UserError):
        run(folder)
    assert [(folder / f"{name}.parquet").read_bytes() for name in ("calls", "rejects")] == before


def test_same_traces_same_bytes(folder: Path) -> None:
    first = [path.read_bytes() for path in run(folder)]
    assert [path.read_bytes() for path in run(folder)] == first


@pytest.mark.parametrize("text", ["[1]", "a: 1", "a: {b: c}", "1: a"])
def test_renames_must_map_names_to_names(tmp_path: Path, text: str) -> None:
    (tmp_path / "renames.yaml").write_text(text)
    with pytest.raises(UserError, match="renames"):
        read_renames(tmp_path / "renames.yaml")


def test_renames_lead_to_operators_that_exist() -> None:
    from atenbench.operators import resolve

    renames = read_renames(Path(__file__).parent.parent / "config/renames.yaml")
    assert renames["aten.sum.SymInt"] == "aten.sum.dim_IntList"
    for name in renames.values():
        resolve(name)
