"""A trace that was made, and its record → resources/traces/ and its manifest.json."""

from pathlib import Path

from atenbench.logs import stage
from atenbench.manifest import keep

with stage(snakemake.log[0]):
    file = f"{snakemake.wildcards.file}.txt"
    keep(Path(snakemake.input.trace), Path(snakemake.params.traces), file)
