"""What an earlier ingest has read, kept so that a file that has not changed is not parsed again.

Kept are the two tables, and which of their rows are of which file, with the SHA-256 of its content.
They are not used unless they are whole, of one run, and of the same code and settings.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from atenbench.atomic import replacing
from atenbench.call_table import CallSlices
from atenbench.kept import KEY, keep, kept_table

_RUN = "atenbench.run"
"""The key of the file metadata that says which run wrote this."""


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
    key: str

    def run(self, files: Sequence[FileRows]) -> dict[str, str]:
        """The metadata that marks the tables of one run."""
        content = json.dumps([self.key, *files]).encode()
        return {_RUN: hashlib.sha256(content).hexdigest()}

    def keep(self, tables: dict[str, Path], files: Sequence[FileRows]) -> None:
        """Keep written ``calls`` and ``rejects``, marked with :meth:`run`."""
        for name, path in tables.items():
            keep(path, self._path(name))
        columns = [list(column) for column in zip(*files, strict=True)] or [[]] * len(_FILES)
        schema = _FILES.with_metadata(self.run(files) | {KEY: self.key})
        with replacing(self._path("files")) as part:
            pq.write_table(pa.table(columns, schema=schema), part, compression="zstd")

    def earlier(self) -> Earlier:
        """The earlier run, or an empty one where none can be used."""
        files = kept_table(self._path("files"), self.key)
        if files is None:
            return Earlier([], None, None)
        run = files.schema.metadata[_RUN.encode()]
        try:
            tables = {name: pq.ParquetFile(self._path(name)) for name in ("calls", "rejects")}
            for table in tables.values():
                if (table.metadata.metadata or {}).get(_RUN.encode()) != run:
                    return Earlier([], None, None)
            rows = [FileRows(**row) for row in files.to_pylist()]
            return Earlier(rows, CallSlices(self._path("calls")), tables["rejects"].read())
        except (OSError, pa.ArrowException):  # not there, or not whole
            return Earlier([], None, None)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.parquet"


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
