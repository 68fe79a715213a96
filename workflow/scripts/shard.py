"""Problems that may run → results/shards/*.parquet, parted by the hash of their uuids."""

from pathlib import Path

from atenbench.logs import stage
from atenbench.shard import write_shards

with stage(snakemake.log[0]):
    write_shards(Path(snakemake.input.inspected), list(map(Path, snakemake.output.shards)))
