rule worth:
    input:
        calls=calls_tables(),
        cases="results/cases.parquet",
        measurements=measurement_tables(),
        sql=repository("workflow/sql/worth.sql"),
        code=library("atenbench.worth"),
    output:
        worth="results/worth.parquet",
    log:
        "logs/worth.log",
    conda:
        "../../environment.yml"
    message:
        "Working out what each problem is worth"
    script:
        "../scripts/worth.py"
