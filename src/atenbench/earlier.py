"""What an earlier ingest has read, kept so that a file that has not changed is not parsed again.

Kept are the tables themselves, by hard links that cost nothing, and which of their rows are of
which file, with the SHA-256 of its content. A rule's outputs are deleted before it runs, so this
lies in a folder of its own. It can be deleted at any time, and is not used unless all of it is of
one run and of the same code and settings.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from atenbench.atomic import replacing
from atenbench.call_table import CallSlices
from atenbench.errors import UserError

_RUN, _READER = "atenbench.run", "atenbench.reader"
"""Keys of file metadata: which run wrote this, and which code with which settings."""


class FileRows(NamedTuple):
    """How many rows one file has in the two tables."""

    file: str
    digest: str
    calls: int
    rejects: int


_FILES = pa.schema(
    [
        pa.field("file", pa.string(), nullable=False),
        pa.field("digest", pa.string(), nullable=False),
        pa.field("calls", pa.int64(), nullable=False),
        pa.field("rejects", pa.int64(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class Keeping:
    """Where it is kept, and what else a row depends on than its file (code and settings)."""

    folder: Path
    reader: str

    @classmethod
    def by(cls, folder: Path, sources: Sequence[str], *settings: object) -> Keeping:
        """For rows that depend on these source files and settings (which JSON can tell)."""
        digests = [file_digest(Path(source)) for source in sources]
        content = json.dumps([digests, *settings, sys.version]).encode()
        return cls(folder, hashlib.sha256(content).hexdigest())

    def run(self, files: Sequence[FileRows]) -> dict[str, str]:
        """The metadata that marks the tables of one run."""
        content = json.dumps([self.reader, *files]).encode()
        return {_RUN: hashlib.sha256(content).hexdigest()}

    def keep(self, tables: dict[str, Path], files: Sequence[FileRows]) -> None:
        """Keep written ``calls`` and ``rejects``, marked with :meth:`run`."""
        for name, path in tables.items():
            with replacing(self.folder / f"{name}.parquet") as part:
                _link(path, part)
        columns = [list(column) for column in zip(*files, strict=True)] or [[]] * len(_FILES)
        schema = _FILES.with_metadata(self.run(files) | {_READER: self.reader})
        with replacing(self.folder / "files.parquet") as part:
            pq.write_table(pa.table(columns, schema=schema), part, compression="zstd")

    def earlier(self) -> Earlier:
        """The earlier run, or an empty one where none can be used."""
        try:
            tables = {name: pq.ParquetFile(self._path(name)) for name in ("calls", "rejects")}
            files = pq.read_table(self._path("files"))
            marks = files.schema.metadata or {}
            run = marks.get(_RUN.encode())
            if marks.get(_READER.encode()) != self.reader.encode() or run is None:
                return Earlier([], None, None)
            for table in tables.values():
                if (table.metadata.metadata or {}).get(_RUN.encode()) != run:
                    return Earlier([], None, None)
            rows = [FileRows(**row) for row in files.to_pylist()]
            return Earlier(rows, CallSlices(self._path("calls")), tables["rejects"].read())
        except (OSError, pa.ArrowException):  # not there, or not whole
            return Earlier([], None, None)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.parquet"


def _link(path: Path, part: Path) -> None:
    try:
        os.link(path, part)
    except OSError:  # another file system, or one without links
        shutil.copyfile(path, part)


class Earlier:
    """The rows of an earlier run. Files are asked for in the order of the tables."""

    def __init__(
        self, files: Sequence[FileRows], calls: CallSlices | None, rejects: pa.Table | None
    ) -> None:
        self._calls, self._rejects = calls, rejects
        self._files = list(files)
        self._position = {(row.file, row.digest): index for index, row in enumerate(files)}
        self._next = 0
        self._start = [0, 0]

    def find(self, file: str, digest: str) -> FileRows | None:
        """What is known of a file with this content; None also where its rows were passed by."""
        index = self._position.get((file, digest), -1)
        if index < self._next:
            return None
        for passed in self._files[self._next : index]:
            self._pass(passed)
        self._next = index
        return self._files[index]

    def take(self) -> tuple[Iterator[pa.Table], pa.Table]:
        """The calls and the rejects of the file that was found last."""
        assert self._calls is not None and self._rejects is not None
        found = self._files[self._next]
        calls = self._calls.take(self._start[0], found.calls)
        rejects = self._rejects.slice(self._start[1], found.rejects)
        self._pass(found)
        self._next += 1
        return calls, rejects

    def _pass(self, row: FileRows) -> None:
        self._start[0] += row.calls
        self._start[1] += row.rejects


def file_digest(path: Path) -> str:
    """The SHA-256 of a file's content.

    Raises:
        UserError: the file cannot be read.
    """
    try:
        with path.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
