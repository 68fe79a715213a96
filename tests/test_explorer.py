"""The explorer in a real browser, and what is packed into it."""

import re
from pathlib import Path
from typing import Any

import pytest

from atenbench.explorer.page import write_explorer
from atenbench.explorer.rows import laid_out_and_code
from browser import Page, needs_browser, opened
from curated import SQL
from looked_at import EMBEDDING_ARGS, MM_ARGS, small_set


def written(folder: Path, **how: Any) -> Path:
    tables = small_set(folder, **how)
    page = folder / "explorer.html"
    sql = str(SQL / "explorer.sql")
    write_explorer(tables["problems"], tables["details"], sql, page, {"threshold": 1.3})
    return page


@pytest.fixture(scope="module")
def explorer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("set"))


def ready(page: Page, file: Path) -> None:
    page.open(file)
    page.page.wait_for_selector("html[data-ready=yes]")


def operators(page: Page) -> list[str]:
    return page.texts("#problems tbody td:first-child a")


def order_by(page: Page, column: str, direction: str) -> None:
    page.page.click(f"th:has-text('{column}')")
    page.page.wait_for_selector(f"th[aria-sort={direction}]:has-text('{column}')")


def test_equal_tables_give_equal_pages_with_nothing_from_elsewhere(
    explorer: Path, tmp_path: Path
) -> None:
    text = explorer.read_text()
    assert written(tmp_path).read_text() == text
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", text)
    assert "onerror" not in text


@needs_browser
def test_search_filters_and_order(explorer: Path) -> None:
    with opened() as page:
        ready(page, explorer)
        ask = page.page
        most_called = ["aten.gelu.default", "aten.mm.default", "aten.relu.default"]
        assert operators(page)[:3] == most_called
        ask.locator("#search").press_sequentially("GELU f16")
        assert operators(page) == ["aten.gelu.default"]
        assert page.texts("#found")[0].startswith("1 of 7 problems · 40 calls")
        ask.fill("#search", "nothing like it")
        assert page.texts("#problems tbody td") == ["No problem."]
        ask.click("button[type=reset]")
        ask.wait_for_selector("#problems tbody tr:nth-child(7)")
        assert len(operators(page)) == 7
        order_by(page, "Runtime", "descending")
        assert operators(page)[0] == "aten.mm.default"
        order_by(page, "Runtime", "ascending")
        assert operators(page)[-1] == "aten.mm.default"
        order_by(page, "Calls", "descending")
        assert operators(page)[0] == "aten.gelu.default"
        order_by(page, "Calls", "ascending")
        assert operators(page)[0] == "aten.add.Tensor"
    assert page.faults == []


CHOICES = [
    ("included", "out", {"aten.add.Tensor", "aten.cat.default", "aten.embedding.default"}),
    ("suite", "HuggingFace", {"aten.mm.default", "aten.relu.default"}),
    ("model", "HuggingFace/a", {"aten.mm.default", "aten.relu.default"}),
    ("overhead", "yes", {"aten.relu.default"}),
    ("overhead", "unmeasured", {"aten.embedding.default"}),
    ("dtype", "f32", {"aten.relu.default"}),
    (
        "reason",
        "Synthetic ops are not supported in the official benchmark yet",
        {"aten.add.Tensor"},
    ),
]


@needs_browser
def test_each_filter(explorer: Path) -> None:
    with opened() as page:
        ready(page, explorer)
        for select, choice, expected in CHOICES:
            page.page.select_option(f"#{select}", choice)
            assert set(operators(page)) == expected
            label = page.page.locator(f"#{select} option:checked").inner_text()
            assert label.endswith(f"({len(expected)})")
            page.page.select_option(f"#{select}", "")
        page.page.select_option("#suite", "HuggingFace")
        page.page.select_option("#overhead", "yes")
        assert operators(page) == ["aten.relu.default"]
    assert page.faults == []


@needs_browser
def test_a_problems_page(explorer: Path) -> None:
    with opened() as page:
        ready(page, explorer)
        page.page.click("text=aten.mm.default")
        page.page.wait_for_selector("#problem h2")
        assert not page.page.is_visible("#list")
        arguments = page.texts("#problem table >> nth=0 >> td")
        assert arguments[:8] == [
            *("self", "f16", "8 × 16", "256 bytes"),
            *("mat2", "f16", "16 × 4", "strides 1, 16; 128 bytes"),
        ]
        shown = dict(zip(page.texts("#problem dt"), page.texts("#problem dd"), strict=True))
        assert shown["Runtime"] == "5 ms"
        assert shown["Its interval (94 %)"] == "4.9 ms to 5.1 ms"
        assert shown["Their interval (94 %)"] == "490 to 510"
        assert shown["Samples, visits"] == "30, 2"
        models = page.texts("#problem table >> nth=1 >> td")
        assert {models[0], models[3]} == {"HuggingFace/a", "TIMM/b"}
        assert page.texts("#code")[0].startswith("import torch\n\ntorch.ops.aten.mm.default(")
        page.page.go_back()
        page.page.wait_for_selector("#list", state="visible")
        page.page.click("text=aten.embedding.default")
        assert "predicted to take 3 s" in page.texts("#problem dl")[0]
        page.page.click("#back")
        assert len(operators(page)) == 7
    assert page.faults == []


@needs_browser
def test_text_from_traces_is_shown_and_never_run(explorer: Path) -> None:
    with opened() as page:
        ready(page, explorer)
        assert any("<img src=x" in text for text in page.texts("#problems code"))
        page.page.click("text=aten.view.default")
        page.page.wait_for_selector("#problem h2")
        assert any("<img src=x" in text for text in page.texts("#problem td"))
        assert page.page.evaluate("window.hacked") is None
        assert page.page.locator("img").count() == 0
    assert page.faults == []


@needs_browser
def test_without_measurements(tmp_path: Path) -> None:
    with opened() as page:
        ready(page, written(tmp_path, measured=False))
        assert "none measured" in page.texts("#about")[0]
        assert len(operators(page)) == 7
        page.page.click("text=aten.mm.default")
        assert page.texts("#problem dd")[0] == "off"
    assert page.faults == []


def test_arguments_are_laid_out() -> None:
    lines, code = laid_out_and_code("aten.embedding.default", EMBEDDING_ARGS, "cpu")
    assert lines == [
        ["weight", "f32", "10 × 4", "160 bytes"],
        ["indices", "i64", "2 × 3", "48 bytes"],
    ]
    assert code is not None and "randint(0, 10, (2, 3)" in code
    lines, _ = laid_out_and_code("aten.cat.default", "(([T([2], f16), T([], f16)], 0), {})", "cpu")
    assert lines == [
        ["tensors[0]", "f16", "2", "4 bytes"],
        ["tensors[1]", "f16", "scalar", "2 bytes"],
        ["dim", "", "0", ""],
    ]


def test_an_operator_that_this_torch_lacks_has_arguments_and_no_code() -> None:
    lines, code = laid_out_and_code("aten.nosuch.default", MM_ARGS, "cpu")
    assert lines is not None and [line[0] for line in lines] == ["#1", "#2"]
    assert code is None
