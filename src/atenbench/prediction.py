"""What a call of a problem will take, before it is made.

Method: a problem is taken to work at the rate of the three measured ones that resemble it most:
same operator and dtypes, nearest by the logarithms of its sizes, by its arguments and by how its
tensors lie in memory. Imports no torch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from atenbench.arguments import Arguments, Tensor, Value, parse

LAUNCH_SECONDS = 5e-6
BYTES_PER_SECOND = 4e9
FLOPS_PER_SECOND = 4e9
"""Rates of a single slow core, from which an operator that has not been measured starts."""

_NEIGHBOURS = 3
_POSITIONS = 12  # arguments that are looked at
_PER_POSITION = 3
_LARGEST = 12.0  # e^12 = 160,000: ends and sizes such as 2^63 - 1 say no more than that
_LAYOUT_WEIGHT, _GAPS = 6.0, 0.5
_NEAR = 0.1  # a distance below which neighbours weigh alike

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """What prediction knows of a problem.

    Attributes:
        group: operator and dtypes; rates are shared within it.
        work: seconds at the nominal rates: what scales with size.
        vector: logarithms of sizes and arguments, by position; distances are taken in it.
    """

    group: tuple[str, ...]
    work: float
    vector: Vector


def features(
    op_name: str, args: str, dtypes: Sequence[str], nbytes: int | None, flops: int | None
) -> Features:
    """The features of a problem.

    Args:
        op_name, args: the problem.
        dtypes: abbreviations of the dtypes of its tensors.
        nbytes: bytes it must move, or those of its inputs where that is not known.
        flops: floating-point operations, if there is a formula.
    """
    moved, operations = float(nbytes or 0), float(flops or 0)
    work = LAUNCH_SECONDS + max(moved / BYTES_PER_SECOND, operations / FLOPS_PER_SECOND)
    vector = np.zeros(2 + _POSITIONS * _PER_POSITION)
    vector[:2] = math.log1p(moved), math.log1p(operations)
    for place, value in enumerate(_positions(parse(args))):
        start = 2 + place * _PER_POSITION
        vector[start : start + _PER_POSITION] = _coordinates(value)
    return Features((op_name, *dtypes), work, vector)


def _positions(arguments: Arguments) -> list[Value]:
    return [*arguments.args, *arguments.kwargs.values()][:_POSITIONS]


def _coordinates(value: Value) -> tuple[float, float, float]:
    match value:
        case Tensor():
            innermost = value.shape[-1] if value.shape else 1
            return math.log1p(value.numel), math.log1p(innermost), _layout(value)
        case list() | tuple() if any(isinstance(item, Tensor) for item in value):
            tensors = [item for item in value if isinstance(item, Tensor)]
            numel = sum(tensor.numel for tensor in tensors)
            return math.log1p(numel), float(len(tensors)), max(map(_layout, tensors))
        case list() | tuple():
            sizes = [_size(item) for item in value if isinstance(item, int | float)]
            return min(sum(sizes), _LARGEST), 0.0, 0.0
        case int() | float():
            return _size(value), 1.0, 0.0
    return 0.0, 0.0, 0.0


def _size(number: float) -> float:
    return min(math.log1p(abs(number)), _LARGEST) if math.isfinite(number) else _LARGEST


def _layout(tensor: Tensor) -> float:
    """0 for contiguous, a little for gaps, more where the last dimension is not the closest."""
    if tensor.stride is None or not tensor.stride:
        return 0.0
    least = min(range(len(tensor.stride)), key=lambda dim: (tensor.stride or ())[dim])
    return _GAPS + _LAYOUT_WEIGHT * (len(tensor.stride) - 1 - least > 0)


class Model:
    """Predicts from problems whose seconds per call are known."""

    def __init__(self, known: Iterable[tuple[Features, float]]) -> None:
        groups: dict[tuple[str, ...], list[tuple[Features, float]]] = {}
        for problem, seconds in known:
            groups.setdefault(problem.group, []).append((problem, seconds))
        self._groups = {
            group: (
                np.stack([problem.vector for problem, _ in members]),
                np.log([max(seconds, 1e-7) / problem.work for problem, seconds in members]),
            )
            for group, members in groups.items()
        }

    def predict(self, problem: Features) -> float:
        """Seconds per call; at the nominal rates where nothing of its group is known."""
        if problem.group not in self._groups:
            return problem.work
        vectors, log_rates = self._groups[problem.group]
        distances = np.abs(vectors - problem.vector).sum(axis=1)
        nearest = np.argsort(distances, kind="stable")[:_NEIGHBOURS]
        weights = 1 / (distances[nearest] + _NEAR)
        return problem.work * float(np.exp(np.average(log_rates[nearest], weights=weights)))
