"""The inside of an isolated worker process: receive a function, then one item after another.

Started by :mod:`atenbench.isolation` as a fresh interpreter, so that allocator settings in its
environment take effect and no thread or lock of the parent is inherited.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import resource
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
_OOM_SCORE = 500  # of -1000 … 1000: where memory runs out, the kernel takes a worker first


@dataclass(frozen=True, slots=True)
class Last:
    """Returned by a function in place of its value: after this, the worker must not be used."""

    value: Any


@dataclass(frozen=True, slots=True)
class Reply:
    """What a worker sends back for one item: a value, or the text of an exception."""

    status: str
    value: Any = None
    detail: str = ""
    reusable: bool = True


@dataclass(frozen=True, slots=True)
class Orders:
    """What a worker is told once; ``task`` is the pickled (function, initializer).

    It stays pickled until the limits hold, since unpickling it imports modules.
    """

    parent: int
    address_space: int | None
    task: bytes


def serve(descriptor: int) -> None:
    """Work on what comes over the connection until its other end closes."""
    connection = Connection(descriptor)
    orders: Orders = connection.recv()
    _die_with(orders.parent)
    _limit(orders.address_space)
    function, initializer = pickle.loads(orders.task)
    if initializer is not None:
        initializer()
    connection.send("ready")
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            connection.send_bytes(_work(function, connection.recv_bytes()))


def _die_with(parent: int) -> None:
    """Have the kernel end this process when its parent ends, however that ends (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text(str(_OOM_SCORE))
    if os.getppid() != parent:  # it ended before the line above
        os._exit(1)


def _limit(address_space: int | None) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if address_space is not None:
        resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))


def _work(function: Callable[[Any], Any], message: bytes) -> bytes:
    """The pickled reply to one pickled item."""
    try:
        value = function(pickle.loads(message))
        if isinstance(value, Last):
            reply = Reply("ok", value.value, reusable=False)
        else:
            reply = Reply("ok", value)
        return pickle.dumps(reply)
    except Exception as error:
        # The frames behind it may hold all the memory there is; the reply needs some.
        error.__traceback__ = error.__context__ = error.__cause__ = None
        status = "out_of_memory" if is_out_of_memory(error) else "error"
        return pickle.dumps(Reply(status, detail=describe(error)))


def describe(error: BaseException) -> str:
    """``Type: message`` of an exception."""
    return f"{type(error).__name__}: {error}"


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception says by its type that memory ran out."""
    if isinstance(error, MemoryError):
        return True
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(error, torch.OutOfMemoryError)
