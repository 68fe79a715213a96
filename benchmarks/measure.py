"""Times three ways of timing on the same real problems: ours, do_bench's and the reference's.

``python benchmarks/measure.py results/problem_details.parquet`` takes 200 random problems whose
calls take at most 0.3 s (the reference makes 110 of each) and times each in every way, five times
over, on one core. It prints a Markdown table: wall time for each way (inputs, warm-up and garbage
collection as its authors have them), and how far the five results of a problem lie apart. On a
quiet machine it takes about half an hour, nearly all of it the reference's;
``--repeats 1 --problems 50`` is a look.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ENVIRONMENT = {
    "MALLOC_MMAP_THRESHOLD_": "4294967296",
    "MALLOC_TRIM_THRESHOLD_": "17179869184",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
"""For all three: a C library that keeps its memory, and one thread."""

Problem = tuple[str, str]
Results = dict[Problem, list[Any]]


def main() -> None:
    """Run the benchmark and print its table."""
    options = _options()
    problems = sample(options.details, options.problems, options.seed, options.longest)
    print(f"{len(problems)} problems, {options.repeats} repeats", file=sys.stderr)
    ours, timings = time_ours(), {}
    ways: dict[str, Callable[[Sequence[Problem]], dict[Problem, Any]]] = {
        "ours": ours,
        "do_bench-like loop": as_the_reference("do_bench_on_cpu"),
        "reference's CPU loop": as_the_reference("cpu_bench"),
    }
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


def time_ours() -> Callable[[Sequence[Problem]], dict[Problem, Any]]:
    """Our way, as within a time budget: shuffled passes of two visits, a third where those leave
    a value open, a single one where a call takes 100 ms or more.
    """
    from atenbench.planning import SLOW_CALL
    from atenbench.session import EXTRA_VISITS
    from atenbench.timing import combine, wants_another_visit
    from atenbench.trial import Task, Trial

    trial = Trial("cpu")
    trial.open()

    def is_due(number: int, made: list[Any]) -> bool:
        if number == 0:
            return True
        if len(made) != number or combine(made).runtime >= SLOW_CALL:
            return False
        return number == 1 or wants_another_visit(made)

    def run(problems: Sequence[Problem]) -> dict[Problem, Any]:
        visits: dict[Problem, list[Any]] = {problem: [] for problem in problems}
        for number in range(2 + EXTRA_VISITS):
            due = [problem for problem, made in visits.items() if is_due(number, made)]
            random.shuffle(due)
            for op_name, args in due:
                known = visits[op_name, args]
                expected = combine(known).runtime if known else None
                report = trial(Task("benchmark", op_name, args, number, expected))
                assert isinstance(report, dict) and report["status"] == "ok", (op_name, args)
                known.append([(pair[0], pair[1]) for pair in report["pairs"]])
        return {problem: combine(made) for problem, made in visits.items()}

    return run


def as_the_reference(loop: str) -> Callable[[Sequence[Problem]], dict[Problem, Any]]:
    """A loop of :mod:`atenbench.comparison`: fresh tensors for each problem, gc after each."""
    from atenbench import comparison
    from atenbench.arguments import parse
    from atenbench.operators import resolve

    def run(problems: Sequence[Problem]) -> dict[Problem, Any]:
        return {
            (op_name, args): comparison.as_the_reference(
                getattr(comparison, loop), resolve(op_name), parse(args)
            )
            for op_name, args in problems
        }

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
    if any(os.environ.get(name) != value for name, value in ENVIRONMENT.items()):
        # The C library reads its settings before Python starts.
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | ENVIRONMENT)
    sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
    main()
