rule tag:
    input:
        cases="results/cases.parquet",
        inspected="results/inspected.parquet",
        measurements=measurement_tables(),
        exclusions=resolve(config["exclusions"]),
        schema=repository("workflow/schemas/exclusions.schema.yaml"),
        sql=repository("workflow/sql/tags.sql"),
        code=library("atenbench.tag"),
    output:
        tags="results/tags.parquet",
    log:
        "logs/tag.log",
    conda:
        "../../environment.yml"
    params:
        overhead_threshold=config["overhead_threshold"],
    message:
        "Deciding what is in the benchmark"
    script:
        "../scripts/tag.py"
