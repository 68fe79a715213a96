"""Memory full of random values, made once and cut into tensors as views.

Making fresh random tensors for each problem costs more than timing it: a view costs 2 µs, 10 MB of
new f16 values 30 ms. And since each call of a problem takes its tensors from another place, what
it reads has left the caches, without a flush that would also evict the interpreter.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import torch

from atenbench.input_rules import FLOAT_RANGE, INTEGER_RANGE, Domain

ALIGNMENT = 512
"""Bytes; each tensor starts at a multiple of it, as a caching allocator would place it."""

Allocate = Callable[[int], torch.Tensor]
"""Bytes → that much uninitialised device memory, as a flat uint8 tensor."""

_PERIOD = 1_048_573
"""Elements after which the values repeat. A prime: tensors that lie a round number of elements
apart, as the arguments of one call do, then never hold the same values."""

_SCRATCH = Domain("scratch", 0, 0)


@dataclass(slots=True)
class Arena:
    """Values of one dtype and range, and where the next tensors are to be cut from it."""

    flat: torch.Tensor
    cursor: int = 0

    @property
    def elements(self) -> int:
        """How many elements it has."""
        return self.flat.numel()

    def advance(self, elements: int) -> int:
        """The offset of a run of so many elements, another one at each call; wraps around."""
        if self.cursor + elements > self.elements:
            self.cursor = 0
        offset = self.cursor
        self.cursor += elements
        return offset


class Arenas:
    """The arenas of one device: one for each dtype and range, made when first asked for.

    Attributes:
        allocate: where their memory comes from.
        capacity: bytes of an arena of plain values. It should be several times the last-level
            cache; a problem that needs more gets a larger one.
        special_capacity: bytes of the other ones (indices of some range, scratch memory).
        limit: bytes of all of them together; the least recently used give way to new ones.
    """

    def __init__(
        self,
        allocate: Allocate,
        *,
        capacity: int = 256 * 2**20,
        special_capacity: int = 64 * 2**20,
        limit: int = 4 * 2**30,
        seed: int = 0,
    ) -> None:
        self.allocate = allocate
        self.capacity = capacity
        self.special_capacity = special_capacity
        self.limit = limit
        self._generator = torch.Generator().manual_seed(seed)
        self._arenas: OrderedDict[tuple[torch.dtype, Domain | None], Arena] = OrderedDict()

    def values(self, dtype: torch.dtype, domain: Domain | None, elements: int) -> Arena:
        """An arena of at least so many random values of a domain (None: plain values)."""
        capacity = self.capacity if domain is None else self.special_capacity
        return self._get(dtype, domain, elements, capacity)

    def scratch(self, dtype: torch.dtype, elements: int) -> Arena:
        """An arena of at least so many uninitialised elements, to be written to."""
        return self._get(dtype, _SCRATCH, elements, self.special_capacity)

    def total_bytes(self) -> int:
        """What all arenas hold."""
        return sum(arena.flat.nbytes for arena in self._arenas.values())

    def clear(self) -> None:
        """Forget all arenas; their memory goes when nothing uses it any more."""
        self._arenas.clear()

    def _get(
        self, dtype: torch.dtype, domain: Domain | None, elements: int, capacity: int
    ) -> Arena:
        key = (dtype, domain)
        arena = self._arenas.get(key)
        if arena is None or arena.elements < elements:
            del arena
            self._arenas.pop(key, None)
            nbytes = max(elements * dtype.itemsize, capacity)
            self._make_room(nbytes)
            self._arenas[key] = self._make(dtype, domain, nbytes)
        self._arenas.move_to_end(key)
        return self._arenas[key]

    def _make_room(self, nbytes: int) -> None:
        while self._arenas and self.total_bytes() + nbytes > self.limit:
            self._arenas.popitem(last=False)

    def _make(self, dtype: torch.dtype, domain: Domain | None, nbytes: int) -> Arena:
        memory = self.allocate(-(-nbytes // ALIGNMENT) * ALIGNMENT)
        if domain != _SCRATCH:
            count = min(_PERIOD, memory.numel() // dtype.itemsize)
            pattern = random_values(count, dtype, domain, self._generator)
            _tile(memory, pattern.view(torch.uint8))
        return Arena(memory.view(dtype))


def random_values(
    count: int, dtype: torch.dtype, domain: Domain | None, generator: torch.Generator
) -> torch.Tensor:
    """So many random values on the CPU: of the domain, or plain ones where it is None.

    Plain are: floats and complex parts in [-1, 1), integers in [0, 10), booleans of both kinds, and
    any bytes for dtypes that torch cannot compute with.
    """
    if dtype is torch.bool:
        return torch.rand(count, generator=generator) < 0.5
    if dtype.is_complex:
        parts = _floats(2 * count, dtype.to_real(), FLOAT_RANGE, generator)
        return parts.view(dtype)
    if (dtype.is_floating_point and dtype.itemsize > 1) or dtype in _SMALL_FLOATS:
        low_high = FLOAT_RANGE if domain is None else (domain.low, domain.high)
        return _floats(count, dtype, low_high, generator)
    if dtype in _INTEGERS:
        low, high = INTEGER_RANGE if domain is None else (int(domain.low), int(domain.high))
        drawn = torch.randint(low, max(high, low + 1), (count,), generator=generator)
        return drawn.to(dtype)
    nbytes = count * dtype.itemsize
    return torch.randint(0, 256, (nbytes,), dtype=torch.uint8, generator=generator).view(dtype)


_SMALL_FLOATS = frozenset(
    {
        torch.float8_e4m3fn,
        torch.float8_e4m3fnuz,
        torch.float8_e5m2,
        torch.float8_e5m2fnuz,
    }
)
_INTEGERS = frozenset(
    {
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.uint8,
        torch.uint16,
        torch.uint32,
        torch.uint64,
    }
)


def _floats(
    count: int, dtype: torch.dtype, low_high: tuple[float, float], generator: torch.Generator
) -> torch.Tensor:
    low, high = low_high
    drawn_as = torch.float64 if dtype is torch.float64 else torch.float32
    drawn = torch.rand(count, dtype=drawn_as, generator=generator)
    return drawn.mul_(high - low).add_(low).to(dtype)


def _tile(memory: torch.Tensor, pattern: torch.Tensor) -> None:
    """Fill a flat uint8 tensor with repetitions of another."""
    filled = min(pattern.numel(), memory.numel())
    memory[:filled].copy_(pattern[:filled])
    while filled < memory.numel():
        # From the part that is filled: on a GPU the pattern then crosses the bus once.
        step = min(pattern.numel(), memory.numel() - filled)
        memory[filled : filled + step].copy_(memory[:step])
        filled += step
