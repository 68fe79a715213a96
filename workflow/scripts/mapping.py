"""results/cases.parquet → results/operator_input_models_mapping.parquet and .json."""

from atenbench.logs import stage
from atenbench.mapping import map_to_models

with stage(snakemake.log[0]):
    map_to_models(snakemake.input.cases, snakemake.input.sql, *snakemake.output, snakemake.threads)
