rule aggregate:
    input:
        calls=calls_tables(),
        sql=repository("workflow/sql/cases.sql"),
        code=library("atenbench.aggregate"),
    output:
        cases="results/cases.parquet",
    log:
        "logs/aggregate.log",
    conda:
        "../../environment.yml"
    threads: all_cores
    message:
        "Merging the calls into problems"
    script:
        "../scripts/aggregate.py"
