"""Every case → results/inspected.parquet: does it run on meta tensors, what is it, how big."""

from importlib.metadata import version
from pathlib import Path

from atenbench.inspect_cases import Kept, inspect_table
from atenbench.kept import key_of
from atenbench.logs import stage

with stage(snakemake.log[0]):
    inspected, key = (
        Path(snakemake.output.inspected),
        key_of(snakemake.input.code, version("torch")),
    )
    kept = Kept(Path("results/kept/inspect") / inspected.name, key)
    inspect_table(Path(snakemake.input.cases), inspected, snakemake.threads, kept)
