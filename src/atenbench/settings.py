"""The measuring part of the configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

METHOD = 1
"""Raised whenever timing or inputs change what a runtime means; older measurements then rest."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How to measure.

    Attributes:
        device: ``auto``, ``cpu``, ``cuda`` or ``off``.
        passes: visits that every problem is given; unclear ones get one more.
        time_limit_s: seconds for one visit, before its worker is killed.
        memory_cap_gib: what the tensors of one problem may take; None for a quarter of the memory.
        time_budget_minutes: for the whole job on a CPU; None for no limit.
        cuda_time_budget_minutes: for the whole job on CUDA; None for no limit.
        seed: of the random inputs and of the order of the passes.
    """

    device: str = "auto"
    passes: int = 2
    time_limit_s: float = 20.0
    memory_cap_gib: float | None = None
    time_budget_minutes: float | None = 10.0
    cuda_time_budget_minutes: float | None = None
    seed: int = 0

    def budget_seconds(self, device: str) -> float | None:
        """The budget that holds on ``cpu`` or ``cuda:N``; None for none."""
        on_cpu = device == "cpu"
        minutes = self.time_budget_minutes if on_cpu else self.cuda_time_budget_minutes
        return None if minutes is None else 60 * minutes

    def memory_cap_bytes(self) -> int | None:
        """The memory cap; None for the default of the device."""
        return None if self.memory_cap_gib is None else int(self.memory_cap_gib * 2**30)

    def limits(self, device: str) -> dict[str, Any]:
        """What a failure may be due to: under other limits it is tried again."""
        return {
            "time_limit_s": self.time_limit_s,
            "memory_cap_gib": self.memory_cap_gib,
            "budget_s": self.budget_seconds(device),
        }


LIMITED_BY = {
    "timeout": "time_limit_s",
    "oom": "memory_cap_gib",
    "too_large": "memory_cap_gib",
    "skipped": "budget_s",
}
"""Status → the limit that it depends on; every other one holds under all limits."""
