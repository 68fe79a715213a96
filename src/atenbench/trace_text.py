"""Problems → trace text again: one file for all of them, and one for each model.

Read again, ``all.txt`` gives the same problems, counts and synthetic flags, and the folder of
models those that models call, with their models too. The queries are in ``workflow/sql``.
"""

from __future__ import annotations

import itertools
import logging
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from atenbench import query
from atenbench.atomic import replacing, replacing_folder

logger = logging.getLogger(__name__)


def write_all(cases: str, sql: str, output: Path) -> None:
    """Every problem of ``cases.parquet`` as one trace."""
    with tempfile.TemporaryDirectory() as scratch, replacing(output) as part:
        lines = Path(scratch) / "lines.parquet"
        problems = query.write(sql, lines, {"cases": cases})
        _write(_rows(lines), part)
    logger.info("%s: %s problems", output, f"{problems:,}")


def write_models(calls: str, cases: str, sql: str, folder: Path) -> None:
    """Each model's calls as a trace ``{suite}/{model}[.{mode}].txt`` in the folder.

    The suite is its label. Calls of no named model, and synthetic ones, are in no such file.
    """
    files = 0
    with tempfile.TemporaryDirectory() as scratch, replacing_folder(folder) as part:
        lines = Path(scratch) / "lines.parquet"
        query.write(sql, lines, {"calls": calls, "cases": cases})
        for place, rows in itertools.groupby(_rows(lines), _place):
            target = part / place
            target.parent.mkdir(exist_ok=True)
            _write(rows, target)
            files += 1
    logger.info("%s: %s traces", folder, f"{files:,}")


def _rows(table: Path) -> Iterator[dict[str, Any]]:
    with pq.ParquetFile(table) as file:
        for batch in file.iter_batches():
            yield from batch.to_pylist()


def _place(row: Mapping[str, Any]) -> str:
    mode = f".{row['mode']}" if row["mode"] else ""
    return f"{row['suite']}/{row['model']}{mode}.txt"


def _write(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Rows of op_name, args and count, sorted by op_name, in the line grammar of traces."""
    with path.open("w", encoding="utf-8") as text:
        for op_name, calls in itertools.groupby(rows, lambda row: row["op_name"]):
            text.write(f"Operator: {op_name}\n")
            text.writelines(f"cnt: {call['count']}, {call['args']}\n" for call in calls)
