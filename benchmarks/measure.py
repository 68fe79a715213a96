"""Times three ways of timing on the same real problems: ours, do_bench's and the reference's.

``python benchmarks/measure.py results/problem_details.parquet`` takes 200 random problems whose
calls take at most 0.3 s (the reference makes 110 of each) and times each in every way, five times
over, on one core. Each way has a worker process of its own, with our settings of the C library and
one thread, started beforehand; the arenas of ours are made in its first repeat. It prints a
Markdown table: wall time for each way (inputs, warm-up and garbage collection as its authors have
them), and how far the five results of a problem lie apart. On a quiet machine it takes about half
an hour, nearly all of it the reference's; ``--repeats 1 --problems 50`` is a look.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from atenbench.isolation import Workers

Problem = tuple[str, str]
Results = dict[Problem, list[Any]]
Way = Callable[[Sequence[Problem]], dict[Problem, Any]]


def main() -> None:
    """Run the benchmark and print its table."""
    options = _options()
    problems = sample(options.details, options.problems, options.seed, options.longest)
    print(f"{len(problems)} problems, {options.repeats} repeats", file=sys.stderr)
    with ExitStack() as stack:
        ways = open_ways(stack)
        walls: dict[str, list[float]] = {name: [] for name in ways}
        results: dict[str, Results] = {name: {} for name in ways}
        for repeat in range(options.repeats):
            order = problems[:]
            random.Random(repeat).shuffle(order)
            for name, way in ways.items():
                start = time.perf_counter()
                timings = way(order)
                walls[name].append(time.perf_counter() - start)
                for problem, seconds in timings.items():
                    results[name].setdefault(problem, []).append(seconds)
                print(f"repeat {repeat + 1}, {name}: {walls[name][-1]:.1f} s", file=sys.stderr)
    print(table(walls, results))
    print(ratios(results["ours"]))


def open_ways(stack: ExitStack) -> dict[str, Way]:
    """The three ways, each in a process of its own that has started: none has another's heap."""
    from atenbench import comparison
    from atenbench.isolation import Limits
    from atenbench.session import WORKER_ENVIRONMENT
    from atenbench.trial import Survey, Trial

    limits = Limits(seconds=600, environment=WORKER_ENVIRONMENT)
    trial = Trial("cpu")
    ours = stack.enter_context(Workers(trial, limits, initializer=trial.start))
    assert [outcome.status for outcome in ours.map([Survey()])] == ["ok"]
    ways = {"ours": time_ours(ours)}
    for name, loop in (
        ("do_bench-like loop", comparison.do_bench_on_cpu),
        ("reference's CPU loop", comparison.cpu_bench),
    ):
        workers = stack.enter_context(Workers(comparison.ReferenceTrial(loop), limits))
        started = workers.map([("aten.add.Tensor", "((T([8], f32), T([8], f32)), {})")])
        assert [outcome.status for outcome in started] == ["ok"]
        ways[name] = time_theirs(workers)
    return ways


def sample(details: Path, count: int, seed: int, longest: float = 0.3) -> list[Problem]:
    """So many random problems of a details table whose calls take no longer (seconds)."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    columns = ["op_name", "args", "runtime_ms"]
    measured = pq.read_table(details, columns=columns)
    measured = measured.filter(
        (pc.field("runtime_ms") > 0) & (pc.field("runtime_ms") <= 1e3 * longest)
    )
    rows = sorted((row["op_name"], row["args"]) for row in measured.to_pylist())
    return random.Random(seed).sample(rows, min(count, len(rows)))


def time_ours(workers: Workers[Any, Any]) -> Way:
    """Our way, as within a time budget: shuffled passes of two visits, a third where those leave
    a value open, a single one where a call takes 100 ms or more.
    """
    from atenbench.planning import SLOW_CALL
    from atenbench.session import EXTRA_VISITS
    from atenbench.timing import combine, wants_another_visit
    from atenbench.trial import Task

    def is_due(number: int, made: list[Any]) -> bool:
        if number == 0:
            return True
        if len(made) != number or combine(made).runtime >= SLOW_CALL:
            return False
        return number == 1 or wants_another_visit(made)

    def task(problem: Problem, made: list[Any]) -> Task:
        op_name, args = problem
        expected = combine(made).runtime if made else None
        return Task("benchmark", op_name, args, len(made), expected)

    def run(problems: Sequence[Problem]) -> dict[Problem, Any]:
        visits: dict[Problem, list[Any]] = {problem: [] for problem in problems}
        for number in range(2 + EXTRA_VISITS):
            due = [problem for problem, made in visits.items() if is_due(number, made)]
            random.shuffle(due)
            for outcome in workers.map(task(problem, visits[problem]) for problem in due):
                report = outcome.value
                assert report and report["status"] == "ok", (outcome.item, outcome.detail)
                made = visits[outcome.item.op_name, outcome.item.args]
                made.append([(pair[0], pair[1]) for pair in report["pairs"]])
        return {problem: combine(made) for problem, made in visits.items()}

    return run


def time_theirs(workers: Workers[Any, Any]) -> Way:
    """A reference's way: problem after problem."""

    def run(problems: Sequence[Problem]) -> dict[Problem, Any]:
        found = {outcome.item: outcome.value for outcome in workers.map(problems)}
        assert None not in found.values()
        return found

    return run


def _seconds(result: Any) -> float:
    return float(getattr(result, "runtime", result))


def spread(results: Results) -> float:
    """The median over problems of (largest - smallest) / median of its repeats."""
    spreads = []
    for repeats in results.values():
        seconds = [_seconds(result) for result in repeats]
        spreads.append((max(seconds) - min(seconds)) / statistics.median(seconds))
    return statistics.median(spreads)


def table(walls: dict[str, list[float]], results: dict[str, Results]) -> str:
    """Wall time, factor and spread of each way, as Markdown."""
    ours = statistics.median(walls["ours"])
    lines = [
        "| way | wall, median of repeats | times ours | wall, least and most | median spread |",
        "|---|--:|--:|--:|--:|",
    ]
    for name, seconds in walls.items():
        wall = statistics.median(seconds)
        ends = f"{min(seconds):.1f} to {max(seconds):.1f} s"
        lines.append(
            f"| {name} | {wall:.1f} s | {wall / ours:.1f} | {ends} | {spread(results[name]):.1%} |"
        )
    return "\n".join(lines)


def ratios(results: Results) -> str:
    """How far the launch ratios of launch-bound problems lie apart between two runs."""
    apart = []
    for repeats in results.values():
        found = [timing.ratio for timing in repeats if timing.ratio]
        if len(found) > 1 and statistics.median(found) < 2:
            apart += [abs(one / other - 1) for one, other in itertools.pairwise(found)]
    if not apart:
        return "no launch-bound problem (ratio under 2) was timed twice"
    return (
        f"launch-bound problems (ratio under 2): two runs' ratios differ by "
        f"{statistics.median(apart):.1%} in the median ({len(apart)} pairs of runs)"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("details", type=Path, help="results/problem_details.parquet")
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--longest", type=float, default=0.3, help="seconds of a call")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
