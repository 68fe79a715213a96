"""The sampling and its statistics, on a clock that only moves when told to."""

from __future__ import annotations

import itertools
import math
import random
import statistics
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atenbench.timing import (
    StopRule,
    combine,
    fenced_mean,
    half_width,
    median_interval,
    take_samples,
    time_calls,
    wants_another_visit,
)

RULE = StopRule()
MS, US = 1e-3, 1e-6


class Clock:
    """A clock that stands still but for the operators that run on it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def operator(self, seconds: float) -> None:
        self.now += seconds


def constant(seconds: float, baseline: float = US) -> object:
    def sample(count: int, block: int) -> Iterator[tuple[float, float]]:
        return iter([(seconds, baseline)] * count)

    return sample


def test_time_is_per_call_and_holds_only_the_calls() -> None:
    clock = Clock()
    assert time_calls(clock.operator, [((5 * MS,), {})], clock) == pytest.approx(5 * MS)
    assert time_calls(clock.operator, [((5 * MS,), {})] * 20, clock) == pytest.approx(5 * MS)


def test_a_real_clock_and_a_sleeping_operator_agree() -> None:
    taken = time_calls(time.sleep, [((0.005,), {})], time.perf_counter)
    assert 0.005 <= taken < 0.5  # neither microseconds nor the 100 ms of a loop's total


def test_a_clock_that_stands_still_gives_no_ratio_and_no_error() -> None:
    pairs = take_samples(constant(0.0, 0.0), 0.0, RULE, RULE.block(0.0))  # type: ignore[arg-type]
    timing = combine([pairs])
    assert (timing.runtime, timing.ratio, timing.precise) == (0.0, None, False)


@pytest.mark.parametrize(
    ("call_seconds", "block"),
    [(2 * US, 25), (25 * US, 2), (49 * US, 2), (1 * MS, 1), (1e-9, 100), (0.0, 100)],
)
def test_short_calls_are_repeated_until_a_block_is_long_enough(
    call_seconds: float, block: int
) -> None:
    assert RULE.block(call_seconds) == block


def test_steady_samples_stop_at_the_first_check() -> None:
    assert len(take_samples(constant(100 * US), 100 * US, RULE, 1)) == 6  # type: ignore[arg-type]


def test_unsteady_samples_stop_at_the_last_check() -> None:
    noise = random.Random(0)

    def sample(count: int, block: int) -> Iterator[tuple[float, float]]:
        for _ in range(count):
            yield noise.uniform(25, 75) * US, US

    assert len(take_samples(sample, 50 * US, RULE, 1)) == 60


@pytest.mark.parametrize(("milliseconds", "samples"), [(1, 5), (3, 2), (4, 2), (6, 1), (400, 1)])
def test_slow_calls_stop_when_the_visit_has_had_its_time(milliseconds: int, samples: int) -> None:
    taken = take_samples(constant(milliseconds * MS), milliseconds * MS, RULE, 1)  # type: ignore[arg-type]
    assert len(taken) == samples


def test_an_estimate_that_was_far_too_high_costs_no_samples() -> None:
    assert len(take_samples(constant(100 * US), 10.0, RULE, 1)) == 6  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("count", "first", "last"), [(6, 0, 5), (9, 1, 7), (12, 2, 9), (30, 9, 20), (60, 22, 37)]
)
def test_the_interval_is_that_of_the_binomial(count: int, first: int, last: int) -> None:
    assert median_interval(range(count)) == (first, last)
    inside = sum(math.comb(count, k) for k in range(first + 1, last + 1)) / 2**count
    narrower = sum(math.comb(count, k) for k in range(first + 2, last)) / 2**count
    assert inside >= 0.94 > narrower


def test_fewer_than_six_samples_have_no_interval() -> None:
    assert median_interval([1.0] * 5) is None
    assert half_width([1.0] * 5) == math.inf


@given(st.lists(st.floats(1e-6, 1.0), min_size=6, max_size=80))
def test_the_interval_holds_the_median(values: list[float]) -> None:
    interval = median_interval(values)
    assert interval is not None
    assert interval[0] <= statistics.median(values) <= interval[1]


def test_a_hiccup_does_not_move_the_mean() -> None:
    steady = [100.0, 101.0, 99.0, 100.0, 100.5, 99.5]
    assert fenced_mean([*steady, 10_000.0]) == pytest.approx(fenced_mean(steady))
    assert fenced_mean([1.0, 3.0]) == 2.0


def test_the_ratio_is_the_median_of_pair_ratios_not_the_ratio_of_medians() -> None:
    drifting = [(2.0 * factor, 1.0 * factor) for factor in (1, 1, 1, 3, 3, 3, 3, 3)]
    timing = combine([drifting])
    assert timing.ratio == 2.0
    assert (timing.ratio_low, timing.ratio_high) == (2.0, 2.0)
    assert not timing.precise  # the time itself drifted


def test_visits_are_combined_by_the_median_of_their_means() -> None:
    visits = [[(seconds, 1.0)] * 6 for seconds in (1.0, 1.2, 9.0)]
    timing = combine(visits)
    assert timing.runtime == pytest.approx(1.2)
    assert (timing.visits, timing.samples, timing.least) == (3, 18, 1.0)
    assert timing.between_visits == pytest.approx(statistics.stdev([1, 1.2, 9]) / (11.2 / 3))


def test_precision_is_only_met_where_visits_agree_too() -> None:
    steady = [(1.0, 0.5)] * 6
    assert combine([steady, steady]).precise
    assert not combine([steady, [(1.03, 0.5)] * 6]).precise
    assert not combine([[(1.0, 0.5)], [(1.0, 0.5)]]).precise  # two samples show nothing
    assert combine([steady]).between_visits is None


def test_another_visit_is_wanted_near_the_threshold_and_where_visits_disagree() -> None:
    near = [(1.25 * US, US), (1.35 * US, US)] * 4
    assert wants_another_visit([near, near])
    assert not wants_another_visit([[(2 * US, US)] * 6] * 2)
    assert wants_another_visit([[(2 * US, US)] * 6, [(2.3 * US, 1.15 * US)] * 6])
    assert not wants_another_visit([[(0.02, US)] * 6, [(0.04, US)] * 6])  # a long call
    assert not wants_another_visit([[(0.1, 1e-6)], [(0.101, 1e-6)]])  # too few for an interval


def test_a_visit_asks_for_what_it_takes() -> None:
    asked: list[tuple[int, int]] = []

    def sample(count: int, block: int) -> Iterator[tuple[float, float]]:
        asked.append((count, block))
        return itertools.repeat((10 * US, US), count)

    take_samples(sample, 10 * US, RULE, 10)
    assert asked == [(6, 10)]
