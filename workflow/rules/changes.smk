from atenbench.sources import release_files


def previous_release() -> list[str]:
    """The files of the earlier release that is named; the first holds its problems."""
    named = config["previous_release"]
    with user_errors("configuration: previous_release: "):
        if named is None:
            raise UserError(
                "name an earlier release to compare with: its folder, or its file of problems"
            )
        if told_apart([named]).remote:
            return [f"results/downloads/{local_name(named)}"]
        return [str(file) for file in release_files(Path(resolve(named)))]


rule changes:
    input:
        previous=lambda wildcards: previous_release(),
        problems="results/backend_bench_problems.parquet",
        details="results/problem_details.parquet",
        renames=resolve(config["renames"]),
        sql=repository("workflow/sql/changes.sql"),
        code=library("atenbench.changes_report"),
    output:
        changes="results/changes.parquet",
        report="results/changes.md",
    log:
        "logs/changes.log",
    conda:
        "../../environment.yml"
    params:
        previous=config["previous_release"],
    message:
        "Comparing with {params.previous}"
    script:
        "../scripts/changes.py"
