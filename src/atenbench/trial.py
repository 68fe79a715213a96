"""One visit of one problem, inside a worker: make its inputs, call it, sample it, say how it went.

A visit ends in a report: plain data that goes into the journal as it is. What the operator does to
this process (crash, hang) is the business of the process that runs it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import resource
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from torch._ops import OpOverload

from atenbench import outputs
from atenbench.arena import Arenas
from atenbench.arguments import Arguments, parse
from atenbench.devices import MeasuringDevice, open_device
from atenbench.input_rules import NoValidInput, tensor_inputs, used_ranges
from atenbench.inputs import Calls, needed_bytes
from atenbench.machine import surroundings, virtual_bytes
from atenbench.operators import resolve
from atenbench.precision import runs_on_meta, widened
from atenbench.timing import Pair, StopRule, take_samples
from atenbench.worker import Last, describe, is_out_of_memory

Report = dict[str, Any]
"""``status``, and for ``ok`` the samples and what was seen, else ``reason`` and ``error``."""

CUDA_RULE = StopRule(warm_seconds=0.1, long_call=float("inf"))
"""On a GPU the first call is no sample: it is timed by the host."""
_ONE_TIME_SETUP = 3.0
"""A first call so many times longer than expected may have set up a library: not a sample yet."""

_VISITS_PER_COLLECTION = 200

_PROFILER_MEMORY = 512 * 2**20
"""Address space that a worker keeps for finding out what another allocation failed for."""


@dataclass(frozen=True, slots=True)
class Task:
    """One visit to make.

    Attributes:
        key: names the problem in the journal.
        op_name, args: the problem.
        visit: 0 for the first; only that one looks at the outputs.
        expected_s: what a call takes by what is known so far; None if nothing is.
        output_bytes: what the operator will allocate for its results; None if unknown.
    """

    key: str
    op_name: str
    args: str
    visit: int = 0
    expected_s: float | None = None
    output_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Survey:
    """Asks a worker for what it measures in: versions, threads, allocator, the literal baseline."""


@dataclass
class Trial:
    """Makes visits, one after another, with arenas that live as long as the worker.

    Attributes:
        device_name: ``cpu`` or ``cuda:N``.
        memory_cap: bytes that the tensors of one problem may take; None for a quarter of the
            device's memory.
        seed: of the values in the arenas.
        arena_bytes: of an arena of plain values; several times the last-level cache.
    """

    device_name: str
    memory_cap: int | None = None
    seed: int = 0
    arena_bytes: int = 256 * 2**20
    _device: MeasuringDevice | None = field(default=None, init=False)
    _arenas: Arenas | None = field(default=None, init=False)
    _cap: int = field(default=0, init=False)
    _visits: int = field(default=0, init=False)

    def start(self) -> None:
        """What a worker does once, before its first visit."""
        self.open()
        if self.device_name == "cpu":
            importlib.import_module("torch.profiler")  # maps what it needs before the limit
            # Inputs and outputs, arenas kept for other problems, and as much again of workspaces.
            mapped = virtual_bytes()
            limit = mapped + 3 * self._cap
            if mapped:
                resource.setrlimit(resource.RLIMIT_AS, (limit, limit + _PROFILER_MEMORY))
        gc.disable()  # a collection takes 15 to 150 ms and may come at any time

    def open(self) -> None:
        """Make the device ready, without what only a process of its own should do to itself."""
        self._device = open_device(self.device_name)
        self._cap = self.memory_cap or self._device.memory_bytes() // 4
        self._arenas = Arenas(
            self._device.allocate, capacity=self.arena_bytes, limit=self._cap, seed=self.seed
        )
        self._rule = StopRule() if self.device_name == "cpu" else CUDA_RULE

    def __call__(self, task: Task | Survey) -> Report | Last:
        """Make one visit; a value in :class:`Last` tells that the worker is spent."""
        assert self._device is not None and self._arenas is not None
        if isinstance(task, Survey):
            literal = {"literal_launch_ms": self._device.literal_baseline() * 1e3}
            return surroundings(self.device_name) | literal
        op, arguments = resolve(task.op_name), parse(task.args)
        try:
            return self._checked(op, arguments, task)
        except Exception as error:
            return self._failed(op, arguments, task, error)
        finally:
            self._visits += 1
            if self._visits % _VISITS_PER_COLLECTION == 1:
                _collect_garbage()

    def _checked(self, op: OpOverload, arguments: Arguments, task: Task) -> Report:
        """A visit whose sizes have been held against the cap before anything is allocated."""
        needed = needed_bytes(tensor_inputs(op, arguments)) + (task.output_bytes or 0)
        if needed > self._cap:
            reason = f"needs {needed / 2**30:.2f} GiB, cap {self._cap / 2**30:.2f} GiB"
            return {"status": "too_large", "reason": reason}
        try:
            return self._visit(op, arguments, task)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
        self._release_memory()
        return self._visit(op, arguments, task)

    def _visit(self, op: OpOverload, arguments: Arguments, task: Task) -> Report:
        assert self._device is not None and self._arenas is not None
        calls = Calls(op, arguments, self._arenas, self._device.device)
        first_call = calls.take()
        result, first = self._device.call(op, first_call)
        report: Report = {"status": "ok", "first_call_s": first}
        if task.visit == 0:
            report |= outputs.facts(result, calls.as_given())
            report["index_ranges"] = used_ranges(calls.inputs)
        del result, first_call
        pairs, block, warm_calls = self._sampled(op, calls, first, task)
        if task.visit == 0:
            seen = self._device.observe(op, calls.take_many(min(calls.at_once, 3)))
            report |= {
                "host_bound": seen.host_bound,
                "synchronizes": seen.synchronizes,
                "device_s": seen.device_seconds,
                "null_kernel_s": seen.null_kernel_seconds,
            }
        report |= {"block": block, "warm_calls": warm_calls}
        report["pairs"] = [[_rounded(seconds) for seconds in pair] for pair in pairs]
        return report

    def _sampled(
        self, op: OpOverload, calls: Calls, first: float, task: Task
    ) -> tuple[list[Pair], int, int]:
        """Samples, calls per sample, and calls that were made before the first sample."""
        assert self._device is not None
        device, rule = self._device, self._rule
        is_setup = task.expected_s is not None and first > _ONE_TIME_SETUP * task.expected_s
        if first >= rule.long_call and not is_setup:
            return [(first, device.baseline())], 1, 0
        least, spent, warm_calls = first, first, 1
        while spent < rule.warm_seconds and warm_calls < rule.warm_calls:
            _, seconds = device.call(op, calls.take())
            least, spent, warm_calls = min(least, seconds), spent + seconds, warm_calls + 1
        block = min(rule.block(least), device.most_calls, calls.at_once)

        def sample(count: int, block: int) -> Iterator[Pair]:
            at_once = max(calls.at_once // block, 1)
            for done in range(0, count, at_once):
                blocks = [calls.take_many(block) for _ in range(min(at_once, count - done))]
                yield from device.samples(op, blocks)

        return take_samples(sample, least, rule, block), block, warm_calls

    def _failed(
        self, op: OpOverload, arguments: Arguments, task: Task, error: Exception
    ) -> Report | Last:
        """The report of a visit that raised."""
        assert self._device is not None
        error.__traceback__ = None  # its frames hold tensors
        failure = {"error": describe(error)}
        if self._device.is_broken_by(error):
            return Last({"status": "error", "reason": "the device failed"} | failure)
        if is_out_of_memory(error):
            return self._out_of_memory(failure)
        if isinstance(error, NoValidInput):
            return {"status": "error", "reason": "no valid input"} | failure
        if isinstance(error, NotImplementedError):
            return {"status": "unsupported", "reason": "no kernel on this device"} | failure
        if self._lacks_kernel(op, arguments, task):
            return {"status": "unsupported", "reason": "no kernel for its dtype"} | failure
        if self.device_name == "cpu" and self._runs_out_of_memory(op, arguments):
            return self._out_of_memory(failure)
        return {"status": "error", "reason": "raised an exception"} | failure

    def _out_of_memory(self, failure: Report) -> Report | Last:
        """A CPU process that has filled its address space cannot give it all back: use another."""
        report = {"status": "oom", "reason": "out of memory"} | failure
        if self.device_name == "cpu":
            return Last(report)
        self._release_memory()
        return report

    def _lacks_kernel(self, op: OpOverload, arguments: Arguments, task: Task) -> bool:
        """Whether a call that failed did so for want of a kernel for its low-precision floats.

        It did if the same call works with each of them as one of 32 bits, or if the operator itself
        (on tensors without data) takes no other precision than the one that failed.
        """
        wide = widened(arguments)
        if wide == arguments:
            return False
        if self._runs(op, wide, task):
            return True
        return runs_on_meta(op, arguments) and not runs_on_meta(op, wide)

    def _runs(self, op: OpOverload, arguments: Arguments, task: Task) -> bool:
        assert self._device is not None and self._arenas is not None
        needed = needed_bytes(tensor_inputs(op, arguments)) + 2 * (task.output_bytes or 0)
        if needed > self._cap:
            return False
        try:
            self._device.call(op, Calls(op, arguments, self._arenas, self._device.device).take())
        except Exception:  # whatever it is: it does not run
            return False
        return True

    def _runs_out_of_memory(self, op: OpOverload, arguments: Arguments) -> bool:
        """Whether the call fails because the CPU allocator does.

        That raises a plain RuntimeError; torch's profiler records the failed allocation as such.
        """
        assert self._device is not None and self._arenas is not None
        from torch.profiler import ProfilerActivity, profile

        self._release_memory()
        limit, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        call = Calls(op, arguments, self._arenas, self._device.device).take()
        # That it raises is known; why is what the profile tells.
        with (
            profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler,
            contextlib.suppress(Exception),
        ):
            self._device.call(op, call)
        resource.setrlimit(resource.RLIMIT_AS, (limit, most))
        events = profiler.profiler.kineto_results.events()
        return any(event.name() == "[OutOfMemory]" for event in events)

    def _release_memory(self) -> None:
        assert self._device is not None and self._arenas is not None
        _collect_garbage()
        self._arenas.clear()
        self._device.release_memory()


def _collect_garbage() -> None:
    """Free reference cycles, and never look again at what has survived."""
    gc.collect()
    gc.freeze()


def _rounded(seconds: float) -> float:
    """To 5 digits: the journal is text, and no clock is better."""
    return float(f"{seconds:.5g}")
