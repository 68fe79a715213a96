"""Kills the workflow at random moments, then lets it end: is anything lost, or done twice?

``python benchmarks/kills.py TRACES FOLDER`` runs the workflow on a folder of traces undisturbed,
then once more in another folder with 30 times kill -9 of Snakemake, of the measuring process or of
its worker, and compares the two: the same problems, each once, each with the same status. Choose
traces of quick problems: without a time budget, which is what makes the statuses comparable, all
of them are measured.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]
TARGET = "results/problem_details.parquet"
PASSES, EXTRA = 2, 1


def main() -> int:
    """Run both, print what came of it; 0 if nothing was lost or done twice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    calm, rough = options.folder / "calm", options.folder / "rough"
    command = snakemake(options.traces.resolve())
    run_to_the_end(command, calm)
    killed: Counter[str] = Counter()
    while sum(killed.values()) < options.kills:
        for victim in run_and_kill(command, rough, draw):
            killed[victim] += 1
            print(f"killed {victim}; {visits(rough)} visits on record", flush=True)
        if (rough / TARGET).exists():
            print("the run ended before it was killed; start with more problems")
            break
    before = visits(rough)
    run_to_the_end(command, rough)
    print(f"{dict(killed)}; {before} visits on record before the last run, {visits(rough)} after")
    return compare(statuses(calm), statuses(rough), journal(rough))


def snakemake(traces: Path) -> list[str]:
    """The command that runs the whole workflow on one folder of traces."""
    config = [f"traces={traces}", "time_budget_minutes=100000", "device=cpu"]
    fixed = ["--cores", "2", "--rerun-incomplete", "--quiet", "all"]
    snakefile = ["-s", str(ROOT / "Snakefile")]
    return [
        sys.executable,
        "-m",
        "snakemake",
        *snakefile,
        *fixed,
        "--config",
        *config,
        "--",
        TARGET,
    ]


def run_to_the_end(command: list[str], folder: Path) -> None:
    """Take off a killed run's lock, and run."""
    folder.mkdir(parents=True, exist_ok=True)
    unlock = [*command[: command.index("--config")], "--unlock"]
    subprocess.run(unlock, cwd=folder, check=False, capture_output=True)
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def run_and_kill(command: list[str], folder: Path, draw: random.Random) -> list[str]:
    """Start the workflow, kill something of it once it measures, and end the rest of it."""
    folder.mkdir(parents=True, exist_ok=True)
    unlock = [*command[: command.index("--config")], "--unlock"]
    subprocess.run(unlock, cwd=folder, check=False, capture_output=True)
    run = psutil.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    begun = visits(folder)
    while visits(folder) == begun and run.poll() is None:
        time.sleep(0.05)
    killed = []
    time.sleep(draw.uniform(0, 3))
    victim = draw.choice(["snakemake", "measure", "worker"])
    tree = family(run)
    with contextlib.suppress(KeyError, psutil.NoSuchProcess):  # it may not live just now
        tree[victim].kill()
        killed.append(victim)
    time.sleep(draw.uniform(0, 2))
    for name, process in tree.items():  # a worker's death is survived, an orphan goes on: end it
        if name == victim:
            continue
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
            killed += [name] if name == "measure" else []
    run.wait()
    return killed


def family(run: psutil.Process) -> dict[str, psutil.Process]:
    """Snakemake, the measuring script and its worker, as far as they live."""
    found = {"snakemake": run}
    try:
        children = run.children(recursive=True)
    except psutil.NoSuchProcess:
        return {}
    for child in children:
        try:
            line = " ".join(child.cmdline())
        except psutil.Error:
            continue
        if "measure.py" in line and "python" in child.name():
            found["measure"] = child
        elif "atenbench.worker" in line:
            found["worker"] = child
    return found


def journal(folder: Path) -> Counter[str]:
    """How many visits with samples the journal holds of each problem."""
    counts: Counter[str] = Counter()
    for path in (folder / "results/measurement_store").glob("*.jsonl"):
        for line in path.read_bytes().splitlines(keepends=True):
            record = json.loads(line) if line.endswith(b"\n") else {}
            counts[record.get("key", "")] += record.get("status") == "ok"
    return counts


def visits(folder: Path) -> int:
    """How many visits the journal holds."""
    return sum(journal(folder).values())


def statuses(folder: Path) -> list[tuple[str, str]]:
    """The uuid and status of every row of the result."""
    import pyarrow.parquet as pq

    rows = pq.read_table(folder / TARGET, columns=["uuid", "status"]).to_pylist()
    return [(row["uuid"], row["status"]) for row in rows]


def compare(calm: list[tuple[str, str]], rough: list[tuple[str, str]], made: Counter[str]) -> int:
    """Print and judge."""
    uuids = [uuid for uuid, _ in rough]
    print(f"{len(calm)} problems undisturbed, {len(rough)} after the kills")
    print("the same uuids, none twice:", sorted(uuids) == sorted({uuid for uuid, _ in calm}))
    differing = sorted(set(calm) ^ set(rough))
    print("statuses that differ:", differing or "none")
    most = max(made.values())
    print(f"visits of a problem: at most {most} of {PASSES} + {EXTRA}")
    ok = not differing and len(uuids) == len(set(uuids)) and most <= PASSES + EXTRA
    print("holds" if ok else "does not hold")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
