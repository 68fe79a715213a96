"""``calls.parquet``: one row per call, written in row groups of one size with bounded memory.

A column of text goes through memory and into the file as numbers and a dictionary of the distinct
texts, in order of appearance: that is several times as fast as the texts themselves, and how the
rows arrived, call by call or as slices of an earlier table, does not show in the bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from atenbench.trace import Calls

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
TEXT_COLUMNS = [field.name for field in CALLS if field.type == pa.string()]
ROWS_PER_GROUP = 25_000
"""Also the most calls that are held in memory."""

_DICTIONARY = pa.dictionary(pa.int32(), pa.string())
_IN_MEMORY = pa.schema(
    [field.with_type(_DICTIONARY) if field.name in TEXT_COLUMNS else field for field in CALLS]
)


class Origin(NamedTuple):
    """What a call's place says about it."""

    suite: str | None
    model: str | None
    mode: str | None
    file: str


Run = tuple[Origin, Calls]
"""Calls of one origin that follow each other."""


class CallTable:
    """Writes the table; rows come in their final order. A context manager."""

    def __init__(self, path: Path) -> None:
        # Readers see texts, not dictionaries: those are a matter of this file alone.
        self._writer = pq.ParquetWriter(path, _IN_MEMORY, compression="zstd", store_schema=False)
        self._runs: list[Run] = []
        self._calls = 0
        self._tables: list[pa.Table] = []
        self.rows = 0

    def __enter__(self) -> CallTable:
        return self

    def __exit__(self, *exception: object) -> None:
        if exception[0] is None:
            self._gather()
            self._write(all_rows=True)
        self._writer.close()

    def note(self, metadata: dict[str, str]) -> None:
        """Put something into the file's metadata."""
        self._writer.add_key_value_metadata(metadata)

    def append(self, run: Run) -> None:
        """Add calls; they must not be changed later."""
        self._runs.append(run)
        self._calls += len(run[1].lines)
        self.rows += len(run[1].lines)
        if self._calls >= ROWS_PER_GROUP:
            self._gather()
            self._write()

    def extend(self, rows: pa.Table) -> None:
        """Add rows of an earlier table, whose texts are dictionaries too."""
        self._gather()
        self._tables.append(rows.cast(_IN_MEMORY))
        self.rows += rows.num_rows
        self._write()

    def _gather(self) -> None:
        if self._runs:
            self._tables.append(_table(self._runs))
            self._runs = []
            self._calls = 0

    def _write(self, all_rows: bool = False) -> None:
        rows = sum(table.num_rows for table in self._tables)
        if rows < ROWS_PER_GROUP and not (all_rows and rows):
            return
        table = pa.concat_tables(self._tables).unify_dictionaries().combine_chunks()
        whole = rows if all_rows else rows - rows % ROWS_PER_GROUP
        for start in range(0, whole, ROWS_PER_GROUP):
            group = _compacted(table.slice(start, min(ROWS_PER_GROUP, whole - start)))
            self._writer.write_table(group)
        # A slice would keep all of the table, and its dictionaries would grow into the next group.
        self._tables = [_compacted(table.slice(whole))] if whole < rows else []


def _table(runs: Sequence[Run]) -> pa.Table:
    texts = list(chain.from_iterable(calls.texts for _, calls in runs))
    # Equal lines share a text, and to tell objects apart is faster than to compare them.
    ids = list(map(id, texts))
    distinct = dict(zip(ids, texts, strict=True))
    numbers = dict(zip(distinct, range(len(distinct)), strict=True))
    codes = pa.array(list(map(numbers.__getitem__, ids)), pa.int32())
    args = [text.args for text in distinct.values()]
    canonical = [
        None if text.canonical == text.args else text.canonical for text in distinct.values()
    ]
    times = pa.array([text.times for text in distinct.values()], pa.int64())
    lengths = [len(calls.lines) for _, calls in runs]
    run = pa.array(list(chain.from_iterable(map(repeat, range(len(runs)), lengths))), pa.int32())
    suite, model, mode, file = zip(*(origin for origin, _ in runs), strict=True)
    lines = list(chain.from_iterable(calls.lines for _, calls in runs))
    columns = [
        _encoded(run, [calls.op_name for _, calls in runs]),
        _encoded(codes, args),
        _encoded(codes, canonical),
        times.take(codes),
        *(_encoded(run, column) for column in (suite, model, mode, file)),
        pa.array(lines, pa.int64()),
    ]
    return pa.Table.from_arrays(columns, schema=_IN_MEMORY)


def _encoded(codes: pa.Array, texts: Sequence[str | None]) -> pa.DictionaryArray:
    """The text of each code, where a text may have several codes."""
    distinct = pa.array(texts, pa.string()).dictionary_encode()
    indices = distinct.indices.take(codes)
    return pa.DictionaryArray.from_arrays(indices, distinct.dictionary)


def _compacted(group: pa.Table) -> pa.Table:
    """The rows with dictionaries of just what they hold, each text once, in order of appearance."""
    columns = []
    for name, column in zip(group.column_names, group.columns, strict=True):
        if name in TEXT_COLUMNS:
            (chunk,) = column.chunks
            codes = chunk.indices.dictionary_encode()
            texts = chunk.dictionary.take(codes.dictionary)
            column = pa.DictionaryArray.from_arrays(codes.indices, texts)
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=_IN_MEMORY)


class CallSlices:
    """Reads rows of a written table, from its start to its end."""

    def __init__(self, path: Path) -> None:
        self._file = pq.ParquetFile(path, read_dictionary=TEXT_COLUMNS)
        self._batches = self._file.iter_batches(batch_size=ROWS_PER_GROUP)
        self._batch: pa.RecordBatch | None = None
        self._start = 0
        """The number in the table of the batch's first row."""

    def take(self, start: int, rows: int) -> Iterator[pa.Table]:
        """So many rows from number ``start`` on, which is behind all rows taken before."""
        while rows:
            if self._batch is None or start >= self._start + self._batch.num_rows:
                self._start += self._batch.num_rows if self._batch is not None else 0
                self._batch = next(self._batches)
                continue
            part = self._batch.slice(start - self._start, rows)
            yield pa.Table.from_batches([part])
            start, rows = start + part.num_rows, rows - part.num_rows
