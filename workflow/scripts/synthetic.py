"""The largest calls, made larger → a trace in results/synthetic, and what came of each."""

from pathlib import Path

from atenbench.logs import stage
from atenbench.synthetic import make_synthetic

with stage(snakemake.log[0]):
    given, out = snakemake.input, snakemake.output
    settings = dict(snakemake.params.items())
    trace, table = Path(out.trace), Path(out.table)
    make_synthetic(given.calls, given.sql, trace, table, workers=snakemake.threads, **settings)
