rule mapping:
    input:
        cases="results/cases.parquet",
        sql=repository("workflow/sql/mapping.sql"),
        code=library("atenbench.mapping"),
    output:
        parquet="results/operator_input_models_mapping.parquet",
        json="results/operator_input_models_mapping.json",
    log:
        "logs/mapping.log",
    conda:
        "../../environment.yml"
    threads: all_cores
    message:
        "Mapping operators to the models that call them"
    script:
        "../scripts/mapping.py"
