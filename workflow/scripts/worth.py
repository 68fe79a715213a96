"""Calls and measurements → results/worth.parquet, each problem's share of the operator time."""

from atenbench.logs import stage
from atenbench.worth import write_worth

with stage(snakemake.log[0]):
    write_worth(
        snakemake.input.calls,
        snakemake.input.cases,
        snakemake.input.measurements,
        snakemake.input.sql,
        snakemake.output.worth,
    )
