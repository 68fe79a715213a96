"""Calls → cases and the mapping: what is merged, counted, named and flagged."""

import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from atenbench.aggregate import CASES, aggregate
from atenbench.call_table import CALLS
from atenbench.errors import UserError
from atenbench.mapping import MAPPING, map_to_models
from atenbench.record import schema

SQL = Path(__file__).parents[1] / "workflow" / "sql"
A = "((T([2], f16),), {})"
LARGEST = 2**63 - 1


def call(args: str = A, count: int = 1, model: str = "TIMM/resnet18", **fields) -> dict:
    suite, name = model.split("/")
    line = {"op_name": "aten.relu.default", "args": args, "canonical": None, "count": count}
    origin = {"suite": suite, "model": name, "mode": None, "file": f"{model}.txt", "line": 1}
    return line | origin | fields


@pytest.fixture
def run(tmp_path: Path):
    def run(*calls: dict, threads: int = 2) -> list[dict]:
        pq.write_table(pa.Table.from_pylist(list(calls), schema=CALLS), tmp_path / "calls.parquet")
        cases = str(tmp_path / "cases.parquet")
        aggregate(str(tmp_path / "calls.parquet"), str(SQL / "cases.sql"), cases, threads)
        mapping = (str(tmp_path / "mapping.parquet"), str(tmp_path / "mapping.json"))
        map_to_models(cases, str(SQL / "mapping.sql"), *mapping, threads)
        return pq.read_table(cases).to_pylist()

    return run


def mapping(folder: Path) -> list[dict]:
    return pq.read_table(folder / "mapping.parquet").to_pylist()


def test_the_key_is_the_hash_of_arguments_and_operator(run) -> None:
    (case,) = run(call())
    assert case["uuid"] == hashlib.sha256(f"{A}aten.relu.default".encode()).hexdigest()


def test_repeated_lines_become_one_case(run) -> None:
    """B17: twice in one file and again in another."""
    (case,) = run(call(count=3), call(count=3), call(count=3, model="HuggingFace/Bert"))
    assert (case["count"], case["in_models"]) == (9, ["HuggingFace/Bert", "TIMM/resnet18"])
    assert (case["in_models_count"], case["is_synthetic"]) == (2, False)


def test_a_made_up_problem_that_is_also_real_is_real(run, tmp_path: Path) -> None:
    """B18."""
    (case,) = run(call(count=0, model="made/up"), call(count=4))
    assert (case["count"], case["is_synthetic"], case["in_models"]) == (4, False, ["TIMM/resnet18"])
    assert [row["used in model"] for row in mapping(tmp_path)] == ["TIMM/resnet18"]


def test_a_problem_that_is_only_made_up_is_synthetic(run, tmp_path: Path) -> None:
    (case,) = run(call(count=0, model="made/up"), call(count=0, model="made/too"))
    assert (case["count"], case["is_synthetic"]) == (0, True)
    assert (case["in_models"], case["in_models_count"]) == ([], 0)
    assert mapping(tmp_path) == []


def test_a_model_that_calls_and_makes_up_the_same_counts_once(run) -> None:
    (case,) = run(call(count=0), call(count=2), call(count=1, mode="eval"))
    assert (case["in_models"], case["count"]) == (["TIMM/resnet18"], 3)


def test_operators_and_models_are_told_apart_by_their_full_names(run, tmp_path: Path) -> None:
    """B19: the same arguments under two operators, the same model name in two suites."""
    cases = run(
        call(op_name="aten.mul.Tensor", model="TIMM/densenet121"),
        call(op_name="aten.add.Tensor", model="TIMM/densenet121"),
        call(op_name="aten.add.Tensor", model="TorchBench/densenet121"),
    )
    assert [(case["op_name"], case["in_models_count"]) for case in cases] == [
        ("aten.add.Tensor", 2),
        ("aten.mul.Tensor", 1),
    ]
    assert len({case["uuid"] for case in cases}) == 2
    assert mapping(tmp_path) == [
        {"operator name": operator, "used in model": model, "args": A}
        for operator, model in (
            ("aten.add.Tensor", "TIMM/densenet121"),
            ("aten.add.Tensor", "TorchBench/densenet121"),
            ("aten.mul.Tensor", "TIMM/densenet121"),
        )
    ]


CANONICAL = "((T([2], f16), 1e-05), {})"
RESPELLED = "((T([2], f16), 0.00001), {})"
WITH_COMMA = "((T([2], f16), 1e-05,), {})"


def spelled(args: str, **fields) -> dict:
    return call(args, canonical=None if args == CANONICAL else CANONICAL, **fields)


@pytest.mark.parametrize("common", [CANONICAL, RESPELLED])
def test_spellings_are_merged_under_the_commonest(run, tmp_path: Path, common) -> None:
    """P30: its count is summed over all lines before it is compared."""
    rare = RESPELLED if common == CANONICAL else CANONICAL
    cases = run(
        spelled(rare, count=5, model="TIMM/a"),
        spelled(common, count=3, model="TIMM/b"),
        spelled(common, count=3, model="TIMM/c"),
        spelled(rare, count=1, model="TIMM/d", op_name="aten.add.Tensor"),
    )
    assert [(case["op_name"], case["args"], case["count"]) for case in cases] == [
        ("aten.add.Tensor", rare, 1),
        ("aten.relu.default", common, 11),
    ]
    expected = hashlib.sha256(f"{common}aten.relu.default".encode()).hexdigest()
    assert cases[1]["uuid"] == expected
    assert cases[1]["in_models"] == ["TIMM/a", "TIMM/b", "TIMM/c"]
    named = {(row["operator name"], row["args"]) for row in mapping(tmp_path)}
    assert named == {("aten.add.Tensor", rare), ("aten.relu.default", common)}


@pytest.mark.parametrize("counts", [(2, 2, 2), (0, 0, 0)])
def test_spellings_that_are_equally_common_merge_under_the_first(run, counts) -> None:
    first, second, third = sorted([CANONICAL, RESPELLED, WITH_COMMA])
    spellings = zip((third, first, second), counts, strict=True)
    cases = run(*(spelled(args, count=count) for args, count in spellings))
    assert [(case["args"], case["count"]) for case in cases] == [(first, sum(counts))]


def test_counts_up_to_64_bits_are_exact_and_more_is_an_error(run) -> None:
    (case,) = run(call(count=LARGEST - 1), call(count=1))
    assert case["count"] == LARGEST
    with pytest.raises(UserError, match=r"aten\.relu\.default: .*9223372036854775808"):
        run(call(count=LARGEST), call(count=1), call(op_name="aten.add.Tensor"))


def test_no_calls_at_all(run, tmp_path: Path) -> None:
    assert run() == []
    assert json.loads((tmp_path / "mapping.json").read_text()) == []
    assert pq.read_schema(tmp_path / "cases.parquet").equals(CASES)
    assert pq.read_schema(tmp_path / "mapping.parquet").equals(schema(MAPPING))


def test_order_and_bytes_do_not_depend_on_the_threads(run, tmp_path: Path) -> None:
    """B27."""
    calls = [
        call(
            f"((T([{n % 700}], f16),), {{}})",
            op_name=f"aten.op{n % 13}.default",
            model=f"suite{n % 3}/model{n % 101}",
        )
        for n in range(20_000)
    ]
    written = set()
    for threads, lines in ((1, calls), (4, calls[::-1])):
        cases = run(*lines, threads=threads)
        assert cases == sorted(cases, key=lambda case: (case["op_name"], case["args"]))
        assert all(case["in_models"] == sorted(set(case["in_models"])) for case in cases)
        assert len(cases) == 13 * 700
        files = ("cases.parquet", "mapping.parquet", "mapping.json")
        written.add(tuple((tmp_path / file).read_bytes() for file in files))
    assert len(written) == 1


def test_the_mapping_is_the_same_in_both_formats(run, tmp_path: Path) -> None:
    run(call(), call('(("é", "\u2028"), {})', model="TIMM/b"), call(model="TIMM/b"))
    text = (tmp_path / "mapping.json").read_text()
    assert json.loads(text) == mapping(tmp_path)
    assert [field.name for field in MAPPING] == list(mapping(tmp_path)[0])
    assert len(text.split("\n")) == 1 + 3 + 1 + 1  # a record a line, between brackets
