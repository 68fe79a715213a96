"""A published file of a server → results/downloads, and where it is from beside it."""

from pathlib import Path

from atenbench.downloads import fetch
from atenbench.logs import stage

with stage(snakemake.log[0]):
    fetch(snakemake.params.url, Path(snakemake.output.file), Path(snakemake.output.source))
