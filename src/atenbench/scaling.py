"""The sizes in the arguments of a call, and the same call with some of them multiplied.

A size is one dimension of a tensor, or an integer of an argument that can be a size (that of a
view, of a new tensor, of a batch). Which of them mean the same is not known here. Imports no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Hashable, Iterator
from dataclasses import dataclass

from atenbench.arguments import INT64_MAX, Arguments, Tensor, Value

Key = int | str
"""An argument, by position or by keyword."""

Place = tuple[Key, ...]
"""Where a value stands: its argument, then positions in lists."""


@dataclass(frozen=True, slots=True)
class Size:
    """One size: of a tensor in dimension ``dim``, or an integer argument where that is None."""

    place: Place
    dim: int | None
    value: int


def sizes(arguments: Arguments, integers: Container[Key]) -> list[Size]:
    """Every size of a call, in a fixed order.

    ``integers`` are the arguments, by position and by name, whose integers can be sizes.
    """
    found: list[Size] = []
    for place, value in _leaves(arguments):
        if isinstance(value, Tensor):
            found += [Size(place, dim, size) for dim, size in enumerate(value.shape)]
        elif _is_integer(value) and place[0] in integers:
            assert isinstance(value, int)
            found.append(Size(place, None, value))
    return found


def tensors(arguments: Arguments) -> dict[Place, Tensor]:
    """The dense tensors of a call by where they stand."""
    return {place: value for place, value in _leaves(arguments) if isinstance(value, Tensor)}


def form(arguments: Arguments, integers: Container[Key]) -> Hashable:
    """What two calls share whose sizes correspond one to one and mean the same.

    Places, kinds and ranks, and the values of booleans and of integers that are no sizes.
    """

    def kind(place: Place, value: Value) -> Hashable:
        if isinstance(value, Tensor):
            return len(value.shape)
        if isinstance(value, int) and not (_is_integer(value) and place[0] in integers):
            return repr(value)
        return type(value).__name__

    return tuple((place, kind(place, value)) for place, value in _leaves(arguments))


def scaled(arguments: Arguments, chosen: Collection[Size], factor: int) -> Arguments | None:
    """The call with the chosen sizes multiplied, strides along with them.

    None where there is no such call: an integer does not fit 64 bits, or a tensor's elements would
    overlap that did not before.
    """
    dims: dict[Place, list[int]] = {}
    for size in chosen:
        dims.setdefault(size.place, []).append(-1 if size.dim is None else size.dim)
        if size.value * factor > INT64_MAX:
            return None

    def change(place: Place, value: Value) -> Value:
        if place not in dims:
            return value
        if isinstance(value, Tensor):
            return _scaled_tensor(value, dims[place], factor)
        assert isinstance(value, int)
        return value * factor

    try:
        return _mapped(arguments, change)
    except _Overlap:
        return None


class _Overlap(Exception):
    """Scaled, a tensor would hold one element in two places."""


def _is_integer(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _leaves(arguments: Arguments) -> Iterator[tuple[Place, Value]]:
    for position, value in enumerate(arguments.args):
        yield from _leaves_of((position,), value)
    for name, value in arguments.kwargs.items():
        yield from _leaves_of((name,), value)


def _leaves_of(place: Place, value: Value) -> Iterator[tuple[Place, Value]]:
    if isinstance(value, list | tuple):
        for position, item in enumerate(value):
            yield from _leaves_of((*place, position), item)
    else:
        yield place, value


def _mapped(arguments: Arguments, change: Callable[[Place, Value], Value]) -> Arguments:
    def walk(place: Place, value: Value) -> Value:
        if isinstance(value, list):
            return [walk((*place, position), item) for position, item in enumerate(value)]
        if isinstance(value, tuple):
            return tuple(walk((*place, position), item) for position, item in enumerate(value))
        return change(place, value)

    return Arguments(
        tuple(walk((position,), value) for position, value in enumerate(arguments.args)),
        {name: walk((name,), value) for name, value in arguments.kwargs.items()},
    )


def _scaled_tensor(tensor: Tensor, dims: Collection[int], factor: int) -> Tensor:
    shape = tuple(size * factor if dim in dims else size for dim, size in enumerate(tensor.shape))
    if tensor.stride is None:
        return Tensor(shape, tensor.dtype)
    # A step over a dimension that grows, grows with it.
    stride = tuple(
        step * factor ** sum(0 < tensor.stride[dim] < step for dim in dims)
        for step in tensor.stride
    )
    grown = Tensor(shape, tensor.dtype, stride)
    if _overlaps(grown) and not _overlaps(tensor):
        raise _Overlap
    return grown


def _overlaps(tensor: Tensor) -> bool:
    """Whether two elements may stand in one place, steps of 0 (expanded dimensions) apart."""
    assert tensor.stride is not None
    reach = 0
    for step, size in sorted(zip(tensor.stride, tensor.shape, strict=True)):
        if size > 1 and step > 0:
            if step <= reach:
                return True
            reach += (size - 1) * step
    return False
