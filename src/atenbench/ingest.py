"""Traces → ``calls.parquet`` (every good line) and ``rejects.parquet`` (every other one).

Files of published problems go in the same way, row by row. Streams: the memory taken does not grow
with the number of lines.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from atenbench.atomic import replacing
from atenbench.configuration import read_yaml
from atenbench.errors import UserError
from atenbench.published import PublishedCall, read_published
from atenbench.trace import BadLine, Call, LineReader, TraceFile, lines_of

logger = logging.getLogger(__name__)

CALLS = pa.schema(
    [
        pa.field("op_name", pa.string(), nullable=False),
        pa.field("args", pa.string(), nullable=False),
        pa.field("canonical", pa.string()),
        pa.field("count", pa.int64(), nullable=False),
        pa.field("suite", pa.string()),
        pa.field("model", pa.string()),
        pa.field("mode", pa.string()),
        pa.field("file", pa.string(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
    ]
)
REJECTS = pa.schema(
    [
        pa.field("file", pa.string(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
    ]
)
_ROWS_IN_MEMORY = 50_000


def ingest(
    traces: Sequence[TraceFile],
    suites: Mapping[str, str],
    renames: Mapping[str, str],
    on_bad_line: str,
    calls: Path,
    rejects: Path,
    published: Sequence[Path] = (),
) -> None:
    """Read all traces, and files of published problems, into the two tables.

    ``suites`` maps a suite's folder to its label (an unlisted folder keeps its own name).
    ``on_bad_line`` is ``error`` (any bad line fails, after all are listed) or ``reject``.

    Raises:
        UserError: a file cannot be read, or under ``error`` some line is bad.
    """
    with replacing(calls) as calls_part, replacing(rejects) as rejects_part:
        with _Table(calls_part, CALLS) as good, _Table(rejects_part, REJECTS) as bad:
            for origin, item in _items(traces, published, suites, renames):
                if isinstance(item, Call):
                    canonical = None if item.canonical == item.args else item.canonical
                    row = (item.op_name, item.args, canonical, item.count, *origin.columns)
                    good.append((*row, item.line))
                else:
                    bad.append((origin.name, item.line, item.reason, item.text))
                    _report(item, origin.path, on_bad_line)
            lines, rejected = good.rows, bad.rows
        if rejected and on_bad_line == "error":
            raise UserError(
                f"{rejected} bad line{'s' * (rejected > 1)}, listed above. Mend them, or set "
                "on_bad_line: reject to leave them out and keep them in results/rejects.parquet."
            )
    files = len(traces) + len(published)
    logger.info("%s calls on record from %s files", f"{lines:,}", f"{files:,}")


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where a call is from: a file, by its path and by its name on record, and what that says."""

    path: Path
    name: str
    suite: str | None = None
    model: str | None = None
    mode: str | None = None

    @property
    def columns(self) -> tuple[str | None, ...]:
        return self.suite, self.model, self.mode, self.name


def _items(
    traces: Sequence[TraceFile],
    published: Sequence[Path],
    suites: Mapping[str, str],
    renames: Mapping[str, str],
) -> Iterator[tuple[_Origin, Call | BadLine]]:
    """Every line of the traces, and every call of the published files, with where it is from."""
    reader = LineReader(renames)
    models: set[tuple[str | None, str | None]] = set()
    for trace in traces:
        suite = suites.get(trace.folder, trace.folder)
        models.add((suite, trace.model))
        origin = _Origin(trace.path, trace.name, suite, trace.model, trace.mode)
        for item in reader.read(lines_of(trace)):
            yield origin, item
    for path in published:
        own: set[tuple[str | None, str | None]] = set()
        for found in read_published(path, renames):
            if isinstance(found, PublishedCall):
                own.add((found.suite, found.model))
                yield _Origin(path, path.name, found.suite, found.model), found.call
            else:
                yield _Origin(path, path.name), found
        _warn_of(path, own & models)
        models |= own


def _warn_of(path: Path, twice: set[tuple[str | None, str | None]]) -> None:
    names = sorted(f"{suite}/{model}" for suite, model in twice if model is not None)
    if names:
        logger.warning(
            "%s: %s of its models are also in another input, and what they call counts twice if it "
            "is the same: %s",
            path,
            len(names),
            ", ".join(names[:10]) + " …" * (len(names) > 10),
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


def _report(bad: BadLine, path: Path, on_bad_line: str) -> None:
    """Each bad line on the terminal where it stops the run; only in the log where it does not."""
    level = logging.ERROR if on_bad_line == "error" else logging.DEBUG
    logger.log(level, "%s:%d: %s", path, bad.line, bad.reason)


class _Table:
    """A parquet file that is written in groups of rows, each gathered column by column."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._schema = schema
        self._writer = pq.ParquetWriter(path, schema, compression="zstd")
        self._columns: tuple[list[Any], ...] = tuple([] for _ in schema)
        self.rows = 0

    def __enter__(self) -> _Table:
        return self

    def __exit__(self, *exception: object) -> None:
        if exception[0] is None:
            self._flush()
        self._writer.close()

    def append(self, row: tuple[Any, ...]) -> None:
        """Add a row, in the order of the schema."""
        for column, value in zip(self._columns, row, strict=True):
            column.append(value)
        self.rows += 1
        if self.rows % _ROWS_IN_MEMORY == 0:
            self._flush()

    def _flush(self) -> None:
        arrays = [
            pa.array(column, field.type)
            for column, field in zip(self._columns, self._schema, strict=True)
        ]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        for column in self._columns:
            column.clear()
