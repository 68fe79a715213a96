"""Published files of problems → the calls that they stand for, so that they can go in like traces.

A published row says how often a problem is called in all, and by which models. What it does not
say, how often by each, is made up so that sum and models come out as published: one call each, and
the rest by the first. Files with the older columns, without ``in_models``, give calls of no named
model. Imports no torch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from atenbench.arguments import INT64_MAX, ArgumentError
from atenbench.canonical import canonical
from atenbench.errors import UserError
from atenbench.trace import MODES, OPERATOR_NAME, BadLine, Calls, CallText

_REQUIRED = ("op_name", "args", "count")
_OPTIONAL = ("is_synthetic", "in_models")

_MODEL = re.compile(r"([^/\s.][^/\s]*)/([^/\s.][^/\s]*)")
"""``SUITE/model``: each a name that a file can have, and not a hidden one."""


@dataclass(frozen=True, slots=True)
class PublishedCall:
    """A call of one published row by one of its models; both None where no model is named."""

    calls: Calls
    suite: str | None
    model: str | None


def read_published(path: Path, renames: Mapping[str, str]) -> Iterator[PublishedCall | BadLine]:
    """The calls of each row of a ``.parquet`` or ``.json`` file, or why the row is bad.

    ``line`` is the number of the row, from 1. ``renames`` maps an operator name of another torch
    version to today's.

    Raises:
        UserError: the file cannot be read, has no rows, or lacks a column that is needed.
    """
    number = 0
    for number, row in enumerate(_rows(path), start=1):
        try:
            yield from _calls(number, row, renames)
        except _Bad as bad:
            yield BadLine(number, str(bad), json.dumps(row, default=str)[:10_000])
    if not number:
        raise UserError(f"{path}: no rows in it; expected problems as this pipeline publishes them")


class _Bad(Exception):
    """Why the row at hand is bad."""


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows as Python values, a part at a time; a column that is not there is None."""
    try:
        yield from _of_json(path) if path.suffix == ".json" else _of_parquet(path)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    except (pa.ArrowException, duckdb.Error) as error:
        raise UserError(f"{path}: cannot be read: {str(error).splitlines()[0]}") from None


def _of_parquet(path: Path) -> Iterator[dict[str, Any]]:
    with pq.ParquetFile(path) as file:
        there = file.schema_arrow.names
        _check_columns(path, there)
        columns = [name for name in (*_REQUIRED, *_OPTIONAL) if name in there]
        for batch in file.iter_batches(columns=columns):
            yield from batch.to_pylist()


def _of_json(path: Path) -> Iterator[dict[str, Any]]:
    columns = dict.fromkeys((*_REQUIRED, *_OPTIONAL), "JSON")
    # Each value arrives as JSON text, so that what is no integer is seen and not rounded to one.
    query = "FROM read_json($path, columns = $columns)"
    with path.open("rb"), duckdb.connect() as connection:
        found = connection.execute(query, {"path": str(path), "columns": columns})
        first = True
        while batch := found.fetchmany(10_000):
            for values in batch:
                texts = dict(zip(columns, values, strict=True))
                if first:
                    _check_columns(path, [name for name, text in texts.items() if text is not None])
                    first = False
                yield {
                    name: None if text is None else json.loads(text) for name, text in texts.items()
                }


def _check_columns(path: Path, there: Iterable[str]) -> None:
    missing = [name for name in _REQUIRED if name not in set(there)]
    if missing:
        raise UserError(
            f"{path}: no {', '.join(missing)} in it; a published file has {', '.join(_REQUIRED)} "
            f"and, if it is not an old one, {', '.join(_OPTIONAL)}"
        )


def _calls(number: int, row: Mapping[str, Any], renames: Mapping[str, str]) -> list[PublishedCall]:
    op_name, args, count = _text(row, "op_name"), _text(row, "args"), _count(row)
    if not OPERATOR_NAME.fullmatch(op_name):
        raise _Bad("op_name must be namespace.operator.overload")
    try:
        meaning = canonical(args)
    except ArgumentError as error:
        raise _Bad(str(error)) from None
    _check_flag(row, count)
    op_name = renames.get(op_name, op_name)
    models = _models(row, count)
    if not models:
        return [
            PublishedCall(Calls(op_name, [number], [CallText(args, meaning, count)]), None, None)
        ]
    counts = [count - len(models) + 1] + [1] * (len(models) - 1)
    return [
        PublishedCall(Calls(op_name, [number], [CallText(args, meaning, times)]), *model)
        for model, times in zip(models, counts, strict=True)
    ]


def _text(row: Mapping[str, Any], column: str) -> str:
    value = row.get(column)
    if not isinstance(value, str):
        raise _Bad(f"{column} must be text, not {value!r}")
    if any(mark in value for mark in "\n\r\0"):
        raise _Bad(f"{column} must be one line")
    return value.strip()


def _count(row: Mapping[str, Any]) -> int:
    count = row.get("count")
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= INT64_MAX:
        raise _Bad(f"count must be a whole number of 64 bits from 0, not {count!r}")
    return count


def _check_flag(row: Mapping[str, Any], count: int) -> None:
    flag = row.get("is_synthetic")
    if flag is not None and flag is not (count == 0):
        raise _Bad(f"is_synthetic is {flag!r} and count {count}; count 0 marks a synthetic problem")


def _models(row: Mapping[str, Any], count: int) -> list[tuple[str, str]]:
    """Suite and model of each model, sorted."""
    names = row.get("in_models")
    if names is None:
        return []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _Bad(f"in_models must be a list of text, not {names!r}")
    models = []
    for name in sorted(set(names)):
        match = _MODEL.fullmatch(name) if name.isprintable() else None
        if not match or match[2].rpartition(".")[2] in MODES:
            raise _Bad(f"in_models must hold names of the form SUITE/model, not {name!r}")
        models.append((match[1], match[2]))
    if len(models) > count:
        raise _Bad(f"{len(models)} models in in_models, but count is only {count}")
    return models
