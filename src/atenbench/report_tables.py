"""Tables of the report, as HTML pages that need nothing else; SQL gives their rows.

Text comes from traces, so every cell is escaped.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from atenbench import query
from atenbench.atomic import replacing

_PAGE = Path(__file__).with_suffix(".html")


def write_table(sql: Path, tables: Mapping[str, query.Source], output: Path) -> None:
    """Write the rows that an SQL file selects as a page; its name is the table's."""
    selected = query.fetch(sql, tables)
    text = page(output.stem, selected.column_names, selected.to_pylist())
    with replacing(output) as part:
        part.write_text(text, encoding="utf-8")


def page(name: str, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """The page of one table; numbers stand to the right, what is not known is left empty."""
    heads = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    lines = "\n".join(
        f"<tr>{''.join(_cell(row[column]) for column in columns)}</tr>" for row in rows
    )
    return Template(_PAGE.read_text(encoding="utf-8")).substitute(
        name=html.escape(name), heads=heads, rows=lines, count=f"{len(rows):,}"
    )


def _cell(value: Any) -> str:
    if value is None:
        return "<td></td>"
    if isinstance(value, int | float):
        whole = isinstance(value, int) or abs(value) >= 1000
        text = f"{value:,.0f}" if whole else f"{value:.4g}"
        return f'<td class="number">{text}</td>'
    return f"<td>{html.escape(str(value))}</td>"
