rule ingest:
    input:
        traces=lambda wildcards: [str(trace.path) for trace in traces()],
        published=lambda wildcards: published_files(),
        renames=resolve(config["renames"]),
        code=library("atenbench.ingest"),
    output:
        calls="results/calls.parquet",
        rejects="results/rejects.parquet",
    log:
        "logs/ingest.log",
    conda:
        "../../environment.yml"
    params:
        folders=trace_folders(),
        digest=lambda wildcards: traces_digest(),
        suites=config["suites"],
        on_bad_line=config["on_bad_line"],
    message:
        "Reading the traces"
    script:
        "../scripts/ingest.py"
