"""Models against operators: in which operators each model spends its time."""

from __future__ import annotations

from typing import Any

import altair as alt

from atenbench.plots import style
from atenbench.plots.style import Rows
from atenbench.words import percent

MOST_OPERATORS = 28
MOST_MODELS = 40


def chart(rows: Rows) -> Any:
    """A heat map; ``rows`` are those of ``models.sql`` with the limits above."""
    if not rows:
        return style.nothing(style.NOT_MEASURED)
    operators = list(
        dict.fromkeys(
            row["op_name"] for row in sorted(rows, key=lambda row: int(row["operator_place"]))
        )
    )
    models = sorted({row["model"] for row in rows})
    short = [{**row, "operator": row["op_name"].removeprefix("aten.")} for row in rows]
    plot = (
        alt.Chart(style.data(short))
        .mark_rect(stroke="white", strokeWidth=1)
        .encode(
            x=alt.X(
                "operator:N",
                sort=[name.removeprefix("aten.") for name in operators],
                title=None,
                axis=alt.Axis(labelAngle=-60, orient="top", ticks=False, domain=False),
            ),
            y=alt.Y("model:N", sort=models, title=None, axis=alt.Axis(ticks=False, domain=False)),
            color=alt.Color(
                "share:Q",
                scale=alt.Scale(scheme="viridis", reverse=True, domain=[0, 1], type="sqrt"),
                legend=alt.Legend(
                    title=["share of the", "model's time"], format=".0%", gradientLength=140
                ),
            ),
            tooltip=[
                alt.Tooltip("model:N"),
                alt.Tooltip("op_name:N", title="operator"),
                alt.Tooltip("share:Q", format=".1%", title="share of the model's time"),
            ],
        )
        .properties(width=20 * len(operators), height=16 * len(models))
    )
    return style.titled(plot, *_finding(rows, operators, models))


def _finding(rows: Rows, operators: list[str], models: list[str]) -> tuple[str, str]:
    top = operators[0]
    shares = [row["share"] for row in rows if row["op_name"] == top]
    most = max(rows, key=lambda row: float(row["share"]))
    return (
        f"{top.removeprefix('aten.')} takes time in {len(shares)} of {len(models)} models; the "
        f"largest single part is {most['op_name'].removeprefix('aten.')} in {most['model']}, "
        f"{percent(most['share'])}",
        f"Operator time as measured (calls × runtime). {len(operators)} of {rows[0]['operators']} "
        f"operators, those that take most; {len(models)} of {rows[0]['models']} models, those with "
        "the most calls. An empty cell: not called, or not measured.",
    )
