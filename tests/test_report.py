"""The whole of what is looked at, as a user makes it: `snakemake`, then `snakemake --report`."""

import json
from pathlib import Path

import pytest

from browser import needs_browser, opened
from test_workflow import Project, make_project

PLOTS = {"funnel", "overhead", "operators", "rooflines", "models", "time", "worth"}
TABLES = {"reasons", "operators", "models", "outcomes", "worth"}


@pytest.fixture(scope="module")
def looked_at(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = make_project(tmp_path_factory.mktemp("report"))
    said = project.must_run("--", "all")
    assert "6 problems of 5 operators, called by 2 models." in said
    return project


def test_the_main_job_makes_all_of_it(looked_at: Project) -> None:
    results = looked_at.folder / "results"
    for name in PLOTS:
        for kind in ("html", "svg", "png"):
            assert (results / f"plots/{name}.{kind}").stat().st_size > 0
    assert {page.stem for page in (results / "tables").glob("*.html")} == TABLES
    assert (results / "explorer.html").stat().st_size > 0
    summary = json.loads((results / "summary.json").read_text())
    assert (summary["pairs"], summary["lines"], summary["measured"]) == (6, 7, 5)
    assert {"ingest", "measure", "export", "plots"} <= summary["seconds_by_rule"].keys()
    assert all(seconds > 0 for seconds in summary["seconds_by_rule"].values())
    assert "Nothing to be done" in looked_at.must_run("--", "all")


@needs_browser
def test_the_report_opens_offline_and_shows_everything(looked_at: Project, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    looked_at.must_run("--report", str(report), "--", "all")
    shown = set()
    with opened() as page:
        for category in ("Curation", "Measurement", "Where the time goes"):
            page.open(report)
            page.page.click(f"text={category}")
            page.page.wait_for_selector("tbody tr")
            for place in range(page.page.locator("tbody tr").count()):
                row = page.page.locator("tbody tr").nth(place)
                kind = row.locator("td").nth(1).inner_text()
                row.locator("a[iconname=eye]").click()
                frame = page.page.frame_locator("iframe")
                frame.locator("svg.marks" if kind == "plot" else "tbody tr").first.wait_for()
                title = frame.locator("title").first.text_content() or ""
                shown.add((kind, title.removeprefix("atenbench: ")))
    assert shown == {("plot", name) for name in PLOTS} | {("table", name) for name in TABLES}
    assert page.faults == []
