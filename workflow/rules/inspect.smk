rule inspect:
    input:
        cases="results/cases.parquet",
        code=library("atenbench.inspect_cases"),
    output:
        inspected="results/inspected.parquet",
    log:
        "logs/inspect.log",
    conda:
        "../../environment.yml"
    threads: all_cores
    message:
        "Inspecting the problems without a device"
    script:
        "../scripts/inspect.py"
