"""Which problems to measure first to learn a machine's rates, and what a time budget has room for.

A few problems of each operator are *pilots*: visited before all others, the smallest first, each
next one only if what is known by then predicts that it is quick. Their visits count like any other.
From the rates they show follows the *cap*, the longest call that the budget has room for.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from atenbench.prediction import Features, Model
from atenbench.timing import StopRule

ROUNDS = 4
"""Rounds of pilots; after each, what has been seen is fitted again."""

SLOW_CALL = 0.100
"""Seconds of a call from which a problem gets further visits only if there is time left."""

_EXTRA_VISITS = 0.3  # a third visit for so many of the quick problems
_RESERVE = 0.15  # of the budget, for starting and for what is slower than predicted
_VISIT_OVERHEAD = 0.002  # seconds: parsing, making inputs, the journal


def pilots_wanted(group_size: int) -> int:
    """How many problems of a group are to be known before the others are predicted."""
    return min(group_size, 3 + math.isqrt(group_size))


def choose_pilots(
    problems: Mapping[str, Features], known: Mapping[str, float], round_number: int, limit: float
) -> list[str]:
    """The keys of the problems to visit next, so that every group becomes predictable.

    Args:
        problems: the features of each problem, by key.
        known: seconds per call of those that have been measured.
        round_number: 0 to :data:`ROUNDS` - 1; each asks for a part of :func:`pilots_wanted`.
        limit: no problem that is predicted to take longer is chosen.
    """
    model = Model((problems[key], known[key]) for key in known)
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for key, problem in problems.items():
        groups[problem.group].append(key)
    chosen: list[str] = []
    for keys in groups.values():
        wanted = math.ceil(pilots_wanted(len(keys)) * (round_number + 1) / ROUNDS)
        have = [key for key in keys if key in known]
        quick = [key for key in keys if key not in known and model.predict(problems[key]) <= limit]
        quick.sort(key=lambda key: (problems[key].work, key))
        chosen.extend(_spread(problems, have, quick, wanted - len(have)))
    return chosen


def _spread(
    problems: Mapping[str, Features], have: Sequence[str], candidates: Sequence[str], count: int
) -> Iterator[str]:
    """So many of the candidates, each as unlike those before it as any; first the smallest."""
    if count <= 0 or not candidates:
        return
    vectors = np.stack([problems[key].vector for key in candidates])
    distances = np.full(len(candidates), np.inf)
    for key in have:
        distances = np.minimum(distances, np.abs(vectors - problems[key].vector).sum(axis=1))
    for _ in range(min(count, len(candidates))):
        index = int(distances.argmax())  # of equals, the first: the smallest
        if distances[index] < 0:
            return
        yield candidates[index]
        distances = np.minimum(distances, np.abs(vectors - vectors[index]).sum(axis=1))
        distances[index] = -1


def visit_seconds(call_seconds: float, rule: StopRule | None = None) -> float:
    """What one visit takes, by what a call takes; see :class:`atenbench.timing.StopRule`."""
    rule = rule or StopRule()
    if call_seconds >= rule.long_call:
        return _VISIT_OVERHEAD + call_seconds
    warm_calls = min(rule.warm_calls, math.ceil(rule.warm_seconds / max(call_seconds, 1e-9)))
    sample = max(call_seconds, rule.block_seconds)
    # About half of the samples that are allowed: the interval is narrow by then.
    sampling = min(max(rule.seconds, call_seconds), rule.checks[-1] / 2 * sample)
    # Beside each sample the baseline's, and short calls' arguments take as long as they do.
    beside = rule.checks[-1] / 2 * rule.block_seconds
    share = 2 if call_seconds < rule.block_seconds else 1
    return _VISIT_OVERHEAD + warm_calls * call_seconds + share * sampling + beside


def problem_seconds(call_seconds: float, visits_made: int, passes: int) -> float:
    """What the visits take that are still owed to a problem.

    For a slow problem that is the first visit: it gets others if time is left, since what one of
    them takes is as much as a runtime for another problem. Quick ones' extra visits are reckoned
    with, being cheap.
    """
    if visits_made >= passes:
        return 0.0
    if call_seconds >= SLOW_CALL:
        return 0.0 if visits_made else visit_seconds(call_seconds)
    return (passes - visits_made + _EXTRA_VISITS) * visit_seconds(call_seconds)


def affordable_cap(predicted: Sequence[tuple[float, float]], budget: float) -> float:
    """The longest call that a budget has room for, when the quickest problems come first.

    Args:
        predicted: seconds per call and seconds for all its visits, of each problem.
        budget: seconds for all of them.

    Returns:
        Seconds per call; infinite where there is room for everything.
    """
    room = budget * (1 - _RESERVE)
    longest = 0.0
    for call_seconds, needed in sorted(predicted):
        room -= needed
        if room < 0:
            return longest
        longest = call_seconds
    return math.inf
