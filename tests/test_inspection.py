"""What is known of a problem without a device."""

import logging
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from atenbench.inspect_cases import INSPECTED, Kept, inspect_table
from atenbench.inspection import inspect_case

X = "T([4, 4], f16)"


def status(op_name: str, args: str) -> tuple[str, str | None]:
    facts = inspect_case(op_name, args)
    return facts["meta_status"], facts["meta_reason"]


@pytest.mark.parametrize(
    ("op_name", "args", "expected"),
    [
        ("aten.relu.default", f"(({X},), {{}})", ("ok", None)),
        ("aten.upsample_nearest2d_backward.vec", f"(({X},), {{}})",
         ("failed", "operator not in this torch")),
        ("aten.im2col_backward.default", f"(({X},), {{}})",
         ("failed", "operator not in this torch")),
        ("aten.nosuch.default", f"(({X},), {{}})", ("failed", "operator not in this torch")),
        ("nosuch.relu.default", f"(({X},), {{}})", ("failed", "operator not in this torch")),
        ("aten.relu.nosuch", f"(({X},), {{}})", ("failed", "operator not in this torch")),
        ("aten.add.Tensor", f"(({X},), {{}})", ("failed", "arguments do not fit the schema")),
        ("aten.add.Tensor", "((1, 'x'), {})", ("failed", "arguments do not fit the schema")),
        ("aten.relu.default", f"(({X},), {{'beta': 1}})",
         ("failed", "arguments do not fit the schema")),
        ("aten.mm.default", f"(({X}, T([5, 4], f16)), {{}})", ("failed", "shapes do not fit")),
        ("aten.relu.default", "((T([9223372036854775807, 3], f16),), {})", ("failed", "too large")),
        ("aten.relu.default", "((T([4611686018427387904], f16),), {})", ("failed", "too large")),
        ("aten.relu.default", "((T([2, 2], f16, stride=(9223372036854775807, 1)),), {})",
         ("failed", "too large")),
        ("aten.add_.Tensor", "((T([4, 4], f16, stride=(0, 1)), 1), {})",
         ("failed", "writes to overlapping memory")),
        ("aten.add.Tensor", "((T([4, 4], f16, stride=(0, 1)), 1), {})", ("ok", None)),
        ("aten.nonzero.default", f"(({X},), {{}})", ("undecided", None)),
        ("aten._to_copy.default", f"(({X},), {{'device': \"torch.device('cpu')\"}})", ("ok", None)),
        ("aten._to_copy.default", f"(({X},), {{'device': device(type='cuda')}})", ("ok", None)),
        ("aten.relu.default", "((T([0, 4], f32, stride=(8, 1)),), {})", ("ok", None)),
        ("aten.sum.default", "((T([], f32),), {})", ("ok", None)),
    ],
)  # fmt: skip
def test_meta_run(op_name: str, args: str, expected: tuple[str, str | None]) -> None:
    assert status(op_name, args) == expected


def test_the_raw_error_is_kept_beside_the_fixed_reason() -> None:
    facts = inspect_case("aten.mm.default", f"(({X}, T([5, 4], f16)), {{}})")
    assert facts["meta_error"].startswith("RuntimeError: ")
    assert "\n" not in facts["meta_error"]


CLASSES = ("is_random", "is_in_place", "is_view", "is_creation", "needs_indices")


@pytest.mark.parametrize(
    ("op_name", "args", "classes"),
    [
        ("aten.add.Tensor", f"(({X}, {X}), {{}})", set()),
        ("aten.bernoulli_.float", f"(({X}, 0.9), {{}})", {"is_random", "is_in_place"}),
        ("aten.bernoulli_.float", f"(({X}, 0.0), {{}})", {"is_random", "is_in_place"}),
        ("aten.relu_.default", f"(({X},), {{}})", {"is_in_place"}),
        ("aten.split.Tensor", f"(({X}, 2), {{}})", {"is_view"}),
        ("aten.unbind.int", f"(({X},), {{}})", {"is_view"}),
        ("aten._unsafe_view.default", f"(({X}, [16]), {{}})", {"is_view"}),
        ("aten.new_zeros.default", f"(({X}, [3]), {{}})", {"is_creation"}),
        ("aten.empty_like.default", f"(({X},), {{}})", {"is_creation"}),
        ("aten.arange.default", "((3,), {})", {"is_creation"}),
        ("aten._to_copy.default", f"(({X},), {{'dtype': f32}})", set()),
        ("aten.clone.default", f"(({X},), {{}})", set()),
        ("aten.embedding.default", "((T([2, 128], f16), T([1, 512], i64)), {})", {"needs_indices"}),
        ("aten.index_add_.default", f"(({X}, 0, T([2], i64), T([2, 4], f16)), {{}})",
         {"is_in_place", "needs_indices"}),
        ("aten.native_dropout.default", f"(({X}, 0.5, True), {{}})", {"is_random"}),
    ],
)  # fmt: skip
def test_classes(op_name: str, args: str, classes: set[str]) -> None:
    facts = inspect_case(op_name, args)
    assert {name for name in CLASSES if facts[name]} == classes


ATTENTION = "T([2, 4, 16, 8], f16)"


@pytest.mark.parametrize(
    ("tail", "random"),
    [("", False), (", 0.0", False), (", 0.1", True), (", 0.0, True", False)],
)
def test_attention_is_random_only_with_dropout(tail: str, random: bool) -> None:
    args = f"(({ATTENTION}, {ATTENTION}, {ATTENTION}{tail}), {{}})"
    op_name = "aten._scaled_dot_product_flash_attention.default"
    op = torch.ops.aten._scaled_dot_product_flash_attention.default
    assert torch.Tag.nondeterministic_seeded in op.tags
    assert inspect_case(op_name, args)["is_random"] is random


def test_dropout_given_by_keyword() -> None:
    args = f"(({ATTENTION}, {ATTENTION}, {ATTENTION}), {{'dropout_p': 0.1}})"
    assert inspect_case("aten._scaled_dot_product_flash_attention.default", args)["is_random"]


@pytest.mark.parametrize(
    ("args", "understood"),
    [
        (f"(({X}, T([2], f16, stride=(2,)), inf, 'cuda', torch.strided, f32), {{}})", True),
        ("((T([2], c32), T([2], u8), T([2], bf16)), {'dtype': torch.bool})", True),
        ("((ST([5, 3], f32, torch.sparse_coo, False, 4),), {})", False),
        ("((nan,), {})", False),
        ("((device(type='cuda'),), {})", False),
        ("((T([2], u16),), {})", False),
        ("((T([2], f8e4m3fn),), {})", False),
        ("(([1, (u32,)],), {})", False),
    ],
)
def test_what_backendbenchs_reader_understands(args: str, understood: bool) -> None:
    assert inspect_case("aten.relu.default", args)["reader_understands"] is understood


@pytest.mark.parametrize(
    ("op_name", "args", "moved", "flops"),
    [
        ("aten.add.Tensor", f"(({X}, {X}), {{}})", 3 * 32, None),
        ("aten.add_.Tensor", f"(({X}, {X}), {{}})", 3 * 32, None),
        ("aten.split.Tensor", f"(({X}, 2), {{}})", 0, None),
        ("aten.new_zeros.default", f"(({X}, [8]), {{}})", 16, None),
        ("aten.mm.default", f"(({X}, T([4, 2], f16)), {{}})", 32 + 16 + 16, 2 * 4 * 4 * 2),
        ("aten.mm.default", "((T([300, 400], f16, stride=(0, 0)), T([400, 8], f16)), {})",
         2 + 6400 + 4800, 2 * 300 * 400 * 8),
    ],
)  # fmt: skip
def test_sizes_and_flops(op_name: str, args: str, moved: int, flops: int | None) -> None:
    facts = inspect_case(op_name, args)
    assert (facts["bytes_moved"], facts["flops"]) == (moved, flops)


def test_degenerate_inputs_and_dtypes() -> None:
    facts = inspect_case(
        "aten.mm.default", "((T([300, 400], f16, stride=(0, 0)), T([400, 8], f32)), {})"
    )
    assert facts["degenerate_inputs"] and facts["dtypes"] == ["f16", "f32"]
    assert not inspect_case("aten.relu.default", "((T([1], f16),), {})")["degenerate_inputs"]


def inspected(
    tmp_path: Path, cases: list[tuple[str, str]], kept: Kept | None = None
) -> list[dict[str, Any]]:
    rows = [{"uuid": f"{n:04d}", "op_name": op, "args": a} for n, (op, a) in enumerate(cases)]
    schema = pa.schema([(name, pa.string()) for name in ("uuid", "op_name", "args")])
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), tmp_path / "cases.parquet")
    inspect_table(tmp_path / "cases.parquet", tmp_path / "inspected.parquet", 2, kept)
    table = pq.read_table(tmp_path / "inspected.parquet")
    assert table.schema.equals(INSPECTED)
    rows = table.to_pylist()
    assert [row["uuid"] for row in rows] == [f"{n:04d}" for n in range(len(cases))]
    return rows


def test_an_operator_that_eats_memory_costs_only_itself(tmp_path: Path) -> None:
    """A thousand million views would take hundreds of GiB even though no element is allocated."""
    cases = [
        ("aten.relu.default", f"(({X},), {{}})"),
        ("aten.unbind.int", "((T([1000000000], f16),), {})"),
        ("aten.abs.default", f"(({X},), {{}})"),
    ]
    rows = inspected(tmp_path, cases)
    assert [(row["meta_status"], row["meta_reason"]) for row in rows] == [
        ("ok", None),
        ("failed", "out of memory"),
        ("ok", None),
    ]


def test_no_cases_are_no_rows(tmp_path: Path) -> None:
    assert inspected(tmp_path, []) == []


def test_only_what_is_new_is_inspected(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cases = [(f"aten.{name}.default", f"(({X},), {{}})") for name in ("relu", "abs", "neg")]

    def now(cases: list[tuple[str, str]], key: str) -> int:
        caplog.clear()
        with caplog.at_level(logging.INFO, "atenbench"):
            inspected(tmp_path, cases, Kept(tmp_path / "kept.parquet", key))
        (said,) = re.findall(r"(\d+) of them inspected now", caplog.text)
        return int(said)

    assert now(cases[:2], "a") == 2
    assert now(cases, "a") == 1
    after = (tmp_path / "inspected.parquet").read_bytes()
    assert now(cases, "a") == 0
    assert (tmp_path / "inspected.parquet").read_bytes() == after
    assert now(cases, "b") == 3  # other code
    assert pq.read_table(tmp_path / "inspected.parquet").num_rows == 3


def test_what_ended_its_worker_is_tried_again(tmp_path: Path) -> None:
    cases = [("aten.unbind.int", "((T([1000000000], f16),), {})")]
    kept = Kept(tmp_path / "kept.parquet", "a")
    first = inspected(tmp_path, cases, kept)
    assert first[0]["meta_reason"] == "out of memory"
    path = tmp_path / "kept.parquet"
    table = pq.read_table(path)
    told = pa.array(["never seen again"])
    index = table.column_names.index("meta_error")
    path.unlink()
    pq.write_table(table.set_column(index, table.field(index), told), path)
    assert inspected(tmp_path, cases, kept) == first
