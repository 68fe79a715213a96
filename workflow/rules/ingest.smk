from atenbench.trace import digest, find_traces


def traces_folders() -> list[Path]:
    folders = (
        config["traces"] if isinstance(config["traces"], list) else [config["traces"]]
    )
    return [Path(resolve(folder)) for folder in folders]


try:
    TRACES = find_traces(traces_folders())
    TRACES_DIGEST = digest(TRACES)
except UserError as error:
    sys.exit(f"configuration: traces: {error}")


rule ingest:
    input:
        traces=lambda wildcards: [str(trace.path) for trace in TRACES],
        renames=resolve(config["renames"]),
        code=library("atenbench.ingest"),
    output:
        calls="results/calls.parquet",
        rejects="results/rejects.parquet",
    log:
        "logs/ingest.log",
    params:
        folders=lambda wildcards: [str(folder) for folder in traces_folders()],
        digest=TRACES_DIGEST,
        suites=config["suites"],
        on_bad_line=config["on_bad_line"],
    message:
        "Reading the traces"
    script:
        "../scripts/ingest.py"
