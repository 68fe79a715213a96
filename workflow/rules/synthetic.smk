rule synthetic:
    input:
        calls="results/calls.parquet",
        sql=repository("workflow/sql/real_calls.sql"),
        code=library("atenbench.synthetic") + library("atenbench.growth"),
    output:
        trace="results/synthetic/synthetic/scaled.txt",
        table="results/synthetic.parquet",
    log:
        "logs/synthetic.log",
    conda:
        "../../environment.yml"
    threads: all_cores
    params:
        largest=config["synthetic"],
        limit_gib=config["synthetic_memory_gib"],
    message:
        "Making the largest calls larger"
    script:
        "../scripts/synthetic.py"


rule ingest_synthetic:
    input:
        trace="results/synthetic/synthetic/scaled.txt",
        code=library("atenbench.ingest"),
    output:
        calls="results/synthetic_calls.parquet",
        rejects="results/synthetic_rejects.parquet",
    log:
        "logs/ingest_synthetic.log",
    conda:
        "../../environment.yml"
    message:
        "Reading the synthetic trace"
    script:
        "../scripts/ingest_synthetic.py"
