"""How long one operator takes: which samples to take, when to stop, what they say.

Pure: it runs what it is given and reads the clock it is given. A *sample* is a pair, the seconds
per call of the operator and of the launch baseline, taken one right after the other: what drifts,
drifts for both, so their ratio holds far better than either. A *visit* is a run of samples; the
same problem is visited again minutes later, because drift between visits, not the noise within
one, is what limits repeatability.

Method: samples until the order-statistic interval of their median (94 % nominal; checking often
lowers it) is within 2 % of it, at most 60 or 5 ms of them. The runtime is the Tukey-fenced mean
per visit and the median over visits; the ratio is the median of the pair ratios.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Pair = tuple[float, float]
"""Seconds per call of the operator and of the baseline beside it."""

CONFIDENCE = 0.94
PRECISION = 0.02
"""Largest half-width of the interval, in parts of the median, of a value that counts as precise."""

VISITS_AGREE = 0.10
"""Visits whose runtimes lie further apart, in parts of the smallest, call for another visit."""

STEADY_CALL = 0.020
"""Seconds of a call from which two visits are enough: it is long enough to average over noise."""

RATIO_OF_INTEREST = 1.3
"""The published overhead threshold: a ratio that cannot be told from it calls for another visit."""


@dataclass(frozen=True, slots=True)
class StopRule:
    """How many samples a visit takes.

    Attributes:
        checks: the numbers of samples after which the interval is looked at; the last is the most.
        seconds: operator time after which a visit ends, whatever its interval.
        block_seconds: a sample repeats shorter calls until it takes about so long.
        most_calls: the most calls of one sample.
        warm_calls: calls before the first sample at most, the very first one included.
        warm_seconds: once they have taken so long, they are enough.
        long_call: a call at least so long is its own sample, and the only one of its visit: a
            first call of 1 ms or more takes as long as later ones (0.98 to 1.00 times as long, by
            the medians of 1,600 problems on a CPU).
    """

    checks: tuple[int, ...] = (6, 9, 12, 15, 18, 24, 30, 40, 50, 60)
    seconds: float = 0.005
    block_seconds: float = 50e-6
    most_calls: int = 100
    warm_calls: int = 3
    warm_seconds: float = 0.002
    long_call: float = 0.005

    def block(self, call_seconds: float) -> int:
        """How many calls one sample repeats."""
        if call_seconds <= 0:
            return self.most_calls
        needed = math.ceil(self.block_seconds / call_seconds - 1e-9)
        return min(max(needed, 1), self.most_calls)


def time_calls(
    function: Callable[..., Any],
    calls: Sequence[tuple[tuple[Any, ...], dict[str, Any]]],
    clock: Callable[[], float],
) -> float:
    """Seconds per call over a block of calls, each with its own arguments."""
    start = clock()
    for args, kwargs in calls:
        function(*args, **kwargs)
    return (clock() - start) / len(calls)


def take_samples(
    sample: Callable[[int, int], Iterable[Pair]],
    call_seconds: float,
    rule: StopRule,
    block: int,
) -> list[Pair]:
    """The samples of one visit.

    Args:
        sample: takes (how many samples, calls per sample) and yields that many.
        call_seconds: what a call takes, roughly, to take no more samples than there is time for.
        rule: when to stop.
        block: calls per sample.
    """
    pairs: list[Pair] = []
    spent = 0.0
    for check in rule.checks:
        while len(pairs) < check:
            room = (rule.seconds - spent) / max(call_seconds * block, 1e-9)
            count = min(check - len(pairs), max(math.ceil(room), 1))
            taken = list(sample(count, block))
            pairs += taken
            spent += sum(seconds for seconds, _ in taken) * block
            if spent >= rule.seconds:
                return pairs
        if half_width([seconds for seconds, _ in pairs]) <= PRECISION:
            return pairs
    return pairs


@functools.cache
def _rank(count: int) -> int | None:
    """The largest k for which the k-th smallest and largest of so many hold the median."""
    below, rank = 0.0, None
    for k in range(count // 2):
        below += math.comb(count, k) / 2**count
        if 1 - 2 * below < CONFIDENCE:
            break
        rank = k
    return rank


def median_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """A distribution-free interval of the median at :data:`CONFIDENCE`; None for under 6 values.

    Method: order statistics; the number of values below the median is binomial (n, 1/2).
    """
    rank = _rank(len(values))
    if rank is None:
        return None
    ordered = sorted(values)
    return ordered[rank], ordered[-1 - rank]


def half_width(values: Sequence[float]) -> float:
    """Half the interval of the median, in parts of the median; infinite where there is none."""
    interval = median_interval(values)
    middle = statistics.median(values) if values else 0.0
    if interval is None or middle <= 0:
        return math.inf
    return (interval[1] - interval[0]) / 2 / middle


def fenced_mean(values: Sequence[float]) -> float:
    """The mean of what lies within Tukey's fences (1.5 interquartile ranges beyond a quartile)."""
    if len(values) < 4:
        return statistics.fmean(values)
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    reach = 1.5 * (third - first)
    return statistics.fmean(value for value in values if first - reach <= value <= third + reach)


@dataclass(frozen=True, slots=True)
class Timing:
    """What all visits of a problem say together; times in seconds.

    Attributes:
        runtime: median over visits of each visit's fenced mean.
        median, least, interquartile_range: over the samples of all visits.
        samples: how many.
        visits: how many.
        between_visits: standard deviation of the visits' runtimes in parts of their mean; None for
            one visit.
        ratio, ratio_low, ratio_high: median of the pair ratios and its interval; None where a
            clock too coarse gave a baseline of 0, or there are too few samples for an interval.
        precise: the interval of the median is within 2 % of it, over all samples, and the
            visits' runtimes are within 2 % of each other.
    """

    runtime: float
    median: float
    least: float
    interquartile_range: float
    samples: int
    visits: int
    between_visits: float | None
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    precise: bool


def combine(visits: Sequence[Sequence[Pair]]) -> Timing:
    """The timing that the samples of some visits give; each visit has at least one."""
    runtimes = [fenced_mean([seconds for seconds, _ in visit]) for visit in visits]
    seconds = [op for visit in visits for op, _ in visit]
    ratios = [op / base for visit in visits for op, base in visit if base > 0]
    ratio_interval = median_interval(ratios)
    middle = statistics.fmean(runtimes)
    agree = max(runtimes) - min(runtimes) <= PRECISION * min(runtimes)
    quartiles = statistics.quantiles(seconds, n=4, method="inclusive") if len(seconds) > 1 else []
    return Timing(
        runtime=statistics.median(runtimes),
        median=statistics.median(seconds),
        least=min(seconds),
        interquartile_range=quartiles[2] - quartiles[0] if quartiles else 0.0,
        samples=len(seconds),
        visits=len(visits),
        between_visits=statistics.stdev(runtimes) / middle
        if len(runtimes) > 1 and middle > 0
        else None,
        ratio=statistics.median(ratios) if ratios else None,
        ratio_low=ratio_interval[0] if ratio_interval else None,
        ratio_high=ratio_interval[1] if ratio_interval else None,
        precise=agree and half_width(seconds) <= PRECISION,
    )


def wants_another_visit(visits: Sequence[Sequence[Pair]]) -> bool:
    """Whether the visits so far leave open what another one could settle.

    The interval of the ratio straddles :data:`RATIO_OF_INTEREST`, or the visits disagree by more
    than :data:`VISITS_AGREE`; never where a call takes :data:`STEADY_CALL` or longer.
    """
    timing = combine(visits)
    if timing.runtime >= STEADY_CALL:
        return False
    if timing.ratio_low is not None and timing.ratio_high is not None:
        straddles = timing.ratio_low < RATIO_OF_INTEREST < timing.ratio_high
    else:
        straddles = False
    runtimes = [fenced_mean([seconds for seconds, _ in visit]) for visit in visits]
    return straddles or max(runtimes) - min(runtimes) > VISITS_AGREE * min(runtimes)
