"""The published tables → results/tables/, a page for each table of the report."""

from pathlib import Path

from atenbench.logs import stage
from atenbench.report_tables import write_table

with stage(snakemake.log[0]):
    tables = {name: snakemake.input[name] for name in ("problems", "details")}
    for sql, page in zip(snakemake.input.sql, snakemake.output.pages, strict=True):
        write_table(Path(sql), tables, Path(page))
