"""Tables → ``explorer.html``, one page that opens from the disk without a network.

The data and the table library (DataTables, as the package itables carries it) are packed into the
page with gzip and unpacked by the browser. Text from traces travels as JSON in base64 and is put
into the page as text, never as HTML.
"""

from __future__ import annotations

import base64
import gzip
import json
import logging
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from atenbench import query
from atenbench.atomic import replacing
from atenbench.explorer.rows import packed

logger = logging.getLogger(__name__)

_PARTS = Path(__file__).parent


def write_explorer(
    problems: str, details: str, sql: str, output: Path, traits: Mapping[str, Any]
) -> None:
    """Write the page over the whole problem table.

    Args:
        problems, details: the tables.
        sql: the file that selects what is shown.
        output: the page.
        traits: what the page says of the run: ``threshold``.
    """
    rows = query.fetch(sql, {"problems": problems, "details": details}).to_pylist()
    said = query.file_metadata(problems)
    device = said.get("device", "off")
    about = {**traits, "device": device, "torch": said.get("version of torch", "")}
    data = packed(rows, "cuda" if device.startswith("cuda") else "cpu") | {"about": about}
    with replacing(output) as part:
        part.write_text(page(data), encoding="utf-8")
    logger.info("%s problems, %s MB", f"{len(rows):,}", f"{output.stat().st_size / 1e6:.1f}")


def page(data: Mapping[str, Any]) -> str:
    """The page that shows packed problems."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    library = files("itables").joinpath("html", "dt_bundle.js").read_bytes()
    return Template(_part("explorer.html")).substitute(
        style=_part("explorer.css"),
        code=_part("explorer.js"),
        library=_packed(library),
        data=_packed(text.encode()),
    )


def _part(name: str) -> str:
    return (_PARTS / name).read_text(encoding="utf-8")


def _packed(content: bytes) -> str:
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode()
