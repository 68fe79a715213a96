"""What all plots share: colours that colour-blind readers can tell apart, type, words for numbers.

The colours are Okabe and Ito's, and mean the same everywhere.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

Rows = Sequence[Mapping[str, Any]]

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "#BBBBBB"
INK, SOFT = "#222222", "#666666"

COMPUTES, OVERHEAD, LEFT_OUT, UNMEASURED = BLUE, ORANGE, GREY, "#56B4E9"

WIDTH = 640
_FONT = "DejaVu Sans, Verdana, sans-serif"
_TITLE_CHARACTERS, _SUBTITLE_CHARACTERS = 78, 110


def data(rows: Rows) -> alt.InlineData:
    """Rows as the data of a chart."""
    return alt.InlineData(values=[dict(row) for row in rows])


def titled(chart: Any, finding: str, *more: str) -> Any:
    """A chart under a title that states what is to be seen, and lines that say how to read it."""
    title = alt.TitleParams(
        text=textwrap.wrap(finding, _TITLE_CHARACTERS),
        subtitle=[line for text in more for line in textwrap.wrap(text, _SUBTITLE_CHARACTERS)],
    )
    return chart.properties(title=title)


def styled(chart: Any) -> dict[str, Any]:
    """The Vega-Lite specification of a chart in this project's style."""
    axis = {"labelFont": _FONT, "titleFont": _FONT, "labelColor": INK, "titleColor": INK}
    configured = (
        chart.configure(font=_FONT, background="white", padding=16)
        .configure_view(stroke=None)
        .configure_axis(
            **axis,
            labelFontSize=11,
            titleFontSize=12,
            titleFontWeight="normal",
            gridColor="#E6E6E6",
            domainColor=SOFT,
            tickColor=SOFT,
            labelLimit=400,
        )
        .configure_title(
            anchor="start",
            frame="bounds",
            font=_FONT,
            fontSize=16,
            color=INK,
            subtitleFont=_FONT,
            subtitleFontSize=12,
            subtitleColor=SOFT,
            subtitlePadding=6,
            offset=14,
        )
        .configure_legend(labelFont=_FONT, titleFont=_FONT, labelFontSize=11, labelLimit=300)
    )
    spec: dict[str, Any] = configured.to_dict()
    return spec


def nothing(what: str) -> Any:
    """In place of a plot that has nothing to show: the reason."""
    chart = (
        alt.Chart(data([{"text": what}]))
        .mark_text(fontSize=14, color=SOFT, align="left")
        .encode(x=alt.value(0), text="text:N")
        .properties(width=WIDTH, height=40)
    )
    return titled(chart, "Nothing to show yet")


NOT_MEASURED = "No problem was measured (device: off); runtimes are needed for this plot."


def decades(low: float, high: float) -> list[float]:
    """The powers of ten of a log axis, for ticks without a forest of lines between them."""
    return [10.0**power for power in range(math.ceil(math.log10(low)), int(math.log10(high)) + 1)]
