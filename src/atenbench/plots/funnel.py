"""From trace lines to the benchmark: how many each step keeps, and why the others are left out."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import altair as alt

from atenbench.plots import style
from atenbench.plots.style import Rows
from atenbench.words import many, percent

_KINDS = {
    "kept": ("kept", style.COMPUTES),
    "lost": ("taken away", style.LEFT_OUT),
    "included": ("in the benchmark", style.GREEN),
    "overhead": ("of these, launch overhead", style.OVERHEAD),
    "unmeasured": ("of these, not measured", style.UNMEASURED),
}


def chart(rows: Rows) -> Any:
    """A waterfall; ``rows`` are those of ``funnel.sql``."""
    bars = list(_bars(rows))
    if not bars[0]["count"]:
        return style.nothing("The traces hold no line.")
    stages = [bar["stage"] for bar in bars]
    kinds = [_KINDS[kind] for kind in _KINDS if any(row["kind"] == kind for row in rows)]
    base = alt.Chart(style.data(bars)).encode(
        y=alt.Y("stage:N", sort=stages, title=None, axis=alt.Axis(ticks=False, domain=False)),
    )
    drawn = base.mark_bar(height={"band": 0.72}).encode(
        x=alt.X("low:Q", title="lines, then problems", axis=alt.Axis(format=",d")),
        x2="high:Q",
        color=alt.Color(
            "kind:N",
            scale=alt.Scale(domain=[name for name, _ in kinds], range=[hue for _, hue in kinds]),
            legend=None,  # the steps' names say it
        ),
        tooltip=[alt.Tooltip("stage:N"), alt.Tooltip("count:Q", format=",d")],
    )
    labels = base.mark_text(align="left", dx=5, color=style.INK, fontSize=11).encode(
        x="high:Q", text=alt.Text("count:Q", format=",d")
    )
    plot = (drawn + labels).properties(width=style.WIDTH, height=26 * len(bars))
    return style.titled(plot, *_finding(rows))


def _bars(rows: Rows) -> Any:
    """Each step as a bar; what is taken away hangs from what was there before."""
    changes = [
        row["count"] if row["kind"] == "kept" and index == 0 else -row["count"]
        for index, row in enumerate(rows)
        if row["kind"] == "lost" or index == 0
    ]
    left = iter(list(accumulate(changes))[1:])
    for row in rows:
        low = next(left) if row["kind"] == "lost" else 0
        yield {
            "stage": _wrapped(row["stage"]),
            "kind": _KINDS[row["kind"]][0],
            "count": row["count"],
            "low": low,
            "high": low + row["count"],
        }


def _wrapped(reason: str) -> str:
    """A published reason in fewer words."""
    short = {
        "We cannot run this op on backendbench yet": "BackendBench cannot run it yet",
        "BackendBench does not support correctness testing for random ops yet": "random results",
        "BackendBench does not support correctness testing for tensor creation and manipulation "
        "ops yet": "creates or moves tensors only",
        "Synthetic ops are not supported in the official benchmark yet": "synthetic",
    }
    return short.get(reason, reason)


def _finding(rows: Rows) -> tuple[str, str]:
    count = {row["stage"]: row["count"] for row in rows}
    lines, problems = count["trace lines"], count["different problems"]
    included = count["in the benchmark"]
    return (
        f"{many(lines, 'trace line')} are {many(problems, 'different problem')}; "
        f"{included:,} of them ({percent(included / max(problems, 1))}) are in the benchmark",
        "A problem is an operator with its arguments. Grey bars hang from what was there before; "
        "a problem with several reasons counts under the first.",
    )
