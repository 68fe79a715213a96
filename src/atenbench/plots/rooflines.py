"""Runtime against bytes and against FLOPs, with the roofs that the device reached in this run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import altair as alt

from atenbench.plots import style
from atenbench.plots.style import Rows
from atenbench.words import many, percent

_ROOF = "#D55E00"
_DASHES = ([1, 0], [6, 3], [2, 2])


def chart(cells: Rows, roofs: Mapping[str, Any], reach: Mapping[str, Any]) -> Any:
    """Two panels; ``cells`` and ``reach`` are rows of SQL, ``roofs`` is ``roofline.json``."""
    if not cells or roofs["bytes_per_s"] is None:
        return style.nothing(style.NOT_MEASURED)
    bandwidth = roofs["bytes_per_s"]
    panels = [
        _Panel("bytes", "bytes to be moved", {f"{bandwidth / 1e9:,.1f} GB/s": bandwidth}),
        _Panel(
            "flops",
            "floating-point operations",
            {f"{dtype}: {_rate(rate)}": rate for dtype, rate in roofs["flops_per_s"].items()},
        ),
    ]
    drawn = [
        panel.drawn([row for row in cells if row["of"] == panel.of], reach["launch_ms"])
        for panel in panels
    ]
    both = alt.hconcat(*drawn, spacing=30).resolve_scale(strokeDash="independent")
    return style.titled(both, *_finding(roofs, reach))


def _rate(flops_per_s: float) -> str:
    big = flops_per_s >= 1e12
    return f"{flops_per_s / 1e12:,.1f} TFLOP/s" if big else f"{flops_per_s / 1e9:,.1f} GFLOP/s"


@dataclass(frozen=True, slots=True)
class _Panel:
    """Cells of problems and the lines of the least possible runtime, ``amount / rate``."""

    of: str
    title: str
    roofs: Mapping[str, float]

    def drawn(self, rows: Rows, launch_ms: float | None) -> Any:
        if not rows:
            return style.nothing(f"No measured problem has {self.title}.").properties(width=200)
        left, right = rows[0]["amount_low"], max(row["amount_high"] for row in rows)
        bottom = min(launch_ms or math.inf, *(row["ms_low"] for row in rows)) / 3
        top = max(row["ms_high"] for row in rows)
        x = alt.X(
            "amount:Q",
            scale=alt.Scale(type="log", domain=[left, right], nice=False),
            title=f"{self.title} (log scale)",
            axis=alt.Axis(format="~s", values=style.decades(left, right), labelOverlap=True),
        )
        y = alt.Y(
            "ms:Q",
            scale=alt.Scale(type="log", domain=[bottom, top], nice=False),
            title="runtime in ms (log scale)",
            axis=alt.Axis(format="~g", values=style.decades(bottom, top)),
        )
        layers = [self._cells(rows, x, y), self._lines(left, right, bottom, x, y)]
        if launch_ms:
            layers.append(_launch(launch_ms, right, x, y))
        return alt.layer(*layers).properties(width=330, height=330)

    def _cells(self, rows: Rows, x: alt.X, y: alt.Y) -> Any:
        named = [{**row, "amount": row["amount_low"], "ms": row["ms_low"]} for row in rows]
        return (
            alt.Chart(style.data(named))
            .mark_rect()
            .encode(
                x=x,
                x2="amount_high:Q",
                y=y,
                y2="ms_high:Q",
                color=alt.Color(
                    "problems:Q",
                    scale=alt.Scale(type="log", scheme="blues", domainMin=0.4),
                    legend=alt.Legend(title="problems", orient="right", gradientLength=110),
                ),
                tooltip=[
                    alt.Tooltip("amount:Q", format=".3~s", title=f"{self.title}, from"),
                    alt.Tooltip("ms:Q", format=".3~g", title="ms, from"),
                    alt.Tooltip("problems:Q", format=",d"),
                    alt.Tooltip("overhead:Q", format=",d", title="of these, launch overhead"),
                ],
            )
        )

    def _lines(self, left: float, right: float, bottom: float, x: alt.X, y: alt.Y) -> Any:
        ends = [
            {"amount": end, "ms": end / rate * 1e3, "roof": name}
            for name, rate in self.roofs.items()
            for end in (max(left, bottom * rate / 1e3), right)
        ]
        return (
            alt.Chart(style.data(ends))
            .mark_line(color=_ROOF, strokeWidth=1.8, clip=True)
            .encode(
                x=x,
                y=y,
                strokeDash=alt.StrokeDash(
                    "roof:N",
                    scale=alt.Scale(
                        domain=list(self.roofs), range=list(_DASHES[: len(self.roofs)])
                    ),
                    legend=alt.Legend(
                        title="fastest by",
                        orient="bottom",
                        symbolStrokeColor=_ROOF,
                        symbolSize=500,
                    ),
                ),
            )
        )


def _launch(launch_ms: float, right: float, x: alt.X, y: alt.Y) -> Any:
    row = {"ms": launch_ms, "amount": right, "name": f"one launch, {launch_ms:.2g} ms"}
    here = alt.Chart(style.data([row]))
    rule = here.mark_rule(color=style.SOFT, strokeDash=[4, 3]).encode(y=y)
    text = here.mark_text(align="right", baseline="top", dy=4, fontSize=10, color=style.SOFT)
    return rule + text.encode(x=x, y=y, text="name:N")


def _finding(roofs: Mapping[str, Any], reach: Mapping[str, Any]) -> tuple[str, ...]:
    whole = reach["problems"]
    if whole:
        finding = (
            f"Of {many(whole, 'problem')} that compute, {percent(reach['near'] / whole)} take at "
            f"most twice the least time by bytes and FLOPs, {percent(reach['far'] / whole)} more "
            "than ten times"
        )
    else:
        finding = "Every measured problem is launch overhead"
    return (
        finding,
        "Lines: the least time at the rates that the device reached in this run. The further a "
        "cell lies above its line, the more a better kernel could gain; below it, caches help.",
        f"Device: {roofs['device']}.",
    )
