"""The published tables → results/plots/, each plot as a page, an SVG and a PNG."""

from pathlib import Path

from atenbench.logs import stage
from atenbench.plots.draw import draw_all

with stage(snakemake.log[0]):
    draw_all(
        {name: snakemake.input[name] for name in ("problems", "details", "calls", "rejects")},
        Path(snakemake.input.sql[0]).parent,
        Path(snakemake.input.roofline),
        snakemake.params.overhead_threshold,
        Path(snakemake.output.pages[0]).parent,
    )
