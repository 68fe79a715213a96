"""CUDA for measuring: the sample of ``triton.testing.do_bench``, with less waiting around it.

Kept as it is there: a 256 MiB buffer is zeroed before each call, so that the L2 cache holds none of
its inputs, and two events around the call give its time. Changed: the buffer lives on, events are
pooled, a batch is queued before the host waits, and samples alternate with the baseline's.

Written against torch 2.9 to 2.13 and triton 3.5 to 3.9.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from atenbench.devices import Observation, Operator, empty_baseline
from atenbench.inputs import Call
from atenbench.timing import Pair

FLUSH_BYTES = 256 * 2**20
_BATCH = 6
_BACKLOG_CYCLES = 4_000_000  # about 2 ms: longer than the host needs to launch an operator
_OBSERVED = 3


class CudaDevice:
    """One GPU."""

    most_calls = 1

    def __init__(self, device: torch.device) -> None:
        self.device = torch.device("cuda", device.index or 0)
        torch.cuda.set_device(self.device)
        self._flush = torch.empty(FLUSH_BYTES // 4, dtype=torch.int, device=self.device)
        self._baseline, self._baseline_call = empty_baseline(self.device)
        self._events = [_event() for _ in range(4 * _BATCH)]
        self._null_kernel = _null_kernel(self.device)
        self._flush_seconds = self._time_flush()

    def allocate(self, nbytes: int) -> torch.Tensor:
        """Memory of the GPU, through torch's allocator."""
        return torch.empty(nbytes, dtype=torch.uint8, device=self.device)

    def call(self, op: Operator, call: Call) -> tuple[Any, float]:
        """Make one call and wait until the GPU is done."""
        args, kwargs = call
        torch.cuda.synchronize(self.device)
        start = time.perf_counter()
        result = op(*args, **kwargs)
        torch.cuda.synchronize(self.device)
        return result, time.perf_counter() - start

    def samples(self, op: Operator, blocks: Sequence[Sequence[Call]]) -> Iterator[Pair]:
        """Flush, event, call, event; the same for the baseline; the host waits once a batch."""
        for first in range(0, len(blocks), _BATCH):
            yield from self._batch(op, [block[0] for block in blocks[first : first + _BATCH]])

    def _batch(self, op: Operator, calls: Sequence[Call]) -> list[Pair]:
        marks = iter(self._events)
        spans = []
        for call in calls:
            of_op = self._record(op, call, next(marks), next(marks))
            of_baseline = self._record(
                self._baseline, self._baseline_call, next(marks), next(marks)
            )
            spans.append((of_op, of_baseline))
        torch.cuda.synchronize(self.device)
        return [(_seconds(*of_op), _seconds(*of_baseline)) for of_op, of_baseline in spans]

    def _record(
        self, op: Operator, call: Call, start: torch.cuda.Event, end: torch.cuda.Event
    ) -> tuple[torch.cuda.Event, torch.cuda.Event]:
        args, kwargs = call
        self._flush.zero_()
        start.record()
        op(*args, **kwargs)
        end.record()
        return start, end

    def observe(self, op: Operator, calls: Sequence[Call]) -> Observation:
        """How long the host needs, whether it waits, and the time of the device alone."""
        host, on_device, waits = [], [], []
        for args, kwargs in calls[:_OBSERVED]:
            torch.cuda.synchronize(self.device)
            start, end = self._events[:2]
            self._flush.zero_()
            torch.cuda._sleep(_BACKLOG_CYCLES)  # type: ignore[no-untyped-call]
            start.record()
            began = time.perf_counter()
            op(*args, **kwargs)
            host.append(time.perf_counter() - began)
            waits.append(bool(start.query()))  # type: ignore[no-untyped-call] # the backlog is gone: the host has waited for it
            end.record()
            torch.cuda.synchronize(self.device)
            on_device.append(_seconds(start, end))
        synchronizes = all(waits)
        return Observation(
            host_bound=not synchronizes and min(host) > self._flush_seconds,
            synchronizes=synchronizes,
            device_seconds=None if synchronizes else min(on_device),
            null_kernel_seconds=self._time_null_kernel(),
        )

    def baseline(self) -> float:
        """One sample, waited for."""
        marks = self._record(self._baseline, self._baseline_call, *self._events[:2])
        torch.cuda.synchronize(self.device)
        return _seconds(*marks)

    def memory_bytes(self) -> int:
        """The memory of the GPU."""
        return int(torch.cuda.get_device_properties(self.device).total_memory)

    def release_memory(self) -> None:
        """Give what torch's allocator holds in reserve back to the driver."""
        torch.cuda.synchronize(self.device)
        torch.cuda.empty_cache()

    def literal_baseline(self) -> float:
        """Median of 30 samples of ``torch.empty(0, device='cuda')``."""
        call: Call = ((0,), {"device": self.device})
        times = []
        for _ in range(30):
            start, end = self._record(torch.empty, call, *self._events[:2])
            torch.cuda.synchronize(self.device)
            times.append(_seconds(start, end))
        return sorted(times)[len(times) // 2]

    def is_broken_by(self, error: BaseException) -> bool:
        """Any error of the device but full memory leaves its context unusable.

        Found out by asking the context, which reports such an error at every later call.
        """
        if isinstance(error, torch.OutOfMemoryError):
            return False
        if isinstance(error, torch.AcceleratorError):
            return True
        try:
            torch.cuda.synchronize(self.device)
        except RuntimeError:
            return True
        return False

    def _time_flush(self) -> float:
        start, end = self._events[:2]
        for _ in range(3):
            start.record()
            self._flush.zero_()
            end.record()
            torch.cuda.synchronize(self.device)
        return _seconds(start, end)

    def _time_null_kernel(self) -> float | None:
        if self._null_kernel is None:
            return None
        times = []
        for _ in range(_BATCH):
            start, end = self._record(self._null_kernel, ((), {}), *self._events[:2])
            torch.cuda.synchronize(self.device)
            times.append(_seconds(start, end))
        return sorted(times)[len(times) // 2]


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def _seconds(start: torch.cuda.Event, end: torch.cuda.Event) -> float:
    return float(start.elapsed_time(end)) / 1e3


def _null_kernel(device: torch.device) -> Operator | None:
    """A Triton kernel that does nothing, compiled; None where there is no Triton."""
    try:
        from atenbench.null_kernel import launch
    except ImportError:
        return None
    launch()
    torch.cuda.synchronize(device)
    return launch
