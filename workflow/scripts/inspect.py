"""Every case → results/inspected.parquet: does it run on meta tensors, what is it, how big."""

from pathlib import Path

from atenbench.inspect_cases import inspect_table
from atenbench.logs import stage

with stage(snakemake.log[0]):
    inspect_table(Path(snakemake.input.cases), Path(snakemake.output.inspected), snakemake.threads)
