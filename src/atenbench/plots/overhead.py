"""Relative runtimes with the threshold marked, and what other thresholds would do."""

from __future__ import annotations

from typing import Any

import altair as alt

from atenbench.plots import style
from atenbench.plots.style import Rows
from atenbench.words import many, percent

_MARKED = (1.1, 1.2, 1.4, 1.5, 2.0)


def chart(histogram: Rows, thresholds: Rows, threshold: float) -> Any:
    """Two panels; the rows are those of the two SQL files of the same names."""
    if not histogram:
        return style.nothing(style.NOT_MEASURED)
    at = {row["threshold"]: row for row in thresholds}
    panels = alt.vconcat(
        _histogram(histogram, threshold),
        _curve(thresholds, threshold, "below", "problems below the threshold", style.COMPUTES, 11),
        _curve(
            thresholds, threshold, "unsure", "problems whose interval it cuts", style.OVERHEAD, -9
        ),
        spacing=22,
    )
    return style.titled(panels, *_finding(at, threshold))


def _histogram(rows: Rows, threshold: float) -> Any:
    names = {True: "launch overhead", False: "computes"}
    named = [{**row, "is": names[row["is_overhead"]]} for row in rows]
    bars = (
        alt.Chart(style.data(named))
        .mark_bar(stroke="white", strokeWidth=0.5)
        .encode(
            x=alt.X(
                "low:Q",
                scale=alt.Scale(type="log", nice=False),
                title="runtime ÷ launch of an empty kernel (log scale)",
                axis=alt.Axis(format="~s", values=style.decades(rows[0]["low"], rows[-1]["high"])),
            ),
            x2="high:Q",
            y=alt.Y("problems:Q", title="problems", axis=alt.Axis(tickCount=5)),
            y2=alt.datum(0),
            color=alt.Color(
                "is:N",
                scale=alt.Scale(
                    domain=list(names.values()), range=[style.OVERHEAD, style.COMPUTES]
                ),
                legend=alt.Legend(orient="top-right", title=None),
            ),
            tooltip=[
                alt.Tooltip("low:Q", format=".3~g", title="from"),
                alt.Tooltip("high:Q", format=".3~g", title="to"),
                alt.Tooltip("problems:Q", format=",d"),
            ],
        )
    )
    return (bars + _rule(threshold)).properties(width=style.WIDTH, height=190)


def _curve(rows: Rows, threshold: float, field: str, title: str, colour: str, dy: int) -> Any:
    x = alt.X(
        "threshold:Q",
        scale=alt.Scale(domain=[rows[0]["threshold"], rows[-1]["threshold"]], nice=False),
        title="if this were the threshold",
        axis=alt.Axis(tickCount=8),
    )
    y = alt.Y(f"{field}:Q", title=title.split(" ", 1), axis=alt.Axis(tickCount=4))
    line = (
        alt.Chart(style.data(rows))
        .mark_line(color=colour, strokeWidth=2)
        .encode(
            x=x,
            y=y,
            tooltip=[
                alt.Tooltip("threshold:Q"),
                alt.Tooltip("below:Q", format=",d", title="problems below"),
                alt.Tooltip("unsure:Q", format=",d", title="of them and others, not certain"),
            ],
        )
    )
    marked = [row for row in rows if row["threshold"] in (*_MARKED, threshold)]
    points = alt.Chart(style.data(marked)).encode(x=x, y=y)
    dots = points.mark_point(filled=True, size=45, color=colour, opacity=1)
    labels = points.mark_text(dx=7, dy=dy, align="left", fontSize=11, color=style.INK).encode(
        text=alt.Text(f"{field}:Q", format=",d")
    )
    height = 100
    return (line + dots + labels + _rule(threshold, label=False)).properties(
        width=style.WIDTH, height=height
    )


def _rule(threshold: float, *, label: bool = True) -> Any:
    mark = alt.Chart(style.data([{"at": threshold, "text": f"threshold {threshold:g}"}]))
    rule = mark.mark_rule(color=style.INK, strokeDash=[5, 3]).encode(x="at:Q")
    if not label:
        return rule
    text = mark.mark_text(align="left", dx=5, dy=2, baseline="top", color=style.INK, fontSize=11)
    return rule + text.encode(x="at:Q", y=alt.value(0), text="text:N")


def _finding(at: dict[float, Any], threshold: float) -> tuple[str, str]:
    here = at[threshold]
    around = [at[value] for value in (1.2, 1.4) if value in at and value != threshold]
    below = " and ".join(f"{row['below']:,} at {row['threshold']:g}" for row in around)
    unsure = ", ".join(f"{row['unsure']:,} at {row['threshold']:g}" for row in (here, *around))
    return (
        f"Of {many(here['problems'], 'measured problem')}, {here['below']:,} "
        f"({percent(here['below'] / here['problems'])}) cost less than {threshold:g} launches and "
        "count as launch overhead",
        f"Other thresholds would take {below}. A good one lies in a gap, where another measurement "
        "would decide few problems otherwise. The lowest panel counts those whose ratio's interval "
        f"(94 %) holds the threshold: {unsure}.",
    )
