"""What an earlier ingest has read is not parsed again, and does not show in the tables."""

import logging
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from atenbench.earlier import Keeping
from atenbench.errors import UserError
from atenbench.ingest import ingest
from atenbench.kept import key_of
from atenbench.trace import find_traces

LINES = [f"cnt: {number + 1}, ((T([{number + 2},3],f16),), {{}})\n" for number in range(40)]


def trace(*numbers: int, operator: str = "aten.relu.default") -> str:
    return f"Operator: {operator}\n" + "".join(LINES[number] for number in numbers)


class Project:
    """A folder of traces, ingested again and again with one folder of what is kept."""

    def __init__(self, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
        self.folder, self._caplog = folder, caplog
        for name in "abcdef":
            self.write(f"{name}.txt", trace(*range(ord(name) % 5, 20)))

    def write(self, name: str, text: str) -> None:
        path = self.folder / "traces/mine" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def ingest(self, kept: str = "kept", **settings: str) -> int:
        """How many files were parsed."""
        keeping = Keeping(self.folder / kept, key_of([__file__], settings))
        self._caplog.clear()
        with self._caplog.at_level(logging.INFO, "atenbench"):
            traces = find_traces([self.folder / "traces"])
            on_bad_line = settings.get("on_bad_line", "reject")
            ingest(traces, {}, {}, on_bad_line, *self.tables(), keeping=keeping)
        (said,) = re.findall(r"files, (\d+) of them", self._caplog.text)
        return int(said)

    def tables(self) -> tuple[Path, Path]:
        return self.folder / "calls.parquet", self.folder / "rejects.parquet"

    def bytes(self) -> list[bytes]:
        return [path.read_bytes() for path in self.tables()]


@pytest.fixture
def project(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> Project:
    # Several row groups, cut within files.
    monkeypatch.setattr("atenbench.call_table.ROWS_PER_GROUP", 7)
    project = Project(tmp_path, caplog)
    assert project.ingest() == 6
    return project


def test_nothing_is_parsed_twice(project: Project) -> None:
    before = project.bytes()
    assert project.ingest() == 0
    assert project.bytes() == before


CHANGES: dict[str, tuple[Callable[[Project], object], int]] = {
    "an edited trace": (lambda p: p.write("c.txt", trace(30, 31)), 1),
    "a new first one": (lambda p: p.write("A.txt", trace(1, 1, 1, operator="aten.abs.default")), 1),
    "a new one between": (lambda p: p.write("cc.txt", trace(*range(33))), 1),
    "a removed one": (lambda p: (p.folder / "traces/mine/d.txt").unlink(), 0),
    "bad lines": (lambda p: p.write("b.txt", trace(1, 2) + "cnt: x\nwhat?\n"), 1),
    "another place": (
        lambda p: (p.folder / "traces/mine/a.txt").rename(p.folder / "traces/mine/e1.txt"),
        1,
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_parses_what_changed_and_the_bytes_are_those_of_a_fresh_run(
    project: Project, name: str
) -> None:
    change, parsed = CHANGES[name]
    change(project)
    assert project.ingest() == parsed
    after = project.bytes()
    assert project.ingest() == 0 and project.bytes() == after
    assert project.ingest(kept="fresh") > 3
    assert project.bytes() == after


def test_other_code_or_settings_parse_all(project: Project) -> None:
    assert project.ingest(suites="other") == 6


def test_bad_lines_that_stop_the_run_are_listed_again_without_parsing(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    project.write("b.txt", trace(1, 2) + "what?\n")
    for _ in range(2):
        with pytest.raises(UserError, match="1 bad line,"):
            project.ingest(on_bad_line="error")
        assert f"{project.folder}/traces/mine/b.txt:4: neither" in caplog.text
    project.write("b.txt", trace(1, 2))
    assert project.ingest(on_bad_line="error") == 1


@pytest.mark.parametrize("name", ["calls", "rejects", "files"])
@pytest.mark.parametrize("fault", ["cut", "gone", "of another run"])
def test_what_is_not_whole_is_not_used(project: Project, name: str, fault: str) -> None:
    path = project.folder / "kept" / f"{name}.parquet"
    before = project.bytes()
    if fault == "of another run":
        project.write("z.txt", trace(3))
        project.ingest(kept="other")
        (project.folder / "traces/mine/z.txt").unlink()
        path.unlink()
        (project.folder / "other" / path.name).rename(path)
    elif fault == "cut":
        content = path.read_bytes()
        path.unlink()  # it may be a link to a table
        path.write_bytes(content[:-9])
    else:
        path.unlink()
    assert project.ingest() == 6
    assert project.bytes() == before


def test_long_traces_come_back_in_order(project: Project) -> None:
    project.write("long.txt", trace(*range(40)) * 9)
    project.ingest()
    project.write("b.txt", trace(5))
    project.ingest()
    rows = pq.read_table(project.tables()[0]).to_pylist()
    lines = [(row["file"], row["line"]) for row in rows]
    assert lines == sorted(lines) and len([row for row in rows if row["model"] == "long"]) == 360
