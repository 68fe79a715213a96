"""Inputs: valid by rule, disjoint, fresh for each call, as large as the text says."""

from __future__ import annotations

import itertools
import tomllib
from typing import Any

import pytest
import torch

from atenbench import input_rules
from atenbench.arena import Arenas, random_values
from atenbench.arguments import DTYPES, parse
from atenbench.input_rules import NoValidInput, tensor_inputs, used_ranges
from atenbench.inputs import Calls, needed_bytes
from atenbench.operators import resolve
from atenbench.tensors import torch_dtype

MIB = 2**20
CPU = torch.device("cpu")


def allocate(nbytes: int) -> torch.Tensor:
    return torch.empty(nbytes, dtype=torch.uint8)


@pytest.fixture(scope="module")
def arenas() -> Arenas:
    return Arenas(allocate, capacity=4 * MIB, special_capacity=MIB, limit=256 * MIB)


def calls(arenas: Arenas, op_name: str, args: str) -> Calls:
    return Calls(resolve(op_name), parse(args), arenas, CPU)


# ruff: noqa: E501
# One call of each operator of the public traces that needs valid indices, and of some that do not
# occur there.
INDEX_CALLS = {
    "aten._embedding_bag.default": "((T([9, 4], f16), T([50], i64), T([7], i64), False, 0, True, T([50], f16)), {})",
    "aten._embedding_bag_per_sample_weights_backward.default": "((T([7, 4], f16), T([9, 4], f16), T([50], i64), T([7], i64), T([50], i64), 0), {})",
    "aten._index_put_impl_.default": "((T([8, 5], f16), [T([3], i64), T([3], i64)], T([3], f16), True, True), {})",
    "aten._sparse_coo_tensor_with_dims_and_tensors.default": "((2, 0, [3, 900], T([2, 40], i64), T([40], f16)), {'dtype': f16, 'layout': torch.sparse_coo, 'device': 'cpu'})",
    "aten.embedding.default": "((T([5, 8], f16), T([2, 33], i64)), {})",
    "aten.embedding_dense_backward.default": "((T([2, 33, 8], f16), T([2, 33], i64), 5, -1, False), {})",
    "aten.gather.default": "((T([5, 7], f16), 1, T([5, 20], i64)), {})",
    "aten.index.Tensor": "((T([4, 6, 300], f16), [None, T([20], i64), T([20], i64)]), {})",
    "aten.index_add.default": "((T([5, 7], f16), 0, T([9], i64), T([9, 7], f16)), {})",
    "aten.index_add_.default": "((T([5, 7], f16), 0, T([9], i32), T([9, 7], f16)), {})",
    "aten.index_put.default": "((T([5, 7], f16), [T([5], b8), None], T([3, 7], f16)), {})",
    "aten.index_put_.default": "((T([3, 4, 70], f16), [T([3, 4], b8), T([9], i64)], T([], f16)), {})",
    "aten.index_select.default": "((T([7, 5], f16), -1, T([40], i64)), {})",
    "aten.max_pool2d_with_indices_backward.default": "((T([1, 2, 4, 4], f16), T([1, 2, 8, 8], f16), [2, 2], [2, 2], [0, 0], [1, 1], False, T([1, 2, 4, 4], i64)), {})",
    "aten.nll_loss_forward.default": "((T([40, 3], f16), T([40], i64), None, 1, -100), {})",
    "aten.nll_loss_backward.default": "((T([], f16), T([40, 3], f16), T([40], i64), None, 1, -100, T([], f16)), {})",
    "aten.scatter.src": "((T([5, 7], f16), 1, T([5, 3], i64), T([5, 3], f16)), {})",
    "aten.scatter_add.default": "((T([5, 7], f16), 0, T([40, 7], i64), T([40, 7], f16)), {})",
    "aten.scatter_add_.default": "((T([5, 7], f16), 0, T([40, 7], i64), T([40, 7], f16)), {})",
    "aten.nll_loss2d_forward.default": "((T([2, 3, 5, 5], f32), T([2, 5, 5], i64), None, 1, -100), {})",
    "aten.max_unpool2d.default": "((T([1, 2, 4, 4], f32), T([1, 2, 4, 4], i64), [8, 8]), {})",
    "aten.take.default": "((T([3, 4], f32), T([50], i64)), {})",
    "aten.index_copy.default": "((T([5, 7], f32), 1, T([3], i64), T([5, 3], f32)), {})",
    "aten.scatter_reduce.two": "((T([5, 7], f32), 1, T([5, 9], i64), T([5, 9], f32), 'sum'), {})",
}


@pytest.mark.parametrize("op_name", INDEX_CALLS)
def test_index_operators_run_on_their_inputs_and_hit_every_row(
    arenas: Arenas, op_name: str
) -> None:
    op, source = resolve(op_name), calls(arenas, op_name, INDEX_CALLS[op_name])
    ranges = used_ranges(source.inputs)
    for _ in range(5):
        args, kwargs = source.take()
        for given, tensor in zip(source.inputs, _tensors((args, kwargs)), strict=True):
            _assert_in_domain(given, tensor)
        op(*args, **kwargs)
    bounded = [given for given in source.inputs if given.tensor.dtype in ("i64", "i32", "b8")]
    assert bounded, "an index operator without an index"
    assert {found["argument"] for found in ranges} >= {given.argument for given in bounded}
    assert input_rules.needs_indices(op)


def _assert_in_domain(given: input_rules.TensorInput, tensor: torch.Tensor) -> None:
    domain = given.domain
    if domain is None:
        assert given.tensor.dtype not in ("i64", "i32")
        return
    if domain.kind == "mask":
        assert int(tensor.sum()) == domain.high
        return
    if domain.kind == "rows":
        for row, high in zip(tensor, domain.highs, strict=True):
            assert int(row.min()) >= 0 and int(row.max()) < high
        return
    assert float(tensor.min()) >= domain.low and float(tensor.max()) < domain.high
    if domain.kind in ("sorted", "offsets"):
        assert bool((tensor.diff() >= 0).all())
    if domain.kind == "offsets":
        assert int(tensor[0]) == 0


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return _tensors(list(value.values()))
    if isinstance(value, list | tuple):
        return list(itertools.chain.from_iterable(map(_tensors, value)))
    return []


@pytest.mark.parametrize(
    ("op_name", "args", "expected"),
    [
        (
            "aten.embedding.default",
            "((T([2, 128], f16), T([1, 512], i64)), {})",
            ("indices", None, 0, 2),
        ),
        (
            "aten.gather.default",
            "((T([5, 7], f16), -2, T([5, 7], i64)), {})",
            ("index", None, 0, 5),
        ),
        (
            "aten.max_pool2d_with_indices_backward.default",
            INDEX_CALLS["aten.max_pool2d_with_indices_backward.default"],
            ("indices", None, 0, 64),
        ),
        (
            "aten.embedding_dense_backward.default",
            INDEX_CALLS["aten.embedding_dense_backward.default"],
            ("indices", None, 0, 5),
        ),
        ("aten.index.Tensor", "((T([4, 6], f16), [None, T([9], i64)]), {})", ("indices", 1, 0, 6)),
    ],
)
def test_the_rules_used_are_told(op_name: str, args: str, expected: tuple[object, ...]) -> None:
    (used,) = used_ranges(tensor_inputs(resolve(op_name), parse(args)))
    assert (used["argument"], used["item"], used["low"], used["high"]) == expected


def test_a_mask_stands_for_its_dimensions_and_has_a_cell_for_each_index_beside_it() -> None:
    op_name = "aten.index_put_.default"
    mask, index = used_ranges(tensor_inputs(resolve(op_name), parse(INDEX_CALLS[op_name])))
    assert (mask["kind"], mask["high"]) == ("mask", 9)
    assert (index["item"], index["kind"], index["high"]) == (1, "index", 70)


def test_rows_of_coordinates_are_told_one_by_one() -> None:
    op_name = "aten._sparse_coo_tensor_with_dims_and_tensors.default"
    used = used_ranges(tensor_inputs(resolve(op_name), parse(INDEX_CALLS[op_name])))
    assert [(found["row"], found["high"]) for found in used] == [(0, 3), (1, 900)]


def test_an_index_into_nothing_has_no_valid_input(arenas: Arenas) -> None:
    with pytest.raises(NoValidInput):
        calls(arenas, "aten.embedding.default", "((T([0, 8], f16), T([3], i64)), {})")
    empty = calls(arenas, "aten.embedding.default", "((T([0, 8], f16), T([0], i64)), {})")
    assert empty.take()[0][1].numel() == 0


def test_closed_offsets_end_at_the_number_of_indices(arenas: Arenas) -> None:
    args = "((T([9, 4], f32), T([50], i64), T([7], i64), False, 0, False, None, True), {})"
    offsets = calls(arenas, "aten._embedding_bag.default", args).take()[0][2]
    assert (int(offsets[0]), int(offsets[-1])) == (0, 50)


def test_every_rule_names_an_operator_and_arguments_that_torch_has() -> None:
    declared = tomllib.loads(input_rules.RULES.read_text())
    pairs = [
        (operator, argument)
        for group in declared["values"]
        for operator, argument in itertools.product(group["operators"], group["arguments"])
    ]
    pairs += [(name, argument) for name, names in declared["writes"].items() for argument in names]
    unknown = [pair for pair in pairs if not _has_argument(*pair)]
    # A group may name an argument that only some of its operators have, each one some operator's.
    for group in declared["values"]:
        for argument in group["arguments"]:
            assert any(_has_argument(operator, argument) for operator in group["operators"])
    assert not [operator for operator, _ in unknown if not _packet(operator)]


def _packet(operator: str) -> Any:
    namespace, name = operator.split(".")
    return getattr(getattr(torch.ops, namespace), name, None)


def _has_argument(operator: str, argument: str) -> bool:
    packet = _packet(operator)
    if packet is None:
        return False
    schemas = [getattr(packet, overload)._schema for overload in packet.overloads()]
    return any(argument == each.name for schema in schemas for each in schema.arguments)


def test_tensors_have_the_shapes_strides_and_dtypes_of_the_text(arenas: Arenas) -> None:
    text = (
        "(([T([2, 3], f16), T([], f32), T([0, 4], f32), T([4, 3], f16, stride=(1, 8)), "
        "T([5, 1, 7], i64), T([300, 400], f16, stride=(0, 0))],), {})"
    )
    (given,), _ = calls(arenas, "aten.cat.default", text).take()
    for tensor, declared in zip(given, parse(text).tensors(), strict=True):
        expected = (
            torch.empty(declared.shape)
            if declared.stride is None  # type: ignore[union-attr]
            else torch.empty_strided(declared.shape, declared.stride)  # type: ignore[union-attr]
        )
        assert tensor.shape == expected.shape
        assert tensor.stride() == expected.stride()
        assert tensor.dtype == torch_dtype(declared.dtype)


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    reach = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    start = tensor.data_ptr()
    return start, start + (reach + 1) * tensor.element_size()


def test_tensors_of_a_call_are_aligned_disjoint_and_elsewhere_in_the_next_call(
    arenas: Arenas,
) -> None:
    text = "(([T([100], f16), T([7, 9], f16, stride=(1, 10)), T([1000], f16)],), {})"
    source = calls(arenas, "aten.cat.default", text)
    starts = set()
    for _ in range(20):
        spans = sorted(_span(tensor) for tensor in source.take()[0][0])
        assert all(start % 512 == spans[0][0] % 512 for start, _ in spans)
        assert all(one[1] <= other[0] for one, other in itertools.pairwise(spans))
        starts.add(spans[0][0])
    assert len(starts) == 20


def test_tensors_of_equal_size_hold_different_values(arenas: Arenas) -> None:
    source = calls(arenas, "aten.sub.Tensor", "((T([1024, 1024], f16), T([1024, 1024], f16)), {})")
    (one, other), _ = source.take()
    assert (one == other).float().mean() < 0.01


def test_floats_have_both_signs_and_integers_are_no_zeros(arenas: Arenas) -> None:
    (one,), _ = calls(arenas, "aten.relu.default", "((T([64, 256], f16),), {})").take()
    assert 0.4 < float((one < 0).float().mean()) < 0.6
    assert float(one.abs().max()) <= 1
    (one,), _ = calls(arenas, "aten.neg.default", "((T([4096], i64),), {})").take()
    assert sorted(one.unique().tolist()) == list(range(10))


def test_no_integer_is_divided_by_zero(arenas: Arenas) -> None:
    args = "((T([4096], i64), T([4096], i64)), {})"
    (_, divisor), _ = calls(arenas, "aten.floor_divide.default", args).take()
    assert int(divisor.min()) == 1
    args = "((T([4096], f16), T([4096], f16)), {})"
    (_, divisor), _ = calls(arenas, "aten.floor_divide.default", args).take()
    assert float(divisor.min()) < 0


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_can_be_filled(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    values = random_values(1000, torch_dtype(name), None, generator)
    assert (values.dtype, values.numel()) == (torch_dtype(name), 1000)
    assert values.view(torch.uint8).unique().numel() > 1


@pytest.mark.parametrize(
    ("op_name", "args"),
    [
        ("aten.mul_.Tensor", "((T([64], f16), 32), {})"),
        ("aten.add_.Tensor", "((T([9, 5], f32, stride=(1, 9)), T([9, 5], f32)), {})"),
        ("aten.index_put_.default", INDEX_CALLS["aten.index_put_.default"]),
        ("aten.scatter_add_.default", INDEX_CALLS["aten.scatter_add_.default"]),
        # Writes to running statistics although its schema does not say so.
        (
            "aten.native_batch_norm.default",
            "((T([4, 6, 5, 5], f32), T([6], f32), T([6], f32), T([6], f32), T([6], f32), True, 0.1, "
            "1e-05), {})",
        ),
    ],
)
def test_what_an_operator_writes_never_reaches_the_arena_or_another_call(
    op_name: str, args: str
) -> None:
    own = Arenas(allocate, capacity=MIB, special_capacity=MIB)
    op, source = resolve(op_name), calls(own, op_name, args)
    before = {key: arena.flat.clone() for key, arena in own._arenas.items()}
    for _ in range(100):
        positional, keywords = source.take()
        written = [
            (tensor, given)
            for tensor, given in zip(_tensors((positional, keywords)), source.inputs, strict=True)
            if given.written
        ]
        assert written
        for tensor, given in zip(_tensors((positional, keywords)), source.as_given(), strict=True):
            assert given is not None and torch.equal(tensor, given)
        op(*positional, **keywords)
        assert all(bool(torch.isfinite(tensor).all()) for tensor, _ in written)
    for key, values in before.items():
        if key[1] is None or key[1].kind != "scratch":
            assert torch.equal(own._arenas[key].flat, values)


def test_calls_taken_together_do_not_share_what_is_written(arenas: Arenas) -> None:
    source = calls(arenas, "aten.relu_.default", "((T([1000], f16),), {})")
    taken = source.take_many(min(source.at_once, 200))
    pointers = {call[0][0].data_ptr() for call in taken}
    assert len(pointers) == len(taken)


def test_metadata_is_fresh_for_every_call(arenas: Arenas) -> None:
    op = resolve("aten.unsqueeze_.default")
    source = calls(arenas, "aten.unsqueeze_.default", "((T([12, 14, 3], i64), 0), {})")
    for _ in range(200):
        (tensor, dim), _ = source.take()
        assert tensor.shape == (12, 14, 3)
        op(tensor, dim)


def test_a_device_in_the_arguments_becomes_the_measuring_device(arenas: Arenas) -> None:
    args = "((T([4], f32), [3]), {'dtype': f16, 'device': 'cuda', 'pin_memory': False})"
    _, keywords = calls(arenas, "aten.new_zeros.default", args).take()
    assert keywords["device"] == CPU


def test_sizes_come_from_the_text_before_anything_is_allocated() -> None:
    op = resolve("aten.add_.Tensor")
    huge = parse("((T([1000000, 1000000], f32), T([4, 3], f16, stride=(100, 1))), {})")
    span = 4 * 10**12
    assert needed_bytes(tensor_inputs(op, huge)) == 2 * span + 2 * (3 * 100 + 3)


def test_an_arena_grows_for_a_large_tensor_and_the_oldest_makes_room() -> None:
    own = Arenas(allocate, capacity=MIB, special_capacity=MIB, limit=6 * MIB)
    own.values(torch.float16, None, 10)
    own.values(torch.int64, None, 10)
    assert own.values(torch.float16, None, 2 * MIB).elements == 2 * MIB
    assert own.total_bytes() == 5 * MIB
    own.values(torch.float32, None, MIB // 2)
    assert own.total_bytes() <= 6 * MIB
    assert set(own._arenas) == {(torch.float16, None), (torch.float32, None)}


@pytest.mark.parametrize("coalesced", [True, False])
def test_sparse_tensors_have_valid_coordinates(arenas: Arenas, coalesced: bool) -> None:
    args = f"((ST([5, 300], f32, torch.sparse_coo, {coalesced}, 40),), {{}})"
    (tensor,), _ = calls(arenas, "aten.clone.default", args).take()
    assert tensor.layout is torch.sparse_coo and tensor.is_coalesced() is coalesced
    assert tensor.shape == (5, 300)
    with pytest.raises(NotImplementedError):
        calls(arenas, "aten.clone.default", "((ST([5, 3], f32, torch.sparse_csr, False),), {})")
