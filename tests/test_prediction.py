"""Prediction, pilots and the cap, on a machine that is a formula."""

from __future__ import annotations

import math
import random

import pytest

from atenbench.planning import (
    ROUNDS,
    affordable_cap,
    choose_pilots,
    pilots_wanted,
    problem_seconds,
    visit_seconds,
)
from atenbench.prediction import Features, Model, features


def mm(rows: int, columns: int, inner: int, *, transposed: bool = False) -> Features:
    stride = f", stride=(1, {rows})" if transposed else ""
    args = f"((T([{rows}, {inner}], f16{stride}), T([{inner}, {columns}], f16)), {{}})"
    nbytes = 2 * (rows * inner + inner * columns + rows * columns)
    return features("aten.mm.default", args, ["f16"], nbytes, 2 * rows * columns * inner)


def machine_seconds(problem: Features, transposed: bool = False) -> float:
    """1 GFLOP/s, a tenth of that where the first tensor is transposed."""
    flops = math.expm1(problem.vector[1])
    return 2e-6 + flops / (1e8 if transposed else 1e9)


def sizes(count: int) -> list[tuple[int, int, int]]:
    draw = random.Random(0)
    return [tuple(2 ** draw.randint(5, 10) for _ in range(3)) for _ in range(count)]  # type: ignore[misc]


def test_a_group_works_at_the_rate_of_its_known_members() -> None:
    known = [mm(*size) for size in sizes(20)]
    model = Model([(problem, machine_seconds(problem)) for problem in known])
    for size in sizes(60)[20:]:
        problem = mm(*size)
        assert 0.5 < model.predict(problem) / machine_seconds(problem) < 2


def test_memory_layout_tells_rates_apart() -> None:
    known = [(mm(*size), machine_seconds(mm(*size))) for size in sizes(10)]
    known += [
        (mm(*size, transposed=True), machine_seconds(mm(*size, transposed=True), transposed=True))
        for size in sizes(10)
    ]
    plain, transposed = mm(64, 512, 128), mm(64, 512, 128, transposed=True)
    model = Model(known)
    assert model.predict(transposed) > 5 * model.predict(plain)


def test_an_unknown_group_is_predicted_at_the_nominal_rates() -> None:
    model = Model([])
    assert model.predict(mm(8, 8, 8)) < 1e-4
    assert 0.1 < model.predict(mm(1024, 1024, 1024)) < 10
    unknown = features("aten.nonzero.default", "((T([5], f16),), {})", ["f16"], None, None)
    assert 0 < model.predict(unknown) < 1e-4


def test_odd_arguments_have_features() -> None:
    text = (
        "((T([], f32), [T([2], i64), None], [9223372036854775807, -1], inf, -inf, True, None, "
        "'sum', ST([5, 3], f32, torch.sparse_coo, False, 4), nan, [], 1, 2), {'device': 'cuda'})"
    )
    found = features("aten.odd.default", text, [], 0, None)
    assert all(math.isfinite(number) for number in found.vector)
    assert math.isfinite(Model([(found, 1.0)]).predict(found))


def test_pilots_start_small_and_never_exceed_the_limit() -> None:
    problems = {str(number): mm(*size) for number, size in enumerate(sizes(100))}
    seconds = {key: 50 * machine_seconds(problem) for key, problem in problems.items()}
    limit = 0.05
    known: dict[str, float] = {}
    for round_number in range(ROUNDS):
        chosen = choose_pilots(problems, known, round_number, limit)
        assert not set(chosen) & set(known) and len(set(chosen)) == len(chosen)
        if round_number == 0:
            assert chosen[0] == min(problems, key=lambda key: (problems[key].work, key))
        else:  # by then the machine is known to be slow
            assert max((seconds[key] for key in chosen), default=0) < 3 * limit
        known |= {key: seconds[key] for key in chosen}
    assert 0 < len(known) <= pilots_wanted(100)


def test_a_known_group_needs_no_more_pilots() -> None:
    problems = {str(number): mm(*size) for number, size in enumerate(sizes(30))}
    known = {key: machine_seconds(problem) for key, problem in problems.items()}
    assert choose_pilots(problems, known, ROUNDS - 1, 1.0) == []
    few = dict(list(known.items())[: pilots_wanted(30)])
    assert choose_pilots(problems, few, ROUNDS - 1, 1.0) == []


def test_equal_problems_are_not_told_apart_and_not_chosen_twice() -> None:
    problems = {key: mm(8, 8, 8) for key in "abc"}
    assert sorted(choose_pilots(problems, {}, ROUNDS - 1, 1.0)) == ["a", "b", "c"]


def test_a_visit_of_a_slow_call_is_one_call() -> None:
    assert visit_seconds(0.5) == pytest.approx(0.5, rel=0.01)
    assert visit_seconds(0.05) == pytest.approx(0.05, rel=0.1)
    assert visit_seconds(1e-5) < 0.02
    assert problem_seconds(0.5, 2, 2) == 0
    assert problem_seconds(0.05, 1, 2) >= 0.05
    assert problem_seconds(0.5, 0, 2) == pytest.approx(0.5, rel=0.01)  # others if time is left
    assert problem_seconds(0.5, 1, 2) == 0


def test_the_cap_is_the_longest_call_there_is_room_for() -> None:
    costs = [(seconds, 2 * seconds) for seconds in (0.1, 0.2, 0.3, 0.4)]
    assert affordable_cap(costs, 100) == math.inf
    assert affordable_cap(costs, 1.5) == 0.3
    assert affordable_cap(costs, 0.01) == 0.0
    assert affordable_cap([], 1) == math.inf
    assert affordable_cap(list(reversed(costs)), 1.5) == 0.3
