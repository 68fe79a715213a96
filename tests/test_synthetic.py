"""Synthetic problems: which sizes grow together, how far, and what is said of those that do not."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from atenbench.arena import Arenas
from atenbench.arguments import Arguments, Tensor, parse, render
from atenbench.errors import UserError
from atenbench.growth import AT_LIMIT, MOST_ELEMENTS, NO_SIZE, NOT_DECIDED, Grower, Grown
from atenbench.ingest import ingest
from atenbench.inputs import Calls
from atenbench.inspection import inspect_case
from atenbench.operators import resolve
from atenbench.scaling import Size, scaled, sizes
from atenbench.synthetic import SYNTHETIC, make_synthetic
from atenbench.trace import find_traces

REPOSITORY = Path(__file__).parent.parent
MIB = 2**20

FAMILY = {
    "aten.relu.default": ["((T([8, 16], f16),), {})"],
    "aten.mm.default": ["((T([64, 64], f32), T([64, 64], f32)), {})"],
    "aten.bmm.default": ["((T([4, 8, 16], f32), T([4, 16, 8], f32)), {})"],
    "aten._unsafe_view.default": ["((T([8, 4, 16], f32), [32, 16]), {})"],
    "aten.native_group_norm.default": [
        "((T([2, 32, 64], f32), T([32], f32), T([32], f32), 2, 32, 64, 8, 1e-05), {})"
    ],
    "aten.convolution_backward.default": [
        "((T([8, 4, 16, 16], f32), T([8, 3, 16, 16], f32), T([4, 3, 3, 3], f32), [0], [1, 1], "
        "[1, 1], [1, 1], False, [0, 0], 1, [True, True, False]), {})"
    ],
    "aten.slice_backward.default": [
        "((T([16, 5, 8], f32), [16, 10, 8], 1, 0, 5, 1), {})",
        "((T([5, 8], f32), [10, 8], 0, 0, 5, 1), {})",
        "((T([4, 8], f32), [4, 8], 0, 0, 9223372036854775807, 1), {})",
    ],
    "aten.select_backward.default": [
        "((T([2, 8], f32), [3, 2, 8], 0, 0), {})",
        "((T([4, 8], f32), [4, 3, 8], 1, 0), {})",
    ],
    "aten.embedding_dense_backward.default": [
        "((T([8, 16, 32], f32), T([8, 16], i64), 100, 0, False), {})"
    ],
    "aten.new_zeros.default": ["((T([2], f32), [8, 32]), {})"],
    "aten.mean.default": ["((T([16, 32], f32),), {})"],
    "aten.mul_.Tensor": ["((T([16, 32], f32), T([16, 1], f32)), {})"],
    "aten.cat.default": ["(([T([4, 8], f32), T([4, 8], f32)], 1), {})"],
    "aten.addmm.default": ["((T([8], f32), T([8, 16], f32), T([16, 8], f32)), {})"],
    "aten.gather.default": ["((T([64], f32), 0, T([128], i64)), {})"],
    "aten.max_pool2d_with_indices_backward.default": [
        "((T([4, 8, 8, 8], f32), T([4, 8, 16, 16], f32), [2, 2], [2, 2], [0, 0], [1, 1], False, "
        "T([4, 8, 8, 8], i64)), {})"
    ],
}


def grow(op_name: str, args: str, limit: int = MIB, others: list[str] | None = None) -> Any:
    calls = [parse(text) for text in [args, *(others or FAMILY.get(op_name, []))]]
    return Grower(op_name, calls, limit).grow(calls[0])


@pytest.mark.parametrize(
    ("op_name", "args"), [(name, args) for name, found in FAMILY.items() for args in found]
)
def test_what_is_grown_is_valid_and_as_large_as_the_limit_allows(op_name: str, args: str) -> None:
    grown = grow(op_name, args)
    assert isinstance(grown, Grown), grown
    assert 3 * grown.bytes_before <= grown.bytes <= MIB
    assert inspect_case(op_name, grown.args)["meta_status"] == "ok"
    # With one more it would be over: the factor is the largest.
    op, call = resolve(op_name), parse(args)
    integers = range(len(op._schema.arguments))
    names = [declared.name for declared in op._schema.arguments]
    chosen = [size for size in sizes(call, integers) if named(size, names) in grown.sizes]
    assert len(chosen) == len(grown.sizes)
    larger = scaled(call, chosen, grown.factor)
    assert larger is not None and render(larger) == grown.args
    beyond = scaled(call, chosen, grown.factor + 1)
    assert beyond is not None
    facts = inspect_case(op_name, render(beyond))
    assert (
        facts["meta_status"] != "ok"
        or (facts["input_bytes"] or 0) + (facts["output_bytes"] or 0) > MIB
    )
    run_for_real(op_name, larger)


def named(size: Size, names: list[str]) -> str:
    argument, *inside = size.place
    assert isinstance(argument, int)
    items = "".join(f"[{position}]" for position in inside)
    return f"{names[argument]}{items}" + ("" if size.dim is None else f".{size.dim}")


def run_for_real(op_name: str, call: Arguments) -> None:
    import torch

    def memory(elements: int) -> torch.Tensor:
        return torch.empty(elements, dtype=torch.uint8)

    arenas = Arenas(memory, capacity=4 * MIB, special_capacity=4 * MIB)
    op = resolve(op_name)
    args, kwargs = Calls(op, call, arenas, torch.device("cpu")).take()
    op(*args, **kwargs)


@pytest.mark.parametrize(
    ("op_name", "expected"),
    [
        ("aten.bmm.default", ["mat2.0", "self.0"]),
        ("aten._unsafe_view.default", ["self.0", "size[0]"]),
        ("aten.native_group_norm.default", ["N", "input.0"]),
        ("aten.convolution_backward.default", ["grad_output.0", "input.0"]),
        ("aten.select_backward.default", ["grad_output.0", "input_sizes[1]"]),
        ("aten.mul_.Tensor", ["other.0", "self.0"]),
        ("aten.cat.default", ["tensors[0].0", "tensors[1].0"]),
        ("aten.new_zeros.default", ["size[0]"]),
    ],
)
def test_sizes_that_mean_the_same_grow_together(op_name: str, expected: list[str]) -> None:
    # In another call the batch and the channels, which are equal here by chance, differ.
    apart = {
        "aten.convolution_backward.default": [
            "((T([8, 8, 16, 16], f32), T([8, 3, 16, 16], f32), T([8, 3, 3, 3], f32), [0], [1, 1], "
            "[1, 1], [1, 1], False, [0, 0], 1, [True, True, False]), {})"
        ]
    }
    args = apart.get(op_name, FAMILY[op_name])[0]
    assert grow(op_name, args, others=FAMILY[op_name]).sizes == expected


def test_strides_grow_with_the_dimensions_they_step_over() -> None:
    def strided(args: str, dim: int) -> str | None:
        call = parse(args)
        chosen = [size for size in sizes(call, ()) if size.dim == dim]
        larger = scaled(call, chosen, 3)
        return None if larger is None else render(larger)

    assert strided("((T([4, 8], f16, stride=(1, 4)),), {})", 0) == (
        "((T([12, 8], f16, stride=(1, 12)),), {})"
    )
    assert strided("((T([4, 8], f16, stride=(16, 1)),), {})", 0) == (
        "((T([12, 8], f16, stride=(16, 1)),), {})"
    )
    assert strided("((T([4, 8], f16, stride=(16, 1)),), {})", 1) == (
        "((T([4, 24], f16, stride=(48, 1)),), {})"
    )
    assert strided("((T([4, 8], f16, stride=(0, 1)),), {})", 0) == (
        "((T([12, 8], f16, stride=(0, 1)),), {})"
    )
    # Grown, elements of these rows would lie in each other's gaps.
    assert strided("((T([4, 3], f16, stride=(5, 2)),), {})", 1) is None


def test_why_a_call_does_not_grow_is_said() -> None:
    assert grow("aten.relu.default", "((T([], f16),), {})") == NO_SIZE
    assert grow("aten.relu.default", "((T([1024, 400], f16),), {})", 2 * MIB) == AT_LIMIT
    assert grow("aten.relu.default", "((T([1024, 4000], f16),), {})", 2 * MIB) == AT_LIMIT
    assert grow("aten.nonzero.default", "((T([8], f16),), {})") == NOT_DECIDED
    assert grow("aten.mm.default", "((T([2, 3], f16), T([2, 3], f16)), {})") == "shapes do not fit"


def test_no_tensor_gets_more_elements_than_32_bits_count() -> None:
    grown = grow("aten.relu.default", "((T([3, 7], b8),), {})", 2**40)
    (tensor,) = parse(grown.args).tensors()
    assert isinstance(tensor, Tensor) and MOST_ELEMENTS - 21 < tensor.numel <= MOST_ELEMENTS


TRACE = """Operator: aten.relu.default
cnt: 1, ((T([8, 16], f16),), {})
cnt: 1, ((T([16, 16],f16),), {})
cnt: 1, ((T([2], f16),), {})
Operator: aten.nosuch.default
cnt: 1, ((T([8, 16], f16),), {})
Operator: aten.neg.default
cnt: 0, ((T([800, 16], f16),), {})
Operator: aten.abs.default
cnt: 1, ((T([64], f16),), {})
cnt: 1, ((T([32], f16),), {})
"""


@pytest.fixture
def calls(tmp_path: Path) -> str:
    (tmp_path / "traces/mine").mkdir(parents=True)
    (tmp_path / "traces/mine/m.txt").write_text(TRACE)
    table = tmp_path / "calls.parquet"
    traces = find_traces([tmp_path / "traces"])
    ingest(traces, {}, {}, "error", table, tmp_path / "rejects.parquet")
    return str(table)


def make(calls: str, folder: Path, workers: int, limit_gib: float = 2**-14) -> list[dict[str, Any]]:
    sql = str(REPOSITORY / "workflow/sql/real_calls.sql")
    trace, table = folder / "s/synthetic/scaled.txt", folder / "synthetic.parquet"
    make_synthetic(calls, sql, trace, table, largest=2, limit_gib=limit_gib, workers=workers)
    assert pq.read_schema(table).equals(SYNTHETIC)
    return list(pq.read_table(table).to_pylist())


def test_the_largest_of_each_operator_become_a_trace_whatever_the_number_of_workers(
    calls: str, tmp_path: Path
) -> None:
    rows = make(calls, tmp_path, workers=1)
    make(calls, tmp_path / "again", workers=2)
    for name in ("s/synthetic/scaled.txt", "synthetic.parquet"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / name).read_bytes()
    assert [(row["op_name"], row["source"], row["reason"]) for row in rows] == [
        ("aten.abs.default", "((T([64], f16),), {})", None),
        (
            "aten.abs.default",
            "((T([32], f16),), {})",
            "it grows to the same call as a larger one",
        ),
        ("aten.nosuch.default", "((T([8, 16], f16),), {})", "operator not in this torch"),
        ("aten.relu.default", "((T([16, 16], f16),), {})", None),
        (
            "aten.relu.default",
            "((T([8, 16], f16),), {})",
            "it grows to the same call as a larger one",
        ),
    ]
    # 2^-14 GiB are 64 KiB, half of it for the result.
    assert (tmp_path / "s/synthetic/scaled.txt").read_text() == (
        "Operator: aten.abs.default\ncnt: 0, ((T([16384], f16),), {})\n"
        "Operator: aten.relu.default\ncnt: 0, ((T([1024, 16], f16),), {})\n"
    )
    assert rows[0] | {"sizes": None} == {
        "op_name": "aten.abs.default",
        "source": "((T([64], f16),), {})",
        "args": "((T([16384], f16),), {})",
        "factor": 256,
        "sizes": None,
        "source_bytes": 256,
        "bytes": 65536,
        "reason": None,
    }


def test_a_limit_that_leaves_nothing_is_the_users_to_raise(calls: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="synthetic_memory_gib"):
        make(calls, tmp_path, workers=1, limit_gib=2**-28)
    assert not (tmp_path / "synthetic.parquet").exists()
