"""The README and the pages it names: in step with the code, and no dead link."""

import re
from pathlib import Path

import pytest

from atenbench.problem import PROBLEM
from atenbench.record import field_table

REPOSITORY = Path(__file__).parent.parent
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *(f"docs/{path.name}" for path in (REPOSITORY / "docs").glob("*.md")),
]


def test_the_published_columns_are_documented_as_in_the_code() -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    between = readme.partition("<!-- fields -->\n")[2].partition("<!-- /fields -->")[0]
    assert between == field_table(PROBLEM)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_of_the_repository(page: str) -> None:
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
    folder = (REPOSITORY / page).parent
    assert [link for link in links if not (folder / link).exists()] == []
