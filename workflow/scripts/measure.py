"""A shard of problems → results/measurements/*.parquet: each is timed once, whatever happens."""

from dataclasses import fields
from pathlib import Path

from atenbench.logs import stage
from atenbench.measure import measure_shard
from atenbench.settings import Settings

with stage(snakemake.log[0]):
    given = {field.name: snakemake.params[field.name] for field in fields(Settings)}
    tables = map(Path, (snakemake.input.shard, snakemake.input.inspected, snakemake.output[0]))
    measure_shard(*tables, Path(snakemake.params.store), Settings(**given))
