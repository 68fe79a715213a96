"""Runs a function over items in worker processes, so that an item ends at most one worker.

A crash, a hang or running out of memory costs the item it happened at; the others go on in a fresh
worker. Workers are new interpreters, not forks: they may be given allocator settings, they hold no
lock or thread of the parent, and CUDA can be used in them. They never outlive the parent, also not
when it is killed. Imports no torch.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Generic, TypeVar

from atenbench.worker import Last, Orders, Reply

Item = TypeVar("Item")
Value = TypeVar("Value")

START_LIMIT_S = 180.0
"""A worker that is not ready after so long has failed to start (torch takes 2 to 20 s)."""

_START_ATTEMPTS = 2
_STDERR_TAIL = 2_000  # characters of a dead worker's last words that are kept
_BOOTSTRAP = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from atenbench.worker import serve; serve(int(sys.argv[1]))"
)
# Sent by people and schedulers rather than by a fault of the item: worth a second try.
_FROM_OUTSIDE = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})


class Status(StrEnum):
    """How an item ended."""

    OK = "ok"
    ERROR = "error"
    CRASHED = "crashed"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"


class WorkerStartError(RuntimeError):
    """Workers do not come up at all (an initializer that raises, say): no fault of an item."""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Item, Value]):
    """What became of one item.

    ``value`` is None unless ok. ``detail`` is empty when ok, else the raw text: an exception's type
    and message, or the name of the signal and what the worker last wrote to stderr. ``seconds`` is
    the wall time between handing the item out and knowing how it ended.
    """

    item: Item
    status: Status
    value: Value | None
    detail: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Limits:
    """What each worker is given.

    Attributes:
        seconds: wall time for one item; a worker that takes longer is killed.
        address_space: bytes of address space of a worker (RLIMIT_AS); None for no limit, as CUDA
            needs, which maps far more than it uses.
        environment: set in the workers, beside what the parent has.
    """

    seconds: float
    address_space: int | None = None
    environment: Mapping[str, str] | None = None


class Workers(Generic[Item, Value]):
    """A context manager over worker processes that are started when first needed.

    ``function`` and ``initializer`` are pickled: top-level functions, or instances of top-level
    classes, of an importable module (not ``__main__``). An instance is unpickled once per worker,
    so it can keep state from item to item there; a value that it returns in :class:`Last` is the
    last one of its worker. Must be used from one thread, which has to outlive the workers.
    """

    def __init__(
        self,
        function: Callable[[Item], Value | Last],
        limits: Limits,
        *,
        workers: int = 1,
        initializer: Callable[[], object] | None = None,
    ) -> None:
        self.limits = limits
        self.started = 0
        self._task = pickle.dumps((function, initializer))
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        # More workers than cores would only wait for one another (`--cores 8` on two cores).
        self._count = min(workers, len(os.sched_getaffinity(0)))

    def __enter__(self) -> Workers[Item, Value]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for worker in list(self._all):
            self._end(worker)

    def map(self, items: Iterable[Item]) -> Iterator[Outcome[Item, Value]]:
        """One outcome for each item, in the order in which they end.

        ``items`` may be lazy: an item is taken only when a worker is free for it. An item whose
        worker was killed from outside is tried once more; killed again, it is taken to be out of
        memory, since then the kernel is the likely sender.

        Raises:
            WorkerStartError: a worker did not start, twice running.
        """
        pending = iter(items)
        again: deque[tuple[Item, bool]] = deque()
        busy: dict[Connection, _Assignment[Item]] = {}
        try:
            while True:
                while len(busy) < self._count:
                    entry = again.popleft() if again else _next(pending)
                    if entry is None:
                        break
                    assignment = self._hand_out(*entry)
                    busy[assignment.worker.connection] = assignment
                if not busy:
                    return
                for assignment in _ended(busy):
                    del busy[assignment.worker.connection]
                    outcome = self._collect(assignment)
                    if outcome is None:
                        again.append((assignment.item, True))
                    else:
                        yield outcome
        finally:
            for assignment in busy.values():
                self._end(assignment.worker)

    def _hand_out(self, item: Item, is_retry: bool) -> _Assignment[Item]:
        message = pickle.dumps(item)
        while True:
            worker = self._idle.pop() if self._idle else self._start()
            worker.mark_stderr()
            now = time.monotonic()
            try:
                worker.connection.send_bytes(message)
            except (BrokenPipeError, ConnectionResetError):  # it died while idle
                self._end(worker)
                continue
            return _Assignment(worker, item, is_retry, now, now + self.limits.seconds)

    def _collect(self, assignment: _Assignment[Item]) -> Outcome[Item, Value] | None:
        """The outcome of an item whose worker answered, died or is late; None to try again."""
        worker, item = assignment.worker, assignment.item
        reply = worker.receive()
        seconds = time.monotonic() - assignment.since
        if reply is not None:
            if reply.reusable:
                self._idle.append(worker)
            else:
                self._end(worker)
            return Outcome(item, Status(reply.status), reply.value, reply.detail, seconds)
        if worker.is_alive():
            self._end(worker)
            detail = f"no end after {self.limits.seconds:g} s"
            return Outcome(item, Status.TIMEOUT, None, detail, seconds)
        code = worker.exit_code()
        detail = worker.last_words()
        self._end(worker)
        if -code not in _FROM_OUTSIDE:
            return Outcome(item, Status.CRASHED, None, detail, seconds)
        if not assignment.is_retry:
            return None
        killed = code == -signal.SIGKILL
        status = Status.OUT_OF_MEMORY if killed else Status.CRASHED
        return Outcome(item, status, None, detail, seconds)

    def _start(self) -> _Worker:
        failures: list[str] = []
        while len(failures) < _START_ATTEMPTS:
            worker = _Worker(self._task, self.limits)
            self._all.add(worker)
            self.started += 1
            if worker.wait_until_ready():
                return worker
            words = worker.last_words() if not worker.is_alive() else "no sign of life"
            failures.append(words)
            self._end(worker)
        raise WorkerStartError(f"a worker process does not start: {failures[-1]}")

    def _end(self, worker: _Worker) -> None:
        worker.end()
        self._all.discard(worker)


def run_isolated(
    function: Callable[[Item], Value | Last],
    items: Iterable[Item],
    limits: Limits,
    *,
    workers: int = 1,
    initializer: Callable[[], object] | None = None,
) -> Iterator[Outcome[Item, Value]]:
    """:meth:`Workers.map` with workers of its own, which end with the iteration."""
    with Workers(function, limits, workers=workers, initializer=initializer) as pool:
        yield from pool.map(items)


@dataclass(slots=True)
class _Assignment(Generic[Item]):
    """An item in the hands of a worker."""

    worker: _Worker
    item: Item
    is_retry: bool
    since: float
    deadline: float


class _Worker:
    """One worker process and the connection to it."""

    def __init__(self, task: bytes, limits: Limits) -> None:
        self.connection, theirs = Pipe()
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed by end)
        self._mark = 0
        import_path = [path or str(Path.cwd()) for path in sys.path]
        # A session of its own: Ctrl-C is for the parent, which then ends its workers.
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BOOTSTRAP, str(theirs.fileno()), json.dumps(import_path)],
            pass_fds=[theirs.fileno()],
            env=os.environ | dict(limits.environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=self._stderr,
            stderr=self._stderr,
            start_new_session=True,
        )
        theirs.close()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send(Orders(os.getpid(), limits.address_space, task))

    def wait_until_ready(self) -> bool:
        try:
            return self.connection.poll(START_LIMIT_S) and self.connection.recv() == "ready"
        except (EOFError, OSError):
            self._await_death()
            return False

    def receive(self) -> Reply | None:
        """The reply that lies ready, or None where there is none."""
        try:
            if not self.connection.poll():
                return None
            reply = self.connection.recv()
        except (EOFError, OSError):
            self._await_death()
            return None
        assert isinstance(reply, Reply)
        return reply

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def exit_code(self) -> int:
        """As ``subprocess`` gives it: minus the signal's number for a death by signal."""
        return self._process.wait()

    def mark_stderr(self) -> None:
        self._mark = os.fstat(self._stderr.fileno()).st_size

    def last_words(self) -> str:
        """The signal or exit code of a dead worker and what it wrote since the mark."""
        code = self.exit_code()
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        self._stderr.seek(self._mark)
        words = self._stderr.read().decode(errors="replace").strip()[-_STDERR_TAIL:]
        return f"{name}: {words}" if words else name

    def end(self) -> None:
        """Kill the process and everything it started; harmless when it is dead already."""
        if self.is_alive():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
        self._process.wait()
        self.connection.close()
        self._stderr.close()

    def _await_death(self) -> None:
        """The connection has ended; should the process not have, it is of no use any more."""
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()


def _next(pending: Iterator[Item]) -> tuple[Item, bool] | None:
    for item in pending:
        return item, False
    return None


def _ended(busy: Mapping[Connection, _Assignment[Any]]) -> list[_Assignment[Any]]:
    """Waits until some worker answers, dies or runs out of time; those that did."""
    first = min(assignment.deadline for assignment in busy.values())
    ready = wait(list(busy), timeout=max(first - time.monotonic(), 0))
    now = time.monotonic()
    return [
        assignment
        for connection, assignment in busy.items()
        if connection in ready or assignment.deadline <= now
    ]
