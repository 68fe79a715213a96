"""results/calls.parquet → results/cases.parquet and the mapping of operators to models."""

from atenbench.aggregate import aggregate
from atenbench.logs import stage

with stage(snakemake.log[0]):
    aggregate(
        snakemake.input.calls,
        {"cases": snakemake.input.cases_sql, "mapping": snakemake.input.mapping_sql},
        dict(snakemake.output.items()),
        snakemake.threads,
    )
