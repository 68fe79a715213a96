"""Where the measured time goes, by operator."""

from __future__ import annotations

from typing import Any

import altair as alt

from atenbench.plots import style
from atenbench.plots.style import Rows
from atenbench.words import percent

MOST = 20


def chart(rows: Rows) -> Any:
    """Bars; ``rows`` are those of ``time.sql`` with ``most`` = :data:`MOST`."""
    if not rows:
        return style.nothing(style.NOT_MEASURED)
    operators = [row["op_name"] for row in rows]
    base = alt.Chart(style.data(rows)).encode(
        y=alt.Y("op_name:N", sort=operators, title=None, axis=alt.Axis(ticks=False, domain=False)),
        x=alt.X(
            "share:Q", title="share of the operator time", axis=alt.Axis(format="%", tickCount=8)
        ),
    )
    bars = base.mark_bar(color=style.COMPUTES, height={"band": 0.75}).encode(
        tooltip=[
            alt.Tooltip("op_name:N", title="operator"),
            alt.Tooltip("share:Q", format=".2%", title="share of the time"),
            alt.Tooltip("overhead:Q", format=".3%", title="of that, launch overhead"),
            alt.Tooltip("problems:Q", format=",d", title="measured problems"),
        ]
    )
    labels = base.mark_text(align="left", dx=5, fontSize=11, color=style.INK).encode(
        text=alt.Text("share:Q", format=".1%")
    )
    plot = (bars + labels).properties(width=style.WIDTH - 60, height=20 * len(rows))
    return style.titled(plot, *_finding(rows))


def _finding(rows: Rows) -> tuple[str, str]:
    top = rows[:3]
    names = ", ".join(row["op_name"].removeprefix("aten.") for row in top)
    verb = "takes" if len(top) == 1 else "take"
    return (
        f"{names} {verb} {percent(sum(row['share'] for row in top))} of the operator time",
        f"Calls in the traces × measured runtime. The {len(rows)} operators that take most, of "
        f"{rows[0]['operators']}. {percent(rows[0]['measured_calls'])} of the calls are of "
        "measured problems; what is not measured takes no time here.",
    )
