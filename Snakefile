# Curates traces of PyTorch models into a benchmark of operator problems.
#
# The paths, all relative to the working directory:
#   resources/traces/{suite}/{model}[.{mode}].txt[.gz]    what goes in (config key `traces`)
#   results/{table}.parquet                               the tables between the rules
#   results/{rule}s/{shard}-of-{shards}.parquet           the tables that are split into shards
#   results/backend_bench_problems.{parquet,json}         what is published
#   results/traces/all.txt, models/{suite}/{model}.txt    problems as traces again
#   results/plots/{plot}.{html,svg,png}, tables/{table}.html, explorer.html    to look at
#   results/dataset/{file}                                the folder that is uploaded, with a manifest
#   results/downloads/{key}/{file}                        published files that went in, of a server
#   logs/{rule}[-{shard}-of-{shards}].log                 what each rule said
from snakemake.utils import min_version

min_version("9.0")


# The working directory's own configuration, or else the clone's.
CONFIGURATION = Path("config/config.yaml")
if not CONFIGURATION.exists():
    CONFIGURATION = Path(workflow.basedir) / CONFIGURATION


configfile: CONFIGURATION


include: "workflow/rules/common.smk"
include: "workflow/rules/fetch.smk"
include: "workflow/rules/ingest.smk"
include: "workflow/rules/synthetic.smk"
include: "workflow/rules/aggregate.smk"
include: "workflow/rules/mapping.smk"
include: "workflow/rules/inspect.smk"
include: "workflow/rules/shard.smk"
include: "workflow/rules/measure.smk"
include: "workflow/rules/roofline.smk"
include: "workflow/rules/tag.smk"
include: "workflow/rules/worth.smk"
include: "workflow/rules/export.smk"
include: "workflow/rules/policy_differences.smk"
include: "workflow/rules/retrace.smk"
include: "workflow/rules/changes.smk"
include: "workflow/rules/looking.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/dataset.smk"
include: "workflow/rules/trace_common.smk"
include: "workflow/rules/trace.smk"


# The tables alone, without anything to look at.
rule curate:
    input:
        "results/backend_bench_problems.parquet",
        "results/backend_bench_problems.json",
        "results/problem_details.parquet",
        "results/operator_input_models_mapping.parquet",
        "results/policy_differences.md",


rule all:
    default_target: True
    input:
        rules.curate.input,
        rules.plots.output,
        rules.tables.output,
        rules.explorer.output,
        rules.dataset.output,


onsuccess:
    tell_summary()
