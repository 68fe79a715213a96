"""Every trace line → results/calls.parquet, or results/rejects.parquet with the reason."""

from pathlib import Path

from atenbench.earlier import Keeping
from atenbench.ingest import ingest, read_renames
from atenbench.kept import key_of
from atenbench.logs import stage
from atenbench.trace import find_traces

with stage(snakemake.log[0]):
    traces = find_traces(map(Path, snakemake.params.folders))
    suites, renames = snakemake.params.suites, read_renames(Path(snakemake.input.renames))
    kept = Keeping(Path("results/kept/ingest"), key_of(snakemake.input.code, suites, renames))
    calls, rejects = map(Path, (snakemake.output.calls, snakemake.output.rejects))
    published = list(map(Path, snakemake.input.published))
    ingest(traces, suites, renames, snakemake.params.on_bad_line, calls, rejects, published, kept)
