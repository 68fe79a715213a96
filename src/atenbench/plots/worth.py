"""How few problems make most of the time, and which of them are not launch overhead."""

from __future__ import annotations

from typing import Any

import altair as alt

from atenbench.plots import style
from atenbench.plots.style import Rows
from atenbench.words import many, percent


def chart(rows: Rows, marks: Rows) -> Any:
    """A curve; the rows are those of ``worth.sql`` and ``worth_marks.sql``."""
    if not rows:
        return style.nothing(style.NOT_MEASURED)
    names = {True: "launch overhead", False: "computes"}
    named = [{**row, "is": names[row["is_overhead"]]} for row in rows]
    x = alt.X(
        "rank:Q",
        scale=alt.Scale(type="log", domain=[1, max(rows[0]["ranked"], 2)], nice=False),
        title="problems, the most costly first (log scale)",
        axis=alt.Axis(format=",d", values=style.decades(1, max(rows[0]["ranked"], 10))),
    )
    y = alt.Y(
        "cumulative_share:Q",
        scale=alt.Scale(domain=[0, 1]),
        title="share of the operator time, together",
        axis=alt.Axis(format="%"),
    )
    curve = alt.Chart(style.data(named)).encode(x=x, y=y)
    line = curve.mark_line(color=style.LEFT_OUT, strokeWidth=1.5)
    dots = curve.mark_point(filled=True, size=26, opacity=1).encode(
        color=alt.Color(
            "is:N",
            scale=alt.Scale(domain=list(names.values()), range=[style.OVERHEAD, style.COMPUTES]),
            legend=alt.Legend(orient="bottom-right", title=None),
        ),
        tooltip=[
            alt.Tooltip("rank:Q", format=",d"),
            alt.Tooltip("op_name:N", title="operator"),
            alt.Tooltip("args:N"),
            alt.Tooltip("share:Q", format=".2%", title="its share"),
            alt.Tooltip("cumulative_share:Q", format=".1%", title="all up to it"),
        ],
    )
    plot = line + dots + _marks(marks)
    return style.titled(plot.properties(width=style.WIDTH, height=320), *_finding(marks))


def _marks(marks: Rows) -> Any:
    labelled = [
        {
            "rank": mark["needed"],
            "cumulative_share": mark["part"],
            "text": f"{percent(mark['part'])}: {many(mark['needed'], 'problem')}",
        }
        for mark in marks
    ]
    at = alt.Chart(style.data(labelled)).encode(x="rank:Q", y="cumulative_share:Q")
    rings = at.mark_point(size=130, color=style.INK, strokeWidth=1.5)
    text = at.mark_text(align="right", dx=-12, dy=-4, fontSize=12, color=style.INK)
    return rings + text.encode(text="text:N")


def _finding(marks: Rows) -> tuple[str, str]:
    half, most, nearly = marks
    overhead = [f"{mark['overhead']:,} of {mark['needed']:,}" for mark in (half, most, nearly)]
    return (
        f"Half of the operator time is made by {half['needed']:,} of "
        f"{many(half['problems'], 'problem')}, 80 % by {most['needed']:,}, 95 % by "
        f"{nearly['needed']:,}",
        "Operator time is calls in the traces × measured runtime. Launch overhead among the "
        f"problems up to each ring: {overhead[0]}, {overhead[1]}, {overhead[2]}.",
    )
