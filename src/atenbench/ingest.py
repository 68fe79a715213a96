"""Traces → ``calls.parquet`` (every good line) and ``rejects.parquet`` (every other one).

Files of published problems go in the same way, row by row. Streams: the memory taken does not grow
with the number of lines.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from atenbench.atomic import replacing
from atenbench.call_table import CallTable, Origin, Run
from atenbench.configuration import read_yaml
from atenbench.earlier import Earlier, FileRows, Keeping
from atenbench.errors import UserError
from atenbench.kept import file_digest
from atenbench.published import read_published
from atenbench.trace import BadLine, LineReader, TraceFile, lines_of

logger = logging.getLogger(__name__)

REJECTS = pa.schema(
    [
        pa.field("file", pa.string(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
    ]
)
_REJECTS_IN_MEMORY = 50_000


def ingest(
    traces: Sequence[TraceFile],
    suites: Mapping[str, str],
    renames: Mapping[str, str],
    on_bad_line: str,
    calls: Path,
    rejects: Path,
    published: Sequence[Path] = (),
    keeping: Keeping | None = None,
) -> None:
    """Read all traces, and files of published problems, into the two tables.

    ``suites`` maps a suite's folder to its label (an unlisted folder keeps its own name).
    ``on_bad_line`` is ``error`` (any bad line fails, after all are listed) or ``reject``.
    With ``keeping``, a file that an earlier run has read is not parsed again.

    Raises:
        UserError: a file cannot be read, or under ``error`` some line is bad.
    """
    files = [*_traces(traces, suites, renames), *_published(published, renames)]
    with replacing(calls) as calls_part, replacing(rejects) as rejects_part:
        with (
            _no_collecting(),
            CallTable(calls_part) as good,
            _Rejects(rejects_part, on_bad_line) as bad,
        ):
            reading = _Reading(good, bad)
            if keeping is None:
                for file in files:
                    reading.parse(file)
            else:
                rows = reading.read(files, keeping.earlier())
                good.note(keeping.run(rows))
                bad.note(keeping.run(rows))
        if keeping is not None:  # also what has bad lines: it is mended file by file
            keeping.keep({"calls": calls_part, "rejects": rejects_part}, rows)
        pa.default_memory_pool().release_unused()  # what comes next in this process may need it
        if bad.rows and on_bad_line == "error":
            raise UserError(
                f"{bad.rows} bad line{'s' * (bad.rows > 1)}, listed above. Mend them, or set "
                "on_bad_line: reject to leave them out and keep them in results/rejects.parquet."
            )
    logger.info(
        "%s calls on record from %s files, %s of them read now",
        *(f"{number:,}" for number in (good.rows, len(files), reading.parsed)),
    )


@contextmanager
def _no_collecting() -> Iterator[None]:
    """Without Python's search for cycles: rows make none, and it walks all of them time and again.

    It takes a third of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


Model = tuple[str | None, str | None]
"""Suite label and name."""


@dataclass(frozen=True, slots=True)
class _File:
    """A file that goes in: where it lies, its name on record, and how it is parsed.

    ``model`` is None where the rows themselves name their models.
    """

    path: Path
    name: str
    model: Model | None
    parse: Callable[[], Iterator[Run | BadLine]]


def _traces(
    traces: Sequence[TraceFile], suites: Mapping[str, str], renames: Mapping[str, str]
) -> Iterator[_File]:
    reader = LineReader(renames)
    for trace in traces:
        suite = suites.get(trace.folder, trace.folder)
        origin = Origin(suite, trace.model, trace.mode, trace.name)
        parse = partial(_parse_trace, reader, trace, origin)
        yield _File(trace.path, trace.name, (suite, trace.model), parse)


def _parse_trace(reader: LineReader, trace: TraceFile, origin: Origin) -> Iterator[Run | BadLine]:
    for item in reader.read(lines_of(trace)):
        yield item if isinstance(item, BadLine) else (origin, item)


def _published(paths: Sequence[Path], renames: Mapping[str, str]) -> Iterator[_File]:
    for path in paths:
        yield _File(path, path.name, None, partial(_parse_published, path, renames))


def _parse_published(path: Path, renames: Mapping[str, str]) -> Iterator[Run | BadLine]:
    for item in read_published(path, renames):
        if isinstance(item, BadLine):
            yield item
        else:
            yield Origin(item.suite, item.model, None, path.name), item.calls


class _Reading:
    """Puts file after file into the two tables."""

    def __init__(self, good: CallTable, bad: _Rejects) -> None:
        self._good, self._bad = good, bad
        self._models: set[Model] = set()
        self.parsed = 0
        """How many files were parsed."""

    def read(self, files: Iterable[_File], earlier: Earlier) -> list[FileRows]:
        """Parse what the earlier run has not read, and copy the rest; how many rows each has."""
        found = []
        for file in files:
            calls, rejects = self._good.rows, self._bad.rows
            digest = file_digest(file.path)
            if earlier.find(file.name, digest):
                self._copy(file, *earlier.take())
            else:
                self.parse(file)
            rows = self._good.rows - calls, self._bad.rows - rejects
            found.append(FileRows(file.name, digest, *rows))
        return found

    def parse(self, file: _File) -> None:
        """Read a file's lines or rows."""
        self.parsed += 1
        models = set()
        for item in file.parse():
            if isinstance(item, BadLine):
                self._bad.append(file, item)
            else:
                self._good.append(item)
                models.add((item[0].suite, item[0].model))
        self._count(file, models)

    def _copy(self, file: _File, calls: Iterable[pa.Table], rejects: pa.Table) -> None:
        models: set[Model] = set()
        for part in calls:
            self._good.extend(part)
            if file.model is None:
                suite, model = (part[name].to_pylist() for name in ("suite", "model"))
                models.update(zip(suite, model, strict=True))
        for row in rejects.to_pylist():
            self._bad.append(file, BadLine(row["line"], row["reason"], row["text"]))
        self._count(file, models)

    def _count(self, file: _File, models: set[Model]) -> None:
        """Warn where a published file has a model that is in another input too."""
        if file.model is not None:
            self._models.add(file.model)
            return
        twice = sorted(f"{suite}/{model}" for suite, model in models & self._models if model)
        self._models |= models
        if twice:
            logger.warning(
                "%s: %s of its models are also in another input, and what they call counts twice "
                "if it is the same: %s",
                file.path,
                len(twice),
                ", ".join(twice[:10]) + " …" * (len(twice) > 10),
            )


def read_renames(path: Path) -> dict[str, str]:
    """The operator names of other torch versions, old to new.

    Raises:
        UserError: the file is not a mapping of names to names.
    """
    document = read_yaml(path) or {}
    if not isinstance(document, dict) or not all(
        isinstance(name, str) for pair in document.items() for name in pair
    ):
        raise UserError(f"{path}: must map each old operator name to its new one")
    return document


class _Rejects:
    """Writes ``rejects.parquet``, in groups of rows, and says what is in it."""

    def __init__(self, path: Path, on_bad_line: str) -> None:
        self._writer = pq.ParquetWriter(path, REJECTS, compression="zstd")
        # On the terminal where a bad line stops the run; only in the log where it does not.
        self._level = logging.ERROR if on_bad_line == "error" else logging.DEBUG
        self._waiting: list[dict[str, object]] = []
        self.rows = 0

    def __enter__(self) -> _Rejects:
        return self

    def __exit__(self, *exception: object) -> None:
        if exception[0] is None:
            self._flush()
        self._writer.close()

    def note(self, metadata: dict[str, str]) -> None:
        """Put something into the file's metadata."""
        self._writer.add_key_value_metadata(metadata)

    def append(self, file: _File, bad: BadLine) -> None:
        """Add a bad line of a file."""
        logger.log(self._level, "%s:%d: %s", file.path, bad.line, bad.reason)
        row = {"file": file.name, "line": bad.line, "reason": bad.reason, "text": bad.text}
        self._waiting.append(row)
        self.rows += 1
        if len(self._waiting) >= _REJECTS_IN_MEMORY:
            self._flush()

    def _flush(self) -> None:
        self._writer.write_table(pa.Table.from_pylist(self._waiting, schema=REJECTS))
        self._waiting.clear()
