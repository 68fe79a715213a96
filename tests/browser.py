"""A real browser for tests: Chromium without a window and without a network."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium() -> str | None:
    """The browser's program, None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


needs_browser = pytest.mark.skipif(
    chromium() is None,
    reason="needs Chromium (Debian: apt-get install chromium); nothing is installed by the tests",
)


class Page:
    """A file opened in the browser, and what went wrong in it."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.faults: list[str] = []
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", self._said)
        page.on("request", self._asked)

    def _said(self, message: Any) -> None:
        if message.type == "error":
            self.faults.append(message.text)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith(("file:", "data:", "blob:", "about:")):
            self.faults.append(f"asked the network for {request.url}")

    def open(self, file: Path) -> None:
        """Open a file from the disk."""
        self.page.goto(file.resolve().as_uri())

    def texts(self, selector: str) -> list[str]:
        """The texts of all that a selector finds."""
        return [str(text).strip() for text in self.page.locator(selector).all_text_contents()]


@contextmanager
def opened() -> Iterator[Page]:
    """A page of a browser of its own, which is offline."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Chromium's sandbox wants a user other than root; the pages are this project's own.
        browser = playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        try:
            context = browser.new_context(offline=True, viewport={"width": 1400, "height": 900})
            yield Page(context.new_page())
        finally:
            browser.close()
