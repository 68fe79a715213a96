"""Published files as input: what carries over, what is refused, where it is fetched from."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from atenbench.call_table import CALLS
from atenbench.errors import UserError
from atenbench.ingest import ingest
from atenbench.published import read_published
from atenbench.query import fetch
from atenbench.sources import told_apart
from atenbench.trace import BadLine, find_traces

REPOSITORY = Path(__file__).parent.parent
CASES_SQL = REPOSITORY / "workflow/sql/cases.sql"

RELU = "((T([2], f16),), {})"
ROWS = [
    {
        "op_name": "aten.add.Tensor",
        "args": "((T([2], f16), 1), {})",
        "count": 7,
        "is_synthetic": False,
        "in_models": ["TIMM/a", "TIMM/b", "mine/a"],
    },
    {
        "op_name": "aten.relu.default",
        "args": RELU,
        "count": 0,
        "is_synthetic": True,
        "in_models": [],
    },
]


def save(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".json":
        path.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def cases_of(folder: Path, published: list[Path], renames: dict[str, str] | None = None) -> Any:
    calls = folder / "calls.parquet"
    ingest([], {}, renames or {}, "error", calls, folder / "rejects.parquet", published)
    assert pq.read_schema(calls).equals(CALLS)
    return fetch(CASES_SQL, {"calls": calls}).to_pylist()


@pytest.mark.parametrize("suffix", ["parquet", "json"])
def test_counts_models_and_flags_carry_over(tmp_path: Path, suffix: str) -> None:
    cases = cases_of(tmp_path, [save(tmp_path / f"p.{suffix}", ROWS)])
    assert [{name: case[name] for name in ROWS[0]} for case in cases] == ROWS


def test_files_with_the_older_columns_give_calls_of_no_named_model(tmp_path: Path) -> None:
    columns = ("op_name", "args", "count", "is_synthetic")
    old = [{name: row[name] for name in columns} | {"arg_size": 0.1} for row in ROWS]
    cases = cases_of(tmp_path, [save(tmp_path / "old.parquet", [*old, old[0]])])
    assert [(case["count"], case["in_models"], case["is_synthetic"]) for case in cases] == [
        (14, [], False),  # an old file holds a problem as often as it was appended
        (0, [], True),
    ]


def test_renames_hold_for_published_names_too(tmp_path: Path) -> None:
    row = {"op_name": "aten.sum.SymInt", "args": "((T([2], f16), [0]), {})", "count": 1}
    renames = {"aten.sum.SymInt": "aten.sum.dim_IntList"}
    (case,) = cases_of(tmp_path, [save(tmp_path / "p.json", [row])], renames)
    assert case["op_name"] == "aten.sum.dim_IntList"


def test_an_input_beside_traces_adds_to_them_and_warns_of_models_in_both(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "traces/timm").mkdir(parents=True)
    (tmp_path / "traces/timm/a.txt").write_text(f"Operator: aten.relu.default\ncnt: 2, {RELU}\n")
    calls = tmp_path / "calls.parquet"
    published = [save(tmp_path / "p.parquet", ROWS)]
    traces = find_traces([tmp_path / "traces"])
    ingest(traces, {"timm": "TIMM"}, {}, "error", calls, tmp_path / "rejects.parquet", published)
    relu = fetch(CASES_SQL, {"calls": calls}).to_pylist()[1]
    assert (relu["count"], relu["in_models"], relu["is_synthetic"]) == (2, ["TIMM/a"], False)
    (warning,) = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert "p.parquet" in warning and "TIMM/a" in warning and "TIMM/b" not in warning


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"op_name": "relu"}, "namespace.operator.overload"),
        ({"op_name": None}, "op_name must be text"),
        ({"args": "((T([2], f1"}, "not well formed"),
        ({"args": "(([\n1],), {})"}, "one line"),
        ({"args": "((__import__('os').getpid(),), {})"}, "can be called"),
        ({"count": -1}, "count must be"),
        ({"count": 1.5}, "count must be"),
        ({"count": True}, "count must be"),
        ({"count": 2**63}, "count must be"),
        ({"count": 2}, "3 models in in_models, but count is only 2"),
        ({"is_synthetic": True}, "is_synthetic is True and count 7"),
        ({"in_models": "TIMM/a"}, "list of text"),
        ({"in_models": ["resnet18"]}, "SUITE/model"),
        ({"in_models": ["../resnet18"]}, "SUITE/model"),
        ({"in_models": ["a/b/c"]}, "SUITE/model"),
        ({"in_models": ["a/b\u0000"]}, "SUITE/model"),
        ({"in_models": ["a/b.train"]}, "SUITE/model"),
    ],
)
def test_bad_rows_are_told_by_number_and_reason(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    path = save(tmp_path / "p.json", [ROWS[0], ROWS[0] | change])
    bad = [item for item in read_published(path, {}) if isinstance(item, BadLine)]
    assert [item.line for item in bad] == [2]
    assert reason in bad[0].reason
    with pytest.raises(UserError, match="1 bad line"):
        cases_of(tmp_path, [path])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.parquet", b"nothing", "p.parquet: cannot be read"),
        ("p.json", b"[{", "p.json: cannot be read"),
        ("p.json", b"[]", "no rows"),
        ("p.json", b'[{"op_name": "a", "args": "b"}]', "no count in it"),
    ],
)
def test_files_of_another_kind_are_refused(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        list(read_published(tmp_path / name, {}))
    with pytest.raises(UserError, match="No such file"):
        list(read_published(tmp_path / f"missing-{name}", {}))


def test_a_parquet_file_without_a_needed_column_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "p.parquet", [{"uuid": "x", "op_name": "aten.relu.default"}])
    with pytest.raises(UserError, match="no args, count in it"):
        list(read_published(path, {}))


def test_sources_are_told_apart_by_how_they_are_written() -> None:
    names = [
        "traces",
        "a/p.parquet",
        "p.json",
        "hf://datasets/o/n@1/p.parquet",
        "https://h/p.json#x",
    ]
    sources = told_apart(names)
    assert (sources.folders, sources.files, sources.remote) == (["traces"], names[1:3], names[3:])
    with pytest.raises(UserError, match="twice"):
        told_apart(["a", "a"])
    with pytest.raises(UserError, match="must end in"):
        told_apart(["https://h/p.csv"])
