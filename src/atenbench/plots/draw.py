"""Tables → every plot as a page, an SVG and a PNG.

The page holds all that it needs (Vega, Vega-Lite, the data), shows values on pointing, and opens
from the disk without a network.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from string import Template
from typing import Any

import vl_convert

from atenbench import query
from atenbench.atomic import replacing
from atenbench.plots import funnel, models, operators, overhead, rooflines, style, time, worth

_PAGE = Path(__file__).with_name("page.html")
_VEGA_LITE = "6.4"
_PNG_SCALE = 2
_NUMBERED = re.compile(r"(?<=[\"#])(clip|gradient_)\d+(?=[\")])")
_EVERYTHING = "window.vegaEmbed = vegaEmbed;"


def charts(
    tables: Mapping[str, str], sql: Path, roofs: Mapping[str, Any], threshold: float
) -> dict[str, Any]:
    """Every plot by its name.

    Args:
        tables: ``problems``, ``details``, ``calls`` and ``rejects``.
        sql: the folder of the SQL files that give the plots their data.
        roofs: what ``roofline.json`` holds.
        threshold: below this relative runtime a problem is launch overhead.
    """

    def rows(name: str, **params: object) -> style.Rows:
        found: style.Rows = query.fetch(sql / f"{name}.sql", tables, params or None).to_pylist()
        return found

    rates = {"bytes_per_s": roofs["bytes_per_s"]}
    rates |= {dtype: roofs["flops_per_s"].get(dtype) for dtype in ("f32", "f16", "bf16")}
    drawn: dict[str, Callable[[], Any]] = {
        "funnel": lambda: funnel.chart(rows("funnel")),
        "overhead": lambda: overhead.chart(
            rows("overhead_histogram", threshold=threshold),
            rows("overhead_thresholds", threshold=threshold),
            threshold,
        ),
        "operators": lambda: operators.chart(rows("operators", most=operators.MOST)),
        "rooflines": lambda: rooflines.chart(
            rows("rooflines"), roofs, rows("rooflines_reach", **rates)[0]
        ),
        "models": lambda: models.chart(
            rows(
                "models",
                most_operators=models.MOST_OPERATORS,
                most_models=models.MOST_MODELS,
            )
        ),
        "time": lambda: time.chart(rows("time", most=time.MOST)),
        "worth": lambda: worth.chart(rows("worth"), rows("worth_marks")),
    }
    return {name: draw() for name, draw in drawn.items()}


def draw_all(
    tables: Mapping[str, str], sql: Path, roofline: Path, threshold: float, folder: Path
) -> None:
    """Write ``{name}.html``, ``.svg`` and ``.png`` of every plot into a folder."""
    roofs = json.loads(roofline.read_text(encoding="utf-8"))
    for name, chart in charts(tables, sql, roofs, threshold).items():
        spec = style.styled(chart)
        svg = picture(spec)
        write(folder / f"{name}.html", page(spec, name).encode())
        write(folder / f"{name}.svg", svg.encode())
        write(folder / f"{name}.png", vl_convert.svg_to_png(svg, scale=_PNG_SCALE))


def picture(spec: Mapping[str, Any]) -> str:
    """A plot as SVG. Vega numbers clips and gradients on from plot to plot; here from 0 each."""
    svg: str = vl_convert.vegalite_to_svg(dict(spec), vl_version=_VEGA_LITE)
    numbers: dict[str, int] = {}
    return _NUMBERED.sub(
        lambda found: f"{found[1]}{numbers.setdefault(found[0], len(numbers))}", svg
    )


def page(spec: Mapping[str, Any], name: str) -> str:
    """A page of its own for a plot. Text in it comes from traces: none of it can end the script."""
    text = json.dumps(spec, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Template(_PAGE.read_text(encoding="utf-8")).substitute(
        name=name, bundle=_bundle(), spec=text.replace("<", "\\u003c")
    )


@functools.cache
def _bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script."""
    bundle: str = vl_convert.javascript_bundle(_EVERYTHING, _VEGA_LITE)
    return bundle


def write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    with replacing(path) as part:
        part.write_bytes(content)
