"""Takes off the lock that a killed Snakemake left in the working directory, if none is alive.

Its arguments are handed on to `snakemake --unlock` (a Snakefile elsewhere: `-s PATH`).
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil

HERE = Path.cwd()


def runs_here(process: psutil.Process) -> bool:
    """Whether the process is a Snakemake of this folder, or a job that one started."""
    words = [Path(word) for word in process.cmdline()]
    started = any(word.name == "snakemake" or ".snakemake" in word.parts for word in words)
    return started and Path(process.cwd()) == HERE


def holders() -> Iterator[int]:
    """The process ids that still work in this folder."""
    for process in psutil.process_iter():
        try:
            if runs_here(process):
                yield process.pid
        except psutil.Error:  # gone in the meantime, or not ours to look at
            continue


def main() -> int:
    """Unlock, or say who holds the folder; 0 where it is free."""
    alive = list(holders())
    if alive:
        processes = ", ".join(map(str, alive))
        print(
            f"Another run is at work in {HERE} (process {processes}). Wait for it, or end it.",
            file=sys.stderr,
        )
        return 1
    print(
        "An earlier run was killed; its lock is taken off. (Without make: snakemake --unlock)",
        file=sys.stderr,
    )
    command = [sys.executable, "-m", "snakemake", *sys.argv[1:], "--unlock"]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
