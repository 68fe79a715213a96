rule policy_differences:
    input:
        cases="results/cases.parquet",
        inspected="results/inspected.parquet",
        tags="results/tags.parquet",
        exclusions=resolve(config["exclusions"]),
        schema=repository("workflow/schemas/exclusions.schema.yaml"),
        sql=repository("workflow/sql/policy_differences.sql"),
        code=library("atenbench.policy_report"),
    output:
        report="results/policy_differences.md",
    log:
        "logs/policy_differences.log",
    conda:
        "../../environment.yml"
    message:
        "Comparing the policy with the reference's"
    script:
        "../scripts/policy_differences.py"
