"""The device → results/roofline.json, the bytes and FLOPs that it does in a second at best."""

from pathlib import Path

from atenbench.logs import stage
from atenbench.roofline import write_roofline

with stage(snakemake.log[0]):
    write_roofline(
        Path(snakemake.output.roofline), Path(snakemake.params.store), snakemake.params.device
    )
