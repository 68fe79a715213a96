"""Ours against literal ``do_bench`` on one GPU; needs torch and triton, nothing else.

``python -m atenbench.gpu_check`` times a random 1 % of the problems of the traces both ways and
prints the log-ratios, the wall times, and the self-test: an empty tensor over an empty tensor must
be 1.00 ± 0.02. It ends with status 1 where that, or the median of ours over ``do_bench``, is
further off than 0.02. ``--device cpu`` does the same with a stand-in for ``do_bench``, to try it.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch._ops import OpOverload

from atenbench.arguments import parse
from atenbench.comparison import do_bench_on_cpu, fresh_call, literal_do_bench
from atenbench.devices import choose, empty_baseline, open_device
from atenbench.inputs import Call
from atenbench.operators import UnknownOperator, resolve
from atenbench.timing import Pair, combine
from atenbench.trace import find_traces, lines_of
from atenbench.trial import Report, Task, Trial

TOLERANCE = 0.02
_VISITS = 2
_SELF_TEST_SAMPLES = 60

Problem = tuple[str, str]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the check; 0 if all is within the tolerance."""
    options = _options(arguments)
    names = choose(options.device)
    if not names:
        print("torch finds no CUDA device here; nothing was checked", file=sys.stderr)
        return 1
    print(f"device {names[0]}, torch {torch.__version__}")
    empty = self_test(names[0])
    print(f"empty over empty: {empty:.3f} (1.00 ± {TOLERANCE})")
    problems = sample(read_problems(options.traces), options.fraction, options.seed)
    print(f"{len(problems)} problems, {options.fraction:.1%} of all", flush=True)
    log_ratios = compare(problems, names[0])
    if not log_ratios:
        print("none of them could be timed both ways", file=sys.stderr)
        return 1
    middle = math.exp(statistics.median(log_ratios))
    print(report(log_ratios))
    holds = abs(empty - 1) <= TOLERANCE and abs(middle - 1) <= TOLERANCE
    print("holds" if holds else "does not hold")
    return 0 if holds else 1


def self_test(device_name: str) -> float:
    """The ratio of the launch baseline to itself, taken as any operator's is."""
    device = open_device(device_name)
    op, call = empty_baseline(device.device)
    blocks = [[call] * min(40, device.most_calls) for _ in range(_SELF_TEST_SAMPLES)]
    list(device.samples(op, blocks))  # warm up
    ratio = combine([list(device.samples(op, blocks))]).ratio
    return math.nan if ratio is None else ratio


def read_problems(folder: Path) -> list[Problem]:
    """The distinct problems of all traces in a folder, in order."""
    found: set[Problem] = set()
    for trace in find_traces([folder]):
        op_name = ""
        for line in lines_of(trace):
            head, _, rest = line.decode().strip().partition(": ")
            if head == "Operator":
                op_name = rest.strip()
            elif head == "cnt":
                found.add((op_name, rest.partition(", ")[2].strip()))
    return sorted(found)


def sample(problems: Sequence[Problem], fraction: float, seed: int) -> list[Problem]:
    """A random part of the problems, at least one."""
    count = max(round(fraction * len(problems)), 1)
    return random.Random(seed).sample(list(problems), min(count, len(problems)))


def compare(problems: Sequence[Problem], device_name: str) -> list[float]:
    """Time each problem both ways; prints a line for each and the wall times, gives log-ratios."""
    trial = Trial(device_name)
    trial.open()
    loop = do_bench_on_cpu if device_name == "cpu" else literal_do_bench
    device = torch.device(device_name)
    walls = {"ours": 0.0, "do_bench": 0.0}
    ratios: list[float] = []
    print(f"{'ours':>12} {'do_bench':>12} {'ratio':>7}  milliseconds")
    for op_name, args in problems:
        ours, wall = _timed(lambda: _ours(trial, op_name, args))  # noqa: B023 (called at once)
        walls["ours"] += wall
        theirs, wall = _timed(lambda: _theirs(loop, op_name, args, device))  # noqa: B023
        walls["do_bench"] += wall
        if ours is None or theirs is None or ours <= 0 or theirs <= 0:
            print(f"{'not timed':>33}  {op_name} {args[:60]}")
            continue
        ratios.append(math.log(ours / theirs))
        numbers = f"{ours * 1e3:12.4f} {theirs * 1e3:12.4f} {ours / theirs:7.3f}"
        print(f"{numbers}  {op_name} {args[:60]}")
    factor = walls["do_bench"] / max(walls["ours"], 1e-9)
    print(f"wall: ours {walls['ours']:.1f} s, do_bench {walls['do_bench']:.1f} s ({factor:.1f} x)")
    return ratios


def report(log_ratios: Sequence[float]) -> str:
    """Quantiles of ours over ``do_bench`` as a small table."""
    ordered = sorted(log_ratios)

    def quantile(part: float) -> float:
        return ordered[round(part * (len(ordered) - 1))]

    parts = (0.05, 0.25, 0.5, 0.75, 0.95)
    cells = [f"{quantile(part):+.3f} ({math.exp(quantile(part)):.3f})" for part in parts]
    head = " | ".join(f"{part:.0%}" for part in parts)
    return f"log(ours / do_bench), and the ratio, at {head}:\n  {' | '.join(cells)}"


def _ours(trial: Trial, op_name: str, args: str) -> float | None:
    visits: list[list[Pair]] = []
    for visit in range(_VISITS):
        found = trial(Task("check", op_name, args, visit))
        if not isinstance(found, dict) or found["status"] != "ok":
            return None
        visits.append(_pairs(found))
    return combine(visits).runtime


def _pairs(found: Report) -> list[Pair]:
    return [(pair[0], pair[1]) for pair in found["pairs"]]


def _theirs(
    loop: Callable[[OpOverload, Call], float], op_name: str, args: str, device: torch.device
) -> float | None:
    try:
        op = resolve(op_name)
        return loop(op, fresh_call(op, parse(args), device))
    except (RuntimeError, NotImplementedError, UnknownOperator, ValueError):
        return None


def _timed(action: Callable[[], float | None]) -> tuple[float | None, float]:
    start = time.perf_counter()
    try:
        result = action()
    except UnknownOperator:
        result = None
    return result, time.perf_counter() - start


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m atenbench.gpu_check", description=__doc__)
    parser.add_argument("--traces", type=Path, default=Path("resources/traces"))
    parser.add_argument("--fraction", type=float, default=0.01, help="of the problems, 0 to 1")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
