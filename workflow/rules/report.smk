# What is looked at: plots, tables and the explorer, from the published tables. `snakemake --report`
# gathers the plots and tables; the explorer is a page of its own.
report: "../report/workflow.rst"


# Category and title of each plot and each table in the report.
PLOTS = {
    "funnel": ("Curation", "From trace lines to the benchmark"),
    "operators": ("Curation", "Problems of each operator"),
    "overhead": ("Measurement", "Launch overhead and its threshold"),
    "rooflines": ("Measurement", "Runtimes against the device's roofs"),
    "time": ("Where the time goes", "By operator"),
    "models": ("Where the time goes", "By model and operator"),
    "worth": ("Where the time goes", "By problem"),
}
TABLES = {
    "reasons": ("Curation", "Why problems are left out"),
    "operators": ("Curation", "All operators"),
    "models": ("Curation", "All models"),
    "outcomes": ("Measurement", "How measuring ended"),
    "worth": ("Where the time goes", "The most costly problems"),
}


rule plots:
    input:
        problems="results/backend_bench_problems.parquet",
        details="results/problem_details.parquet",
        calls=calls_tables(),
        rejects="results/rejects.parquet",
        roofline="results/roofline.json",
        sql=sql_files("plots"),
        page=repository("src/atenbench/plots/page.html"),
        code=library("atenbench.plots.draw"),
    output:
        pages=[labelled("plot", name, *about) for name, about in PLOTS.items()],
        pictures=[
            f"results/plots/{name}.{kind}" for name in PLOTS for kind in ("svg", "png")
        ],
    log:
        "logs/plots.log",
    conda:
        "../../environment.yml"
    params:
        overhead_threshold=config["overhead_threshold"],
    message:
        "Drawing the plots"
    script:
        "../scripts/plots.py"


rule tables:
    input:
        problems="results/backend_bench_problems.parquet",
        details="results/problem_details.parquet",
        sql=[repository(f"workflow/sql/tables/{name}.sql") for name in TABLES],
        page=repository("src/atenbench/report_tables.html"),
        code=library("atenbench.report_tables"),
    output:
        pages=[labelled("table", name, *about) for name, about in TABLES.items()],
    log:
        "logs/tables.log",
    conda:
        "../../environment.yml"
    message:
        "Writing the report's tables"
    script:
        "../scripts/tables.py"


rule explorer:
    input:
        problems="results/backend_bench_problems.parquet",
        details="results/problem_details.parquet",
        sql=repository("workflow/sql/explorer.sql"),
        parts=[
            repository(f"src/atenbench/explorer/explorer.{kind}")
            for kind in ("html", "css", "js")
        ],
        code=library("atenbench.explorer.page"),
    output:
        page="results/explorer.html",
    log:
        "logs/explorer.log",
    conda:
        "../../environment.yml"
    params:
        overhead_threshold=config["overhead_threshold"],
    message:
        "Writing the explorer"
    script:
        "../scripts/explorer.py"


rule dataset_card:
    input:
        problems="results/backend_bench_problems.parquet",
        calls=calls_tables(),
        rejects="results/rejects.parquet",
        changes=["results/changes.parquet"] if config["previous_release"] else [],
        sql=repository("workflow/sql/summary.sql"),
        template=repository("src/atenbench/dataset_card.md"),
        code=library("atenbench.dataset_card"),
    output:
        card="results/dataset_card.md",
    log:
        "logs/dataset_card.log",
    conda:
        "../../environment.yml"
    params:
        overhead_threshold=config["overhead_threshold"],
        previous=config["previous_release"],
    message:
        "Writing the data set's card"
    script:
        "../scripts/dataset_card.py"
