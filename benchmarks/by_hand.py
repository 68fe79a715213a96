"""Times problems by hand, beside what was measured of them: do the published runtimes hold?

``python benchmarks/by_hand.py results/problem_details.parquet`` picks 20 random problems that have
a runtime and times each with a plain loop of its own, three times: fresh random tensors, three
warm-up calls, then the median of up to 30 samples within a second. Once with new copies of the
inputs for every call, so that they come from memory, as a measured runtime has it; once with the
same inputs again and again, which then come from the caches. Nothing of the measuring code is used
but the reading of arguments and the making of valid indices.
"""

from __future__ import annotations

import itertools
import os
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def median_seconds(op: Any, calls: Sequence[Any]) -> float:
    """The median of up to 30 samples within a second; short calls in blocks of 20."""
    upcoming = itertools.cycle(calls)
    for _ in range(3):
        args, kwargs = next(upcoming)
        start = time.perf_counter()
        op(*args, **kwargs)
        seconds = time.perf_counter() - start
    block = 20 if seconds < 50e-6 else 1
    times: list[float] = []
    end = time.perf_counter() + 1
    while len(times) < 30 and (time.perf_counter() < end or not times):
        batch = [next(upcoming) for _ in range(block)]
        start = time.perf_counter()
        for args, kwargs in batch:
            op(*args, **kwargs)
        times.append((time.perf_counter() - start) / block)
    return statistics.median(times)


def copies(call: Any) -> list[Any]:
    """So many copies of a call's inputs that they do not fit the caches together."""
    nbytes = sum(tensor.untyped_storage().nbytes() for tensor in tensors_of(call))
    count = min(max(256 * 2**20 // max(nbytes, 1), 2), 2_000)
    return [copy_of(call) for _ in range(count)]


def tensors_of(value: Any) -> list[Any]:
    """All tensors in nested arguments."""
    if hasattr(value, "untyped_storage"):
        return [value]
    items = value.values() if isinstance(value, dict) else value
    if isinstance(value, dict | list | tuple):
        return [tensor for item in items for tensor in tensors_of(item)]
    return []


def copy_of(value: Any) -> Any:
    """Nested arguments with every tensor in new memory, its strides kept."""
    if hasattr(value, "untyped_storage"):
        storage = value.untyped_storage().clone()
        place = (value.storage_offset(), value.shape, value.stride())
        return value.new_empty(0).set_(storage, *place)
    if isinstance(value, dict):
        return {name: copy_of(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(copy_of(item) for item in value)
    return value


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
    print(
        "| measured, ms | by hand, ms (three times) | by hand / measured | same inputs | problem |"
    )
    print("|--:|--:|--:|--:|---|")
    for op_name, args in sample(details, 20, seed):
        op, published = resolve(op_name), measured[op_name, args]
        call = fresh_call(op, parse(args))
        calls = copies(call)
        by_hand = [1e3 * median_seconds(op, calls) for _ in range(3)]
        cached = 1e3 * median_seconds(op, [call])
        factors.append(statistics.median(by_hand) / published)
        shown = ", ".join(f"{value:.4g}" for value in by_hand)
        text = f"`{op_name}` `{args[:50]}`"
        print(f"| {published:.4g} | {shown} | {factors[-1]:.2f} | {cached:.4g} | {text} |")
    apart = [max(factor, 1 / factor) for factor in factors]
    print(
        f"\nby hand / measured: median {statistics.median(factors):.2f}; apart by ×"
        f"{statistics.median(apart):.2f} in the median, ×{max(apart):.2f} at most"
    )


def runtimes(details: Path) -> dict[tuple[str, str], float]:
    """Milliseconds by operator and arguments."""
    import pyarrow.parquet as pq

    rows = pq.read_table(details, columns=["op_name", "args", "runtime_ms"]).to_pylist()
    return {(row["op_name"], row["args"]): row["runtime_ms"] for row in rows}


if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1] / "src"), str(Path(__file__).parent)]
    from atenbench.session import WORKER_ENVIRONMENT

    if any(os.environ.get(name) != value for name, value in WORKER_ENVIRONMENT.items()):
        # The C library reads its settings before Python starts.
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | WORKER_ENVIRONMENT)
    main()
