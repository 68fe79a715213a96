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
