# Model -> trace, in the tracing environment. Nothing here runs unless a trace is asked for by name:
#   snakemake --cores 2 resources/traces/timm/resnet18.txt    one, if it is missing or changed
#   snakemake --cores 2 --keep-going traces                   all that are


# The staged ones too: in a fresh clone Snakemake cannot tell which entry made a trace.
rule traces:
    input:
        lambda wildcards: [f"{TRACES}/{file}" for file in sorted(stale_traces())],
        lambda wildcards: [f"{STAGED}/{file}" for file in sorted(stale_traces())],


rule trace:
    input:
        models=ancient(resolve(config["models"])),
    output:
        trace=temp("results/tracing/{file}.txt"),
        record=temp("results/tracing/{file}.json"),
    log:
        "logs/trace/{file}.log",
    conda:
        "../envs/trace.yaml"
    params:
        python=trace_python,
        source=repository("src"),
    message:
        "Tracing {wildcards.file}"
    shell:
        "command -v {params.python:q} > /dev/null || {{ echo 'No tracing environment at"
        " {params.python} (configuration: trace_python); make trace-env sets it up' >&2; exit 1; }};"
        ' PYTHONPATH={params.source:q}:"$PWD" {params.python:q} -m atenbench.tracing'
        " {input.models:q} {wildcards.file:q}.txt {output.trace:q} --log {log:q}"


# A rule of its own, because Snakemake removes a job's outputs before it starts: this way an old
# trace goes only when a new one is there.
rule keep_trace:
    input:
        trace=staged(".txt"),
        record=staged(".json"),
        models=models_file,
    output:
        "resources/traces/{file}.txt",
    log:
        "logs/keep_trace/{file}.log",
    wildcard_constraints:
        file=r"[A-Za-z0-9_-]+/[A-Za-z0-9_.-]+",
    conda:
        "../../environment.yml"
    params:
        traces=lambda wildcards, output: str(Path(output[0]).parents[1]),
    message:
        "Keeping the trace of {wildcards.file}"
    script:
        "../scripts/keep_trace.py"
