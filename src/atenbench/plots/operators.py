"""How many problems each operator has, and what becomes of them."""

from __future__ import annotations

from typing import Any

import altair as alt

from atenbench.plots import style
from atenbench.plots.style import Rows
from atenbench.words import many, percent

MOST = 30

_FATES = {
    "computes": ("in the benchmark", style.COMPUTES),
    "launch overhead": ("in, but launch overhead", style.OVERHEAD),
    "not measured": ("in, not measured here", style.UNMEASURED),
    "left out": ("left out", style.LEFT_OUT),
}


def chart(rows: Rows) -> Any:
    """Bars; ``rows`` are those of ``operators.sql`` with ``most`` = :data:`MOST`."""
    if not rows:
        return style.nothing("There is no problem.")
    order = list(_FATES)
    fates = [fate for fate in order if any(row["fate"] == fate for row in rows)]
    named = [
        {**row, "fate": _FATES[row["fate"]][0], "order": order.index(row["fate"])} for row in rows
    ]
    operators = list(dict.fromkeys(row["op_name"] for row in rows))
    base = alt.Chart(style.data(named)).encode(
        y=alt.Y("op_name:N", sort=operators, title=None, axis=alt.Axis(ticks=False, domain=False))
    )
    bars = base.mark_bar(height={"band": 0.75}).encode(
        x=alt.X(
            "problems:Q", title="problems", stack=True, axis=alt.Axis(format=",d", tickCount=8)
        ),
        color=alt.Color(
            "fate:N",
            scale=alt.Scale(
                domain=[_FATES[fate][0] for fate in fates],
                range=[_FATES[fate][1] for fate in fates],
            ),
            legend=alt.Legend(orient="bottom", title=None),
        ),
        order="order:Q",
        tooltip=[
            alt.Tooltip("op_name:N", title="operator"),
            alt.Tooltip("fate:N"),
            alt.Tooltip("problems:Q", format=",d"),
        ],
    )
    totals = base.mark_text(align="left", dx=5, fontSize=10, color=style.INK).encode(
        x="max(in_all):Q", text=alt.Text("max(in_all):Q", format=",d")
    )
    plot = (bars + totals).properties(width=style.WIDTH - 60, height=17 * len(operators))
    return style.titled(plot, *_finding(rows))


def _finding(rows: Rows) -> tuple[str, str]:
    sizes = {row["op_name"]: row["in_all"] for row in rows}
    whole, operators = rows[0]["problems_of_all"], rows[0]["operators"]
    top = list(sizes)[:3]
    share = percent(sum(sizes[name] for name in top) / whole)
    return (
        f"{', '.join(name.removeprefix('aten.') for name in top)} make {share} of "
        f"{many(whole, 'problem')}",
        f"The {len(sizes)} operators with the most problems, of {operators}; together "
        f"{percent(sum(sizes.values()) / whole)} of all problems.",
    )
