"""The tables and traces → results/dataset, one folder with a manifest of digests."""

from pathlib import Path

from atenbench.exclusions import read_exclusions
from atenbench.logs import stage
from atenbench.release import assemble, policy_digest

with stage(snakemake.log[0]):
    given, params = snakemake.input, snakemake.params
    files = dict(zip(params.names, map(Path, given.files), strict=True))
    exclusions = read_exclusions(Path(given.exclusions), Path(given.schema))
    policy = policy_digest(exclusions, params.overhead_threshold)
    assemble(files, Path(snakemake.output.manifest).parent, policy)
