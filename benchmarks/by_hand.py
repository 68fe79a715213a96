"""Times problems by hand, beside what was measured of them: do the published runtimes hold?

``python benchmarks/by_hand.py results/problem_details.parquet`` picks 20 random problems that have
a runtime and times each with a plain loop of its own: fresh random tensors, three warm-up calls,
then the median of up to 30 calls within a second, and that three times. Nothing of the measuring
code is used but the reading of arguments and the making of valid indices.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any


def median_seconds(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    """The median of up to 30 calls within a second; short calls in blocks of 20."""
    for _ in range(3):
        start = time.perf_counter()
        op(*args, **kwargs)
        seconds = time.perf_counter() - start
    block = 20 if seconds < 50e-6 else 1
    times: list[float] = []
    end = time.perf_counter() + 1
    while len(times) < 30 and (time.perf_counter() < end or not times):
        start = time.perf_counter()
        for _ in range(block):
            op(*args, **kwargs)
        times.append((time.perf_counter() - start) / block)
    return statistics.median(times)


def main() -> None:
    """Print a line for each problem and how the two agree."""
    import torch

    from atenbench.arguments import parse
    from atenbench.comparison import fresh_call
    from atenbench.operators import resolve
    from measure import sample

    torch.set_num_threads(1)
    details = Path(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    measured = runtimes(details)
    factors = []
    print("| measured ms | by hand ms (three times) | by hand / measured | problem |")
    print("|--:|--:|--:|---|")
    for op_name, args in sample(details, 20, seed):
        call = fresh_call(resolve(op_name), parse(args))
        by_hand = [1e3 * median_seconds(resolve(op_name), *call) for _ in range(3)]
        factors.append(statistics.median(by_hand) / measured[op_name, args])
        shown = ", ".join(f"{value:.4g}" for value in by_hand)
        text = f"`{op_name}` `{args[:50]}`"
        print(f"| {measured[op_name, args]:.4g} | {shown} | {factors[-1]:.2f} | {text} |")
    apart = [max(factor, 1 / factor) for factor in factors]
    print(f"\nmedian {statistics.median(factors):.2f}; apart by up to ×{max(apart):.2f}")


def runtimes(details: Path) -> dict[tuple[str, str], float]:
    """Milliseconds by operator and arguments."""
    import pyarrow.parquet as pq

    rows = pq.read_table(details, columns=["op_name", "args", "runtime_ms"]).to_pylist()
    return {(row["op_name"], row["args"]): row["runtime_ms"] for row in rows}


if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1] / "src"), str(Path(__file__).parent)]
    from measure import ENVIRONMENT

    if any(os.environ.get(name) != value for name, value in ENVIRONMENT.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | ENVIRONMENT)
    random.seed(0)
    main()
