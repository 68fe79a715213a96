"""results/calls.parquet → results/cases.parquet."""

from atenbench.aggregate import aggregate
from atenbench.logs import stage

with stage(snakemake.log[0]):
    aggregate(snakemake.input.calls, snakemake.input.sql, snakemake.output.cases, snakemake.threads)
