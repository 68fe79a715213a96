"""Facts and tags → the published files and results/problem_details.parquet."""

from atenbench.export import export
from atenbench.logs import stage

with stage(snakemake.log[0]):
    export(
        {name: snakemake.input[name] for name in ("cases", "inspected", "tags", "worth")},
        snakemake.input.measurements,
        {"problems": snakemake.input.problems_sql, "details": snakemake.input.details_sql},
        {"exclusions": snakemake.input.exclusions},
        {key: str(snakemake.params[key]) for key in ("overhead_threshold", "traces_digest")},
        dict(snakemake.output.items()),
    )
