"""Reads traces into merged problems, ours beside the plain way to do it, at growing sizes.

``python benchmarks/curate.py ../shared/traces`` takes the traces 1, 20 and 200 times: as copies
under other model names, and (``--new``, by default up to 20 times) with numbers changed so that
every line is a pair that no other line has. Each reader runs in a process of its own, all in turn,
``--repeats`` times, imports included; it prints a Markdown table of the fastest run of each, its
peak memory, and what part of its wall time and of its processor time ``ours`` takes.

- ``ours``: ``atenbench.ingest`` and ``atenbench.aggregate``: all arguments parsed and checked,
  spellings compared, calls merged, and all tables written: calls, rejects and problems.
- ``mapped``: with ``atenbench.mapping``, the table of which model uses which problem, as parquet
  and JSON, which no other reader makes.
- ``plain``: a regular expression for each line, a dict and a SHA-256 for each row, and one
  ``Table.from_pylist``; arguments stay text, nothing is merged and nothing is written.
- ``evaluating``: the same, and the arguments become Python values: parsed by ``ast`` and built from
  the nodes that a trace may hold. No text of a trace is run.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

REPOSITORY = Path(__file__).parent.parent
SQL = REPOSITORY / "workflow/sql"
sys.path.insert(0, str(REPOSITORY / "src"))


def main() -> None:
    """Run the benchmark and print its table; or, as a child of it, one reader."""
    options = _options()
    if options.reader:
        print(json.dumps(measured(READERS[options.reader], options.traces)))
        return
    print("| traces | lines | reader | wall, s | CPU, s | peak, MiB | ours: wall | ours: CPU |")
    print("|---|---|---|---|---|---|---|---|")
    for kind, factors in (("copies", options.copies), ("new", options.new)):
        for factor in factors:
            with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
                lines = grow(options.traces, Path(folder), factor, kind == "new")
                results = compared(Path(folder), options.repeats, options.readers)
            report(f"{factor} × {kind}", lines, results)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("traces", type=Path, help="a folder of traces, {suite}/{model}.txt")
    parser.add_argument("--copies", type=int, nargs="*", default=[1, 20, 200], metavar="TIMES")
    parser.add_argument("--new", type=int, nargs="*", default=[1, 20], metavar="TIMES")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--readers", nargs="*", choices=list(READERS), default=list(READERS))
    parser.add_argument("--scratch", type=Path, help="where to put the grown traces")
    parser.add_argument("--reader", choices=list(READERS), help=argparse.SUPPRESS)
    return parser.parse_args()


_NUMBER = re.compile(r"(?<![A-Za-z0-9._])[0-9]+(?![0-9.A-Za-z])")
"""A whole number of its own: no part of a dtype or a fraction."""


def grow(traces: Path, folder: Path, factor: int, are_new: bool) -> int:
    """Put the traces there so many times, under other names; the number of ``cnt:`` lines."""
    calls = 0
    for path in sorted(traces.glob("*/*.txt")):
        lines = path.read_text().splitlines()
        (folder / path.parent.name).mkdir(exist_ok=True)
        for number in range(factor):
            for index, line in enumerate(lines):
                if line.startswith("cnt:"):
                    calls += 1
                    if are_new:
                        lines[index] = _with_another_number(line, calls)
            copy = folder / path.parent.name / f"{path.stem}_{number}.txt"
            copy.write_text("\n".join(lines) + "\n")
    return calls


def _with_another_number(line: str, number: int) -> str:
    """The line with its first size made larger: by more than any other line has."""
    count, comma, args = line.partition(",")
    return count + comma + _NUMBER.sub(lambda found: str(int(found[0]) + number), args, count=1)


class Cost(NamedTuple):
    """What a reader takes."""

    wall: float
    cpu: float
    peak: float


def compared(folder: Path, repeats: int, readers: list[str]) -> dict[str, Cost]:
    """The lowest times and the highest peak of each reader, taken in turn."""
    results: dict[str, Cost] = {}
    for _ in range(repeats):
        for name in readers:
            command = [sys.executable, __file__, str(folder), "--reader", name]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
            cost = Cost(*json.loads(done.stdout))
            before = results.get(name, cost)
            results[name] = Cost(*map(min, before[:2], cost[:2]), max(before.peak, cost.peak))
    return results


def report(traces: str, lines: int, results: dict[str, Cost]) -> None:
    """The rows of one size."""
    for name, cost in results.items():
        cells = [traces, f"{lines:,}", name, f"{cost.wall:.2f}", f"{cost.cpu:.2f}"]
        ours = results.get("ours", cost)
        cells += [f"{cost.peak:,.0f}", f"{ours.wall / cost.wall:.2f} ×"]
        print(f"| {' | '.join([*cells, f'{ours.cpu / cost.cpu:.2f} ×'])} |", flush=True)


def measured(reader: Callable[[Path], object], folder: Path) -> Cost:
    """One reader in this process: seconds, and peak memory in MiB with all that is imported."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        os.chdir(scratch)
        started = time.perf_counter(), time.process_time()
        reader(folder.resolve())
        wall, cpu = time.perf_counter() - started[0], time.process_time() - started[1]
    return Cost(wall, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def ours(folder: Path) -> None:
    """What the rules ``ingest`` and ``aggregate`` do on a first run."""
    from atenbench.aggregate import aggregate
    from atenbench.ingest import ingest
    from atenbench.trace import find_traces

    calls, rejects = Path("calls.parquet"), Path("rejects.parquet")
    ingest(find_traces([folder]), {}, {}, "error", calls, rejects)
    aggregate(str(calls), str(SQL / "cases.sql"), "cases.parquet")


def mapped(folder: Path) -> None:
    """And the rule ``mapping``."""
    from atenbench.mapping import map_to_models

    ours(folder)
    map_to_models("cases.parquet", str(SQL / "mapping.sql"), "map.parquet", "map.json")


_CALL = re.compile(r"cnt: +([0-9]+), *(.*)")


def plain(folder: Path, meaning: Callable[[str], Any] = str) -> object:
    """The rows that the reference's way makes."""
    import pyarrow as pa

    rows = []
    for path in sorted(folder.glob("*/*.txt")):
        operator = ""
        for line in path.read_text().splitlines():
            match = _CALL.fullmatch(line)
            if not match:
                operator = line.removeprefix("Operator: ").strip()
                continue
            args = match[2].strip()
            meaning(args)
            row = {
                "uuid": hashlib.sha256((args + operator).encode()).hexdigest(),
                "op_name": operator,
                "args": args,
                "count": int(match[1]),
                "in_models": f"{path.parent.name}/{path.stem}",
            }
            rows.append(row)
    return pa.Table.from_pylist(rows)


def evaluating(folder: Path) -> object:
    """The same with values in place of text."""
    return plain(folder, lambda args: _value(ast.parse(args, mode="eval").body))


def _value(node: ast.expr) -> Any:
    """The value of a node; a name stands for itself, and a call for its name and its values."""
    match node:
        case ast.Constant():
            return node.value
        case ast.List():
            return [_value(item) for item in node.elts]
        case ast.Tuple():
            return tuple([_value(item) for item in node.elts])
        case ast.Call(func=ast.Name(id=name)):
            keywords = {keyword.arg: _value(keyword.value) for keyword in node.keywords}
            return name, [_value(item) for item in node.args], keywords
        case ast.Name(id="inf" | "nan" as name):
            return float(name)
        case ast.Name():
            return node.id
        case ast.Attribute(value=ast.Name(id=name)):
            return f"{name}.{node.attr}"
        case ast.Dict():
            keys = [_value(key) for key in node.keys if key is not None]
            return dict(zip(keys, map(_value, node.values), strict=True))
        case ast.UnaryOp(op=ast.USub()):
            return -_value(node.operand)
    raise ValueError(f"not in a trace: {ast.dump(node)[:100]}")


READERS: dict[str, Callable[[Path], object]] = {
    "ours": ours,
    "mapped": mapped,
    "plain": plain,
    "evaluating": evaluating,
}


if __name__ == "__main__":
    main()
