# What the rules of report.smk share, and what is said at the end of a run.


def sql_files(folder: str) -> list[str]:
    files = (CLONE / "workflow/sql" / folder).glob("*.sql")
    return sorted(repository(file.relative_to(CLONE)) for file in files)


def labelled(kind: str, name: str, category: str, title: str):
    return report(
        f"results/{kind}s/{name}.html",
        caption=f"../report/{kind}_{name}.rst",
        category=category,
        labels={"what": title, "kind": kind},
    )


def seconds_by_rule() -> dict[str, float]:
    """How long the jobs of each rule took when they last ran, by Snakemake's own records."""
    seconds: dict[str, float] = {}
    for job in workflow.dag.jobs:
        record = workflow.persistence.metadata(job.output[0]) if job.output else None
        if record is not None and record.endtime and record.starttime:
            spent = record.endtime - record.starttime
            seconds[job.rule.name] = round(seconds.get(job.rule.name, 0) + spent, 3)
    return dict(sorted(seconds.items()))


def tell_summary() -> None:
    """Write results/summary.json and print it, as far as there are tables to sum up."""
    from pyarrow.parquet import read_metadata

    from atenbench.summary import in_words, rejected_sentence, summarized, write_summary

    tables = {
        "problems": "results/backend_bench_problems.parquet",
        "calls": calls_tables(),
        "rejects": "results/rejects.parquet",
    }
    if all(Path(file).exists() for file in (tables["problems"], *tables["calls"])):
        summary = summarized(CLONE / "workflow/sql/summary.sql", tables)
        summary["seconds_by_rule"] = seconds_by_rule()
        write_summary(summary, Path("results/summary.json"))
        print(in_words(summary), file=sys.stderr)
    elif Path(tables["rejects"]).exists():
        rejected = read_metadata(tables["rejects"]).num_rows
        if rejected:
            print(rejected_sentence(rejected), file=sys.stderr)
