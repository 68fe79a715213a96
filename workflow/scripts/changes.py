"""The release beside an earlier one → results/changes.parquet and results/changes.md."""

from pathlib import Path

from atenbench.changes import compare
from atenbench.changes_report import write_report
from atenbench.ingest import read_renames
from atenbench.logs import stage

with stage(snakemake.log[0]):
    given, changes = snakemake.input, Path(snakemake.output.changes)
    tables = [Path(path) for path in (given.previous[0], given.problems, given.details)]
    devices = compare(*tables, read_renames(Path(given.renames)), given.sql, changes)
    write_report(changes, snakemake.params.previous, devices, Path(snakemake.output.report))
