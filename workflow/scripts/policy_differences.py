"""Our tags beside the reference's rules → results/policy_differences.md."""

from atenbench.logs import stage
from atenbench.policy_report import write_policy_report

with stage(snakemake.log[0]):
    write_policy_report(
        {name: snakemake.input[name] for name in ("cases", "inspected", "tags")},
        snakemake.input.exclusions,
        snakemake.input.schema,
        snakemake.input.sql,
        snakemake.output.report,
    )
