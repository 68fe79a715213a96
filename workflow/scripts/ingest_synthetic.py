"""The synthetic trace → results/synthetic_calls.parquet."""

from pathlib import Path

from atenbench.ingest import ingest
from atenbench.logs import stage
from atenbench.trace import find_traces

with stage(snakemake.log[0]):
    traces = find_traces([Path(snakemake.input.trace).parent.parent])
    out = snakemake.output
    ingest(traces, {}, {}, "error", Path(out.calls), Path(out.rejects))
