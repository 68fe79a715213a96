rule fetch:
    output:
        file="results/downloads/{key}/{name}",
        source="results/downloads/{key}/{name}.source",
    log:
        "logs/fetch-{key}-{name}.log",
    wildcard_constraints:
        key="[0-9a-f]{16}",
        name=r"[^/]+\.(parquet|json)",
    conda:
        "../../environment.yml"
    params:
        url=lambda wildcards: remote_url(f"{wildcards.key}/{wildcards.name}"),
    message:
        "Fetching {params.url}"
    script:
        "../scripts/fetch.py"
