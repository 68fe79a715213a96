"""What Snakemake and the start of the jobs add: runs with nothing to do, and after one new trace.

``python benchmarks/overhead.py ../shared/traces`` makes 155, 1,500 and 15,000 traces of about 60
lines each out of the given ones, runs the main job on them with ``device=off``, and then times,
each beside ``snakemake --version`` in turn: a run with nothing to do, and (at the first size) a run
after one new trace of 60 lines whose calls no other trace has; both of the problems alone, and of
all that ``make`` makes, plots and pages included. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent
LINES = 60


PROBLEMS = "results/backend_bench_problems.parquet"


def main() -> None:
    """Run the benchmark and print its table."""
    options = _options()
    print("| traces | asked for | run | wall, s | `snakemake --version`, s | ratio |")
    print("|---|---|---|---|---|---|")
    for size in options.sizes:
        with tempfile.TemporaryDirectory(dir=options.scratch) as name:
            folder = Path(name)
            make_traces(options.traces, folder / "traces", size)
            curate(folder, "all")
            for target in (PROBLEMS, "all"):
                run = functools.partial(curate, folder, target)
                report([f"{size:,}", target, "nothing to do"], [run] * options.repeats)
            if size == options.sizes[0]:
                report_new_traces(folder, size, options.repeats)


def report_new_traces(folder: Path, size: int, repeats: int) -> None:
    """Rows for runs after one new trace, another one each time."""
    numbers = itertools.count()
    for target in (PROBLEMS, "all"):
        runs = [
            functools.partial(with_a_new_trace, folder, target, number)
            for number in itertools.islice(numbers, repeats)
        ]
        report([f"{size:,}", target, "one new trace"], runs)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("traces", type=Path, help="a folder of traces, {suite}/{model}.txt")
    parser.add_argument("--sizes", type=int, nargs="+", default=[155, 1_500, 15_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scratch", type=Path, help="where to put the traces and the results")
    return parser.parse_args()


def make_traces(traces: Path, folder: Path, size: int) -> None:
    """Cut traces of real lines: a stretch of one trace, another one each time around."""
    sources = [(path, path.read_text().splitlines()) for path in sorted(traces.glob("*/*.txt"))]
    for number, (path, lines) in zip(range(size), itertools.cycle(sources), strict=False):
        start = number * 7 % max(len(lines) - LINES, 1)
        above = [line for line in lines[: start + 1] if line.startswith("Operator:")]
        text = "\n".join([above[-1], *lines[start + 1 : start + LINES]])
        target = folder / path.parent.name / f"{path.stem}_{number}.txt"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text + "\n")


def new_trace(folder: Path, number: int) -> None:
    """A trace whose calls are in no other."""
    calls = [f"cnt: 1, ((T([{size}, {7_001 + number}], f16),), {{}})" for size in range(1, LINES)]
    (folder / "new").mkdir(exist_ok=True)
    (folder / f"new/model{number}.txt").write_text(
        "\n".join(["Operator: aten.abs.default", *calls])
    )


def curate(folder: Path, target: str) -> float:
    """Seconds of a run, as a user starts it."""
    command = [sys.executable, "-m", "snakemake", "-s", str(REPOSITORY / "Snakefile")]
    command += ["--directory", str(folder / "work"), "--cores", "2"]
    command += ["--config", f"traces={folder / 'traces'}", "device=off", "--", target]
    return _seconds(command)


def with_a_new_trace(folder: Path, target: str, number: int) -> float:
    """The same when one more trace has come, and all else that is asked for was there."""
    curate(folder, "all")
    new_trace(folder / "traces", number)
    return curate(folder, target)


def report(cells: list[str], runs: Sequence[Callable[[], float]]) -> None:
    """One row: medians of the runs, and of the least that Snakemake does, taken in turn."""
    version = [sys.executable, "-m", "snakemake", "--version"]
    pairs = [(run(), _seconds(version)) for run in runs]
    ours, least = (statistics.median(times) for times in zip(*pairs, strict=True))
    cells += [f"{ours:.1f}", f"{least:.1f}", f"{ours / least:.1f} ×"]
    print(f"| {' | '.join(cells)} |", flush=True)


def _seconds(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
