# What the data set holds, by the names that its files have there.
DATASET_FILES = {
    "README.md": "results/dataset_card.md",
    "images/funnel.svg": "results/plots/funnel.svg",
    "images/overhead.svg": "results/plots/overhead.svg",
    "images/worth.svg": "results/plots/worth.svg",
    "backend_bench_problems.parquet": "results/backend_bench_problems.parquet",
    "backend_bench_problems.json": "results/backend_bench_problems.json",
    "operator_input_models_mapping.parquet": "results/operator_input_models_mapping.parquet",
    "operator_input_models_mapping.json": "results/operator_input_models_mapping.json",
    "problem_details.parquet": "results/problem_details.parquet",
    "policy_differences.md": "results/policy_differences.md",
    "traces": "results/traces/models",
    "CHANGELOG.md": repository("CHANGELOG.md"),
}
if config["previous_release"]:
    DATASET_FILES["changes.md"] = "results/changes.md"


rule dataset:
    input:
        files=list(DATASET_FILES.values()),
        exclusions=resolve(config["exclusions"]),
        schema=repository("workflow/schemas/exclusions.schema.yaml"),
        code=library("atenbench.release"),
    output:
        manifest="results/dataset/manifest.json",
    log:
        "logs/dataset.log",
    conda:
        "../../environment.yml"
    params:
        names=list(DATASET_FILES),
        overhead_threshold=config["overhead_threshold"],
    message:
        "Putting the data set together"
    script:
        "../scripts/dataset.py"
