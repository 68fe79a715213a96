"""The journal of what has been measured: appended to, never rewritten, safe to kill at any moment.

A folder of files of JSON lines, one file for each process that ever wrote. A line is written in one
piece and the file synchronised every second, so a killed process loses nothing it had recorded and
a power cut at most a second; a line torn by either is the last of its file and is not read. What a
measurement depends on is in its key, so a change of device, torch, settings or method finds nothing
and measures anew, and a change back finds the old measurements again.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from atenbench.atomic import replacing

logger = logging.getLogger(__name__)

_SYNC_SECONDS = 1.0
_POLL_SECONDS = 0.5


def problem_key(op_name: str, canonical: str, conditions: Mapping[str, Any]) -> str:
    """What a measurement is kept by.

    Args:
        op_name: the operator.
        canonical: its arguments in canonical spelling, so that another spelling finds the same.
        conditions: device fingerprint, torch version, measuring settings and method version.
    """
    text = json.dumps([op_name, canonical, sorted(conditions.items())])
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(slots=True)
class Entry:
    """What the journal holds of one problem.

    Attributes:
        visits: the reports of visits that gave samples, in the order in which they were made, each
            with ``run`` and ``at``.
        failure: a report without samples that came after all visits, with the ``limit`` it was
            made under; None if there is none.
        closed: after how many planned visits the problem was declared done; 0 if it was not.
    """

    visits: list[dict[str, Any]] = field(default_factory=list)
    failure: dict[str, Any] | None = None
    closed: int = 0

    def failure_under(self, limits: Mapping[str, Any]) -> dict[str, Any] | None:
        """The failure, if it still counts: made under the same limit, or under none."""
        if self.failure is None:
            return None
        limit = self.failure.get("limit") or {}
        holds = all(limits.get(name) == value for name, value in limit.items())
        return self.failure if holds else None


class Store:
    """A journal folder, read once and then kept in step with what is written through it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.entries: dict[str, Entry] = {}
        self.runs: dict[str, dict[str, Any]] = {}
        folder.mkdir(parents=True, exist_ok=True)
        self.read()

    def read(self) -> None:
        """Read the whole journal again."""
        self.entries.clear()
        self.runs.clear()
        for path in sorted(self.folder.glob("*.jsonl")):
            for line in _whole_lines(path):
                self._take(line)

    def entry(self, key: str) -> Entry:
        """What is known of a problem; an empty entry where nothing is."""
        return self.entries.get(key, Entry())

    @contextlib.contextmanager
    def writing(self, run: Mapping[str, Any]) -> Iterator[Journal]:
        """A journal file of this process; ``run`` is recorded once and referred to by each line."""
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        name = f"{stamp}-{os.getpid()}-{os.urandom(3).hex()}"
        with (self.folder / f"{name}.jsonl").open("ab", buffering=0) as file:
            journal = Journal(self, file, name)
            journal.append({"run": name, "surroundings": dict(run)})
            try:
                yield journal
            finally:
                journal.sync()

    def kept(self, name: str) -> dict[str, Any] | None:
        """A small document kept beside the journal; None where there is none that is whole."""
        try:
            kept = json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return kept if isinstance(kept, dict) else None

    def keep(self, name: str, document: Mapping[str, Any]) -> None:
        """Keep a small document, in one piece."""
        with replacing(self.folder / f"{name}.json") as part:
            part.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")

    def _take(self, line: Mapping[str, Any]) -> None:
        if "surroundings" in line:
            self.runs[line["run"]] = line["surroundings"]
            return
        entry = self.entries.setdefault(line["key"], Entry())
        if "closed" in line:
            entry.closed = max(entry.closed, line["closed"])
        elif line["status"] == "ok":
            entry.visits.append(dict(line))
            entry.failure = None
        else:
            entry.failure = dict(line)


class Journal:
    """The journal file of one process."""

    def __init__(self, store: Store, file: IO[bytes], name: str) -> None:
        self._store = store
        self._file = file
        self._name = name
        self._synced = time.monotonic()

    def record(self, key: str, report: Mapping[str, Any]) -> None:
        """Write down how a visit ended, or that none will be made."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self.append({"key": key, "run": self._name, "at": now, **report})

    def close(self, key: str, planned_visits: int) -> None:
        """Write down that a problem is done: no more visits are owed to it."""
        self.append({"key": key, "closed": planned_visits})

    def append(self, line: Mapping[str, Any]) -> None:
        """Write one line in one piece, and take it into the store."""
        text = memoryview(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        while text:  # all in one write, unless the disk is all but full
            text = text[self._file.write(text) :]
        self._store._take(line)
        if time.monotonic() - self._synced > _SYNC_SECONDS:
            self.sync()

    def sync(self) -> None:
        """Have everything written so far on the disk."""
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()


def _whole_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a journal file, without one that was cut off."""
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True), start=1):
        if not line.endswith(b"\n"):
            return
        try:
            yield json.loads(line)
        except ValueError:
            logger.warning("%s:%s: not a line of the journal; left out", path, number)


@contextlib.contextmanager
def holding_one(folder: Path, names: Sequence[str]) -> Iterator[str]:
    """Hold one of a folder's locks, whichever is free; waits while none is, and says so.

    A lock goes with the process that holds it, however that ends.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as files:
        locks = {name: files.enter_context((folder / f"{name}.lock").open("a+")) for name in names}
        held = _first_free(locks)
        if held is None:
            holders = ", ".join(sorted(_holder(file) for file in locks.values()))
            logger.warning("waiting until process %s is done measuring into %s", holders, folder)
        while held is None:
            time.sleep(_POLL_SECONDS)
            held = _first_free(locks)
        locks[held].truncate(0)
        locks[held].write(str(os.getpid()))
        locks[held].flush()
        yield held


def _first_free(locks: Mapping[str, IO[str]]) -> str | None:
    for name, file in locks.items():
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        return name
    return None


def _holder(file: IO[str]) -> str:
    file.seek(0)
    return file.read().strip() or "?"
