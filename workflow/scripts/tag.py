"""Facts and policy → results/tags.parquet, every decision about every problem."""

from atenbench.logs import stage
from atenbench.tag import tag

with stage(snakemake.log[0]):
    tag(
        {name: snakemake.input[name] for name in ("cases", "inspected")},
        snakemake.input.measurements,
        {name: snakemake.input[name] for name in ("exclusions", "schema")},
        snakemake.input.sql,
        snakemake.params.overhead_threshold,
        snakemake.output.tags,
    )
