"""The published tables → results/dataset_card.md, the README of the data set."""

from pathlib import Path

from atenbench.dataset_card import write_card
from atenbench.logs import stage

with stage(snakemake.log[0]):
    changes = [(str(snakemake.params.previous), Path(path)) for path in snakemake.input.changes]
    write_card(
        Path(snakemake.input.sql),
        {name: snakemake.input[name] for name in ("problems", "calls", "rejects")},
        snakemake.params.overhead_threshold,
        Path(snakemake.output.card),
        *changes,
    )
