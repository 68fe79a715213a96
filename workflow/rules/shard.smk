SHARDS = [f"{shard}-of-{config['shards']}" for shard in range(1, config["shards"] + 1)]


def measurement_tables() -> list[str]:
    """What measuring gives, one table for each shard."""
    return [f"results/measurements/{shard}.parquet" for shard in SHARDS]


rule shard:
    input:
        inspected="results/inspected.parquet",
        code=library("atenbench.shard"),
    output:
        shards=[f"results/shards/{shard}.parquet" for shard in SHARDS],
    log:
        "logs/shard.log",
    conda:
        "../../environment.yml"
    message:
        "Parting the problems into shards"
    script:
        "../scripts/shard.py"
