"""Argument text → what an operator is called with: fresh, valid arguments for every call.

Each tensor is a view into an arena; the tensors of one call do not overlap, and each call takes
them from another place. What an operator writes to is a copy, made again for every call, so that
no call sees what an earlier one left behind. Making arguments is never part of a timed span.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OpOverload

from atenbench.arena import ALIGNMENT, Arena, Arenas, random_values
from atenbench.arguments import Arguments, SparseTensor, Tensor
from atenbench.input_rules import Domain, TensorInput, tensor_inputs
from atenbench.tensors import call_arguments, torch_dtype

Call = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and keyword arguments."""

_SPARSE_DENSITY = 10  # one stored value in so many, where the text does not say how many
_STRUCTURED = frozenset({"sorted", "offsets", "rows", "mask"})


def needed_bytes(inputs: list[TensorInput]) -> int:
    """The memory that the tensors of one call take: storage spans, written ones twice.

    Worked out from the text alone, before anything is allocated.
    """
    return sum(_nbytes(given.tensor) * (2 if given.written else 1) for given in inputs)


class Calls:
    """An endless source of arguments for one problem.

    ``at_once`` is how many calls may be taken before the first of them is made; with more, the
    written arguments of the last would overwrite those of the first.

    Raises:
        NoValidInput: no tensor of the shape can hold valid values.
        NotImplementedError: a sparse layout other than COO.
    """

    def __init__(
        self, op: OpOverload, arguments: Arguments, arenas: Arenas, device: torch.device
    ) -> None:
        self.arguments = arguments
        self.inputs = tensor_inputs(op, arguments)
        self._device = device
        plan = _Plan(arenas, device)
        self._slots = [plan.slot(given) for given in self.inputs]
        self._pools = plan.pools()
        self.at_once = min(
            (pool.arena.elements // pool.span for pool in self._pools if pool.is_scratch),
            default=2**30,
        )
        self._frame = call_arguments(arguments, lambda _: None, device)  # type: ignore[arg-type,return-value]
        self._places = _places(arguments)

    def take(self) -> Call:
        """The arguments of the next call."""
        for pool in self._pools:
            pool.base = pool.arena.advance(pool.span)
        tensors = [slot() for slot in self._slots]
        if self._places is None:
            remaining = iter(tensors)
            return call_arguments(self.arguments, lambda _: next(remaining), self._device)
        args = list(self._frame[0])
        for place, tensor in zip(self._places, tensors, strict=True):
            args[place] = tensor
        return tuple(args), self._frame[1]

    def take_many(self, count: int) -> list[Call]:
        """The arguments of the next calls."""
        return [self.take() for _ in range(count)]

    def as_given(self) -> list[torch.Tensor | None]:
        """The tensors of the last call taken, as they were before it (None for a sparse one)."""
        return [slot.before() for slot in self._slots]


@dataclass(slots=True)
class _Pool:
    """What one call takes of one arena: a run of ``span`` elements, now at ``base``."""

    arena: Arena
    is_scratch: bool
    span: int
    base: int = 0


@dataclass(frozen=True, slots=True)
class _View:
    """A tensor that is cut from a pool at ``base + offset``."""

    pool: _Pool
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]

    def __call__(self) -> torch.Tensor:
        return self.pool.arena.flat.as_strided(
            self.shape, self.stride, self.pool.base + self.offset
        )

    before = __call__


@dataclass(frozen=True, slots=True)
class _Copied:
    """A tensor that the operator writes to: values of one view, copied into another."""

    source: _View
    target: _View
    elements: int

    def __call__(self) -> torch.Tensor:
        _run(self.target, self.elements).copy_(_run(self.source, self.elements))
        return self.target()

    def before(self) -> torch.Tensor:
        return self.source()


@dataclass(frozen=True, slots=True)
class _Fixed:
    """A tensor whose values hang together (offsets, coordinates): made once."""

    tensor: torch.Tensor
    written: bool

    def __call__(self) -> torch.Tensor:
        return self.tensor.clone() if self.written else self.tensor.detach()

    def before(self) -> torch.Tensor | None:
        return None if self.tensor.is_sparse else self.tensor


_Slot = _View | _Copied | _Fixed


class _Plan:
    """Lays the tensors of one call out over the arenas."""

    def __init__(self, arenas: Arenas, device: torch.device) -> None:
        self._arenas = arenas
        self._device = device
        self._generator = torch.Generator().manual_seed(0)
        self._spans: dict[tuple[torch.dtype, Domain | None, bool], int] = defaultdict(int)
        self._pools: dict[tuple[torch.dtype, Domain | None, bool], _Pool] = {}

    def slot(self, given: TensorInput) -> _Slot:
        tensor, domain = given.tensor, given.domain
        if isinstance(tensor, SparseTensor):
            return _Fixed(self._sparse(tensor).to(self._device), given.written)
        if domain is not None and domain.kind in _STRUCTURED:
            values = structured_values(tensor.shape, domain, self._generator)
            laid_out = _with_strides(values.to(torch_dtype(tensor.dtype)), tensor)
            return _Fixed(laid_out.to(self._device), given.written)
        source = self._view(tensor, domain, is_scratch=False)
        if not given.written:
            return source
        return _Copied(source, self._view(tensor, None, is_scratch=True), tensor.extent)

    def pools(self) -> list[_Pool]:
        """Get the arenas, now that it is known how much of each a call takes."""
        for key, pool in self._pools.items():
            dtype, domain, is_scratch = key
            pool.span = max(self._spans[key], 1)
            pool.arena = (
                self._arenas.scratch(dtype, pool.span)
                if is_scratch
                else self._arenas.values(dtype, domain, pool.span)
            )
        return list(self._pools.values())

    def _view(self, tensor: Tensor, domain: Domain | None, *, is_scratch: bool) -> _View:
        key = (torch_dtype(tensor.dtype), domain, is_scratch)
        pool = self._pools.setdefault(key, _Pool(_NOWHERE, is_scratch, 0))
        offset = self._spans[key]
        per_slot = ALIGNMENT // key[0].itemsize
        self._spans[key] += -(-tensor.extent // per_slot) * per_slot
        return _View(pool, offset, tensor.shape, _stride(tensor))

    def _sparse(self, tensor: SparseTensor) -> torch.Tensor:
        if tensor.layout != "torch.sparse_coo":
            raise NotImplementedError(f"no inputs of layout {tensor.layout}")
        elements = math.prod(tensor.shape)
        stored = tensor.nnz if tensor.nnz is not None else -(-elements // _SPARSE_DENSITY)
        rows = Domain("rows", 0, 1, highs=tensor.shape)
        indices = structured_values((len(tensor.shape), stored), rows, self._generator)
        values = random_values(stored, torch_dtype(tensor.dtype), None, self._generator)
        made = torch.sparse_coo_tensor(indices, values, tensor.shape, check_invariants=True)
        return made.coalesce() if tensor.coalesced else made


_NOWHERE = Arena(torch.empty(0))


def structured_values(
    shape: tuple[int, ...], domain: Domain, generator: torch.Generator
) -> torch.Tensor:
    """Integers or booleans on the CPU whose values hang together as :class:`Domain` says."""
    if domain.kind == "mask":
        order = torch.randperm(math.prod(shape), generator=generator)
        return (order < domain.high).reshape(shape)
    if domain.kind == "rows":
        rows = [
            torch.randint(0, max(high, 1), shape[1:], generator=generator) for high in domain.highs
        ]
        return torch.stack(rows) if rows else torch.empty(shape, dtype=torch.int64)
    low, high = int(domain.low), int(domain.high)
    drawn = torch.randint(low, max(high, low + 1), shape, generator=generator)
    values = drawn.flatten().sort().values
    if domain.kind == "offsets" and values.numel() > 0:
        values[0] = 0
        if domain.closed:
            values[-1] = high - 1
    return values.reshape(shape)


def _places(arguments: Arguments) -> list[int] | None:
    """Where the tensors stand among the positional arguments; None if some stand elsewhere.

    Most calls need no more than that, and are made from it in half the time.
    """
    places = [
        place
        for place, value in enumerate(arguments.args)
        if isinstance(value, Tensor | SparseTensor)
    ]
    return places if len(places) == len(list(arguments.tensors())) else None


def _run(view: _View, elements: int) -> torch.Tensor:
    """The storage span of a view, flat: copied in one piece, whatever its strides."""
    start = view.pool.base + view.offset
    return view.pool.arena.flat[start : start + elements]


def _stride(tensor: Tensor) -> tuple[int, ...]:
    if tensor.stride is not None:
        return tensor.stride
    sizes = [max(size, 1) for size in tensor.shape[:0:-1]]
    steps = itertools.accumulate(sizes, operator.mul, initial=1)
    return tuple(steps)[::-1] if tensor.shape else ()


def _with_strides(values: torch.Tensor, tensor: Tensor) -> torch.Tensor:
    if tensor.stride is None or values.numel() == 0:
        return values
    laid_out = torch.empty_strided(tensor.shape, tensor.stride, dtype=values.dtype)
    return laid_out.copy_(values)


def _nbytes(tensor: Tensor | SparseTensor) -> int:
    if isinstance(tensor, Tensor):
        return tensor.nbytes
    elements = math.prod(tensor.shape)
    stored = tensor.nnz if tensor.nnz is not None else -(-elements // _SPARSE_DENSITY)
    return stored * (8 * len(tensor.shape) + torch_dtype(tensor.dtype).itemsize)
