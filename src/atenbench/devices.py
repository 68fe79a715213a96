"""CPU and CUDA behind one small interface: memory, calls, samples, the launch baseline.

The launch baseline of both is an empty tensor, called as every operator is called:
``aten.empty.memory_format([0])`` through its overload. (The literal ``torch.empty(0)`` takes a
third of that on a CPU, so against it no operator would ever look launch-bound.)
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from atenbench.inputs import Call
from atenbench.timing import Pair, StopRule, time_calls

Operator = Callable[..., Any]

_HUGE_PAGE = 2 * 2**20
_BASELINE_SECONDS = StopRule().block_seconds


@dataclass(frozen=True, slots=True)
class Observation:
    """What is seen of an operator on a device beside its samples; None where it does not apply.

    Attributes:
        host_bound: the host needs longer to launch it than the flush before it lasts, so samples
            include time that the device waits.
        synchronizes: it makes the host wait for the device.
        device_seconds: its time on the device alone, behind a backlog of work.
        null_kernel_seconds: time of an empty Triton kernel in its place.
    """

    host_bound: bool | None = None
    synchronizes: bool | None = None
    device_seconds: float | None = None
    null_kernel_seconds: float | None = None


class MeasuringDevice(Protocol):
    """What measuring needs of a device."""

    device: torch.device
    most_calls: int
    """Calls in one sample at most."""

    def allocate(self, nbytes: int) -> torch.Tensor:
        """Uninitialised memory as a flat uint8 tensor."""

    def call(self, op: Operator, call: Call) -> tuple[Any, float]:
        """Make one call and wait for it: its result and its seconds."""

    def samples(self, op: Operator, blocks: Sequence[Sequence[Call]]) -> Iterator[Pair]:
        """One sample for each block of calls, the baseline beside it."""

    def observe(self, op: Operator, calls: Sequence[Call]) -> Observation:
        """What else there is to see of an operator, in a few calls."""

    def baseline(self) -> float:
        """Seconds per call of one sample of the launch baseline."""

    def release_memory(self) -> None:
        """Give back what the allocator holds in reserve."""

    def memory_bytes(self) -> int:
        """How much memory it has."""

    def literal_baseline(self) -> float:
        """Seconds of the published baseline, ``torch.empty(0)``, called literally."""

    def is_broken_by(self, error: BaseException) -> bool:
        """Whether, after this exception, the device can only be used by another process."""


def open_device(name: str) -> MeasuringDevice:
    """The device ``cpu``, ``cuda`` or ``cuda:1``, made ready for measuring."""
    if name == "cpu":
        return CpuDevice()
    from atenbench.cuda import CudaDevice

    return CudaDevice(torch.device(name))


def choose(wanted: str) -> list[str]:
    """The devices that ``auto``, ``cpu`` or ``cuda`` stands for: the CPU, or every GPU."""
    if wanted == "cpu" or (wanted == "auto" and not torch.cuda.is_available()):
        return ["cpu"]
    return [f"cuda:{index}" for index in range(torch.cuda.device_count())]


def empty_baseline(device: torch.device) -> tuple[Operator, Call]:
    """The launch baseline: the operator that makes an empty tensor, and its arguments."""
    op = torch.ops.aten.empty.memory_format
    return op, (([0],), {} if device.type == "cpu" else {"device": device})


class CpuDevice:
    """One core of the CPU.

    Samples read their inputs from memory that is not in the caches because each call takes other
    places of the arena; nothing is flushed, since a flush evicts the interpreter too and then
    measures that. Blocks of short calls last 50 µs, against a clock read of 0.1 µs.
    """

    most_calls = 100

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.device = torch.device("cpu")
        self._clock = clock
        torch.set_num_threads(1)
        self._baseline, call = empty_baseline(self.device)
        self._baseline_calls = [call]
        for _ in range(3):  # the first one fills caches
            each = self.baseline()
        self._baseline_calls = [call] * max(round(_BASELINE_SECONDS / max(each, 1e-7)), 1)

    def allocate(self, nbytes: int) -> torch.Tensor:
        """Memory in huge pages, where the kernel has them: fewer misses that are not the cache's.

        Raises:
            MemoryError: there is not so much.
        """
        rounded = max(-(-nbytes // _HUGE_PAGE), 1) * _HUGE_PAGE
        try:
            memory = mmap.mmap(-1, rounded)
        except OSError:
            raise MemoryError(f"no {nbytes:,} bytes of memory") from None
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
        return torch.frombuffer(memory, dtype=torch.uint8, count=nbytes)

    def call(self, op: Operator, call: Call) -> tuple[Any, float]:
        """Make one call."""
        args, kwargs = call
        start = self._clock()
        result = op(*args, **kwargs)
        return result, self._clock() - start

    def samples(self, op: Operator, blocks: Sequence[Sequence[Call]]) -> Iterator[Pair]:
        """A block of calls, a block of the baseline, and so on."""
        for block in blocks:
            yield time_calls(op, block, self._clock), self.baseline()

    def observe(self, op: Operator, calls: Sequence[Call]) -> Observation:
        """Nothing: on a CPU the host is the device."""
        return Observation()

    def baseline(self) -> float:
        """A block of about 50 µs."""
        return time_calls(self._baseline, self._baseline_calls, self._clock)

    def memory_bytes(self) -> int:
        """The memory of the machine."""
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    def release_memory(self) -> None:
        """Have the C library return free memory to the system (Linux)."""
        gc.collect()
        if sys.platform == "linux":
            trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
            if trim is not None:
                trim(0)

    def literal_baseline(self) -> float:
        """Median of 30 blocks of ``torch.empty(0)``."""
        literal: list[Call] = [((0,), {})] * len(self._baseline_calls)
        return statistics.median(time_calls(torch.empty, literal, self._clock) for _ in range(30))

    def is_broken_by(self, error: BaseException) -> bool:
        """Never: a fault that leaves a CPU process alive leaves it usable."""
        return False
