"""Every trace line → results/calls.parquet, or results/rejects.parquet with the reason."""

from pathlib import Path

from atenbench.ingest import ingest, read_renames
from atenbench.logs import stage
from atenbench.trace import find_traces

with stage(snakemake.log[0]):
    ingest(
        find_traces(map(Path, snakemake.params.folders)),
        snakemake.params.suites,
        read_renames(Path(snakemake.input.renames)),
        snakemake.params.on_bad_line,
        Path(snakemake.output.calls),
        Path(snakemake.output.rejects),
        list(map(Path, snakemake.input.published)),
    )
