"""Problems → results/traces/all.txt and results/traces/models/{suite}/{model}.txt."""

from pathlib import Path

from atenbench.logs import stage
from atenbench.trace_text import write_all, write_models

with stage(snakemake.log[0]):
    given, out = snakemake.input, snakemake.output
    write_all(given.cases, given.all_sql, Path(out.all))
    write_models(given.calls, given.cases, given.models_sql, Path(out.models))
