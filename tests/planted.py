"""Operators with faults, registered where this module is imported, and a trial that knows them."""

from __future__ import annotations

import ctypes
import os
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from atenbench.trial import Report, Survey, Task, Trial
from atenbench.worker import Last


def segfault(x: torch.Tensor) -> torch.Tensor:
    ctypes.string_at(0)
    return x.clone()


def abort(x: torch.Tensor) -> torch.Tensor:
    os.abort()


def hang(x: torch.Tensor) -> torch.Tensor:
    time.sleep(600)
    return x.clone()


def allocate(x: torch.Tensor) -> torch.Tensor:
    hoard = [x]
    while True:
        hoard.append(torch.empty(64 * 2**20, dtype=torch.uint8))


def fail(x: torch.Tensor) -> torch.Tensor:
    raise ValueError("no such luck")


def only_wide(x: torch.Tensor) -> torch.Tensor:
    if x.dtype is not torch.float32:
        raise RuntimeError("some text that nobody should have to know")
    return x.clone()


def no_kernel(x: torch.Tensor) -> torch.Tensor:
    raise NotImplementedError("not on this device")


def fail_later(x: torch.Tensor) -> torch.Tensor:
    """Works in the first worker that calls it, crashes in any other."""
    marker = Path(os.environ["PLANTED_MARKER"])
    if not marker.exists():
        marker.write_text(str(os.getpid()))
    if marker.read_text() != str(os.getpid()):
        os.abort()
    return x.clone()


_library = torch.library.Library("planted", "DEF")
for _function in (segfault, abort, hang, allocate, fail, only_wide, no_kernel, fail_later):
    _library.define(f"{_function.__name__}(Tensor x) -> Tensor")
    _library.impl(_function.__name__, _function, "CPU")


@dataclass
class PlantedTrial(Trial):
    """A trial in whose workers the operators above exist; notes each visit when it begins."""

    arena_bytes: int = 8 * 2**20

    def __call__(self, task: Task | Survey) -> Report | Last:
        notes = os.environ.get("PLANTED_NOTES")
        if notes and isinstance(task, Task):
            with Path(notes).open("a") as file:
                file.write(f"{task.key} {task.visit}\n")
        return super().__call__(task)
