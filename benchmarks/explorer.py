"""How fast the explorer answers a keystroke: 18,000 problems, headless Chromium, real key events.

    PYTHONPATH=src:tests .venv/bin/python benchmarks/explorer.py [results]

The problems of a results folder are repeated, each time under another uuid, until there are enough.
A keystroke's time runs from the key event to the first frame after the table was drawn anew.
"""

import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import sync_playwright

from atenbench import query
from atenbench.explorer.page import page
from atenbench.explorer.rows import packed
from browser import chromium

PROBLEMS = 18_000
SQL = Path(__file__).parents[1] / "workflow/sql/explorer.sql"
TYPED = ("gelu f16", "add", "convolution [128,", "zzz", "mm stride=", "f32")

WATCH = """() => {
  window.taken = [];
  document.getElementById("search").addEventListener("keydown", () => {
    const start = performance.now();
    requestAnimationFrame(() => setTimeout(() => window.taken.push(performance.now() - start)));
  });
}"""


def rows(results: Path) -> list[dict[str, Any]]:
    """The explorer's rows of a run, repeated."""
    tables = {
        "problems": str(results / "backend_bench_problems.parquet"),
        "details": str(results / "problem_details.parquet"),
    }
    found = query.fetch(SQL, tables).to_pylist()
    turns = range(-(-PROBLEMS // len(found)))
    repeated = [{**row, "uuid": f"{turn:04x}{row['uuid'][4:]}"} for turn in turns for row in found]
    return repeated[:PROBLEMS]


def main() -> None:
    """Build the page, type, and print what each keystroke took."""
    results = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
    started = time.perf_counter()
    about = {"threshold": 1.3, "device": "cpu", "torch": ""}
    text = page(packed(rows(results), "cpu") | {"about": about})
    print(f"page of {PROBLEMS:,} problems: {len(text) / 1e6:.1f} MB, built in "
          f"{time.perf_counter() - started:.1f} s")  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "explorer.html"
        file.write_text(text, encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1400, "height": 900})
        started = time.perf_counter()
        tab.goto(file.as_uri())
        tab.wait_for_selector("html[data-ready=yes]")
        print(f"opened in {time.perf_counter() - started:.1f} s")
        tab.evaluate(WATCH)
        for words in TYPED:
            tab.locator("#search").press_sequentially(words, delay=50)
            for _ in words:
                tab.locator("#search").press("Backspace", delay=20)
        tab.wait_for_timeout(500)
        taken = sorted(tab.evaluate("window.taken"))
        browser.close()
    print(
        f"{len(taken)} keystrokes: median {median(taken):.0f} ms, "
        f"95 % under {taken[int(len(taken) * 0.95)]:.0f} ms, slowest {taken[-1]:.0f} ms"
    )


if __name__ == "__main__":
    main()
