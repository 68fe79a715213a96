"""The published tables → results/explorer.html, one page over all problems."""

from pathlib import Path

from atenbench.explorer.page import write_explorer
from atenbench.logs import stage

with stage(snakemake.log[0]):
    write_explorer(
        snakemake.input.problems,
        snakemake.input.details,
        snakemake.input.sql,
        Path(snakemake.output.page),
        {"threshold": snakemake.params.overhead_threshold},
    )
