rule measure:
    input:
        shard="results/shards/{shard}.parquet",
        # A time budget is for the whole job, so each shard must know all problems.
        inspected="results/inspected.parquet",
        code=library("atenbench.measure"),
        input_rules=repository("src/atenbench/input_rules.toml"),
    output:
        measurements="results/measurements/{shard}.parquet",
    log:
        "logs/measure-{shard}.log",
    benchmark:
        "results/benchmarks/measure-{shard}.tsv"
    conda:
        "../../environment.yml"
    threads: cores_per_gpu
    resources:
        gpu=1,
    params:
        # No output: measurements must outlive a failed, a killed and a changed run.
        store="results/measurement_store",
        device=config["device"],
        passes=config["passes"],
        time_limit_s=config["time_limit_s"],
        memory_cap_gib=config["memory_cap_gib"],
        time_budget_minutes=config["time_budget_minutes"],
        cuda_time_budget_minutes=config["cuda_time_budget_minutes"],
        seed=config["seed"],
    message:
        "Measuring shard {wildcards.shard}"
    script:
        "../scripts/measure.py"
