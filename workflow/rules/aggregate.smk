rule aggregate:
    input:
        calls=calls_tables(),
        cases_sql=repository("workflow/sql/cases.sql"),
        mapping_sql=repository("workflow/sql/mapping.sql"),
        code=library("atenbench.aggregate"),
    output:
        cases="results/cases.parquet",
        mapping="results/operator_input_models_mapping.parquet",
        mapping_json="results/operator_input_models_mapping.json",
    log:
        "logs/aggregate.log",
    conda:
        "../../environment.yml"
    threads: all_cores
    message:
        "Merging the calls into problems"
    script:
        "../scripts/aggregate.py"
