rule export:
    input:
        cases="results/cases.parquet",
        inspected="results/inspected.parquet",
        tags="results/tags.parquet",
        worth="results/worth.parquet",
        measurements=measurement_tables(),
        exclusions=resolve(config["exclusions"]),
        problems_sql=repository("workflow/sql/problems.sql"),
        details_sql=repository("workflow/sql/problem_details.sql"),
        code=library("atenbench.export"),
    output:
        problems="results/backend_bench_problems.parquet",
        json="results/backend_bench_problems.json",
        details="results/problem_details.parquet",
    log:
        "logs/export.log",
    conda:
        "../../environment.yml"
    params:
        overhead_threshold=config["overhead_threshold"],
        traces_digest=lambda wildcards: traces_digest(),
    message:
        "Writing the benchmark"
    script:
        "../scripts/export.py"
