rule retrace:
    input:
        calls="results/calls.parquet",
        cases="results/cases.parquet",
        all_sql=repository("workflow/sql/all_trace_lines.sql"),
        models_sql=repository("workflow/sql/trace_lines.sql"),
        code=library("atenbench.trace_text"),
    output:
        all="results/traces/all.txt",
        models=directory("results/traces/models"),
    log:
        "logs/retrace.log",
    conda:
        "../../environment.yml"
    message:
        "Writing the problems as traces"
    script:
        "../scripts/retrace.py"
