"""The plots: what they say is so, they open offline, and text from traces stays text."""

import json
from pathlib import Path
from typing import Any

import pytest

from atenbench.plots import draw, style
from atenbench.roofline import NOTHING
from browser import needs_browser, opened
from curated import SQL
from looked_at import small_set

ROOFS = {
    "device": "cpu of some kind",
    "bytes_per_s": 1e9,
    "flops_per_s": {"f32": 1e10, "f16": 1e9, "bf16": 2e10},
}
NAMES = {"funnel", "overhead", "operators", "rooflines", "models", "time", "worth"}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    tables = small_set(tmp_path_factory.mktemp("set"))
    return draw.charts(tables, SQL / "plots", ROOFS, 1.3)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("set")
    tables = small_set(folder)
    (folder / "roofline.json").write_text(json.dumps(ROOFS))
    draw.draw_all(tables, SQL / "plots", folder / "roofline.json", 1.3, folder / "plots")
    return folder / "plots"


def rows_of(spec: dict[str, Any], layer: dict[str, Any]) -> list[dict[str, Any]]:
    """The data of a layer; Altair keeps it at the top, under a name."""
    found: list[dict[str, Any]] = spec["datasets"][layer["data"]["name"]]
    return found


def title(chart: Any) -> str:
    return " ".join(style.styled(chart)["title"]["text"])


def subtitle(chart: Any) -> str:
    return " ".join(style.styled(chart)["title"]["subtitle"])


def test_the_titles_say_what_is_so(drawn: dict[str, Any]) -> None:
    assert drawn.keys() == NAMES
    assert "7 trace lines are 7 different problems; 4 of them (57 %)" in title(drawn["funnel"])
    assert "Of 6 measured problems, 1 (17 %) cost less than 1.3" in title(drawn["overhead"])
    assert title(drawn["operators"]).endswith("make 43 % of 7 problems")
    # 50, 40, 0.14, 0.09 and 0.004 ms; the synthetic problem is called by nobody.
    assert "made by 1 of 5 problems, 80 % by 2, 95 % by 2" in title(drawn["worth"])
    assert "mm.default, gelu.default, cat.default take 100 %" in title(drawn["time"])
    assert "largest single part is view.default in TIMM/<img src=x" in title(drawn["models"])
    assert "0 of 1, 0 of 2, 0 of 2" in subtitle(drawn["worth"])


def test_the_roofs_are_those_that_were_measured(drawn: dict[str, Any]) -> None:
    spec = style.styled(drawn["rooflines"])
    text = json.dumps(spec)
    assert "1.0 GB/s" in text and "f16: 1.0 GFLOP/s" in text and "cpu of some kind" in text
    ends = [
        row
        for panel in spec["hconcat"]
        for layer in panel["layer"]
        if "data" in layer
        for row in rows_of(spec, layer)
        if row.get("roof") == "1.0 GB/s"
    ]
    assert len(ends) == 2
    assert all(row["ms"] == pytest.approx(row["amount"] / 1e9 * 1e3) for row in ends)


def test_another_threshold_is_marked_where_it_is(tmp_path: Path) -> None:
    tables = small_set(tmp_path)
    chart = draw.charts(tables, SQL / "plots", ROOFS, 150.0)["overhead"]
    assert "5 (83 %) cost less than 150 launches" in title(chart)


def test_bins_have_an_edge_at_the_threshold(drawn: dict[str, Any]) -> None:
    spec = style.styled(drawn["overhead"])
    bars = rows_of(spec, spec["vconcat"][0]["layer"][0])
    assert sum(bar["problems"] for bar in bars) == 6
    below = [bar for bar in bars if bar["is"] == "launch overhead"]
    assert [bar["problems"] for bar in below] == [1]
    assert all(bar["high"] <= 1.3 * (1 + 1e-12) for bar in below)


def test_without_measurements_each_plot_says_so(tmp_path: Path) -> None:
    charts = draw.charts(small_set(tmp_path, measured=False), SQL / "plots", NOTHING, 1.3)
    for name in ("overhead", "rooflines", "models", "time", "worth"):
        spec = style.styled(charts[name])
        assert spec["title"]["text"] == ["Nothing to show yet"], name
        assert rows_of(spec, spec) == [{"text": style.NOT_MEASURED}], name
    assert "7 different problems" in title(charts["funnel"])


def test_pictures_are_whole(written: Path) -> None:
    kinds = {(file.stem, file.suffix) for file in written.iterdir()}
    assert kinds == {(name, kind) for name in NAMES for kind in (".html", ".svg", ".png")}
    for name in NAMES:
        assert (written / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (written / f"{name}.svg").read_text().startswith("<svg")


def test_equal_tables_give_equal_pictures(written: Path, drawn: dict[str, Any]) -> None:
    for name, chart in drawn.items():
        spec = style.styled(chart)
        assert draw.picture(spec) == (written / f"{name}.svg").read_text()
        assert draw.page(spec, name) == (written / f"{name}.html").read_text()


def test_no_text_of_a_trace_ends_a_script(written: Path) -> None:
    page = (written / "models.html").read_text()
    assert "<img src=x" not in page and "\\u003cimg src=x" in page
    assert "<img" not in (written / "models.svg").read_text()


@needs_browser
def test_every_page_opens_offline_and_runs_nothing_of_a_trace(written: Path) -> None:
    with opened() as page:
        for name in sorted(NAMES):
            page.open(written / f"{name}.html")
            page.page.wait_for_selector("svg.marks")
            assert page.page.evaluate("window.hacked") is None, name
        page.open(written / "models.html")
        page.page.wait_for_selector("svg.marks")
        assert any("<img src=x" in text for text in page.texts("svg text"))
        page.page.hover("svg .mark-rect path >> nth=0")
        page.page.wait_for_selector("#vg-tooltip-element.visible")
        assert page.page.evaluate("window.hacked") is None
    assert page.faults == []
