rule changes:
    input:
        previous=lambda wildcards: previous_release(),
        problems="results/backend_bench_problems.parquet",
        details="results/problem_details.parquet",
        renames=resolve(config["renames"]),
        sql=repository("workflow/sql/changes.sql"),
        code=library("atenbench.changes_report"),
    output:
        changes="results/changes.parquet",
        report="results/changes.md",
    log:
        "logs/changes.log",
    conda:
        "../../environment.yml"
    params:
        previous=config["previous_release"],
    message:
        "Comparing with {params.previous}"
    script:
        "../scripts/changes.py"
