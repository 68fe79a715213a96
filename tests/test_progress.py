"""Progress: a line now and then where there is no terminal, and what it says."""

from __future__ import annotations

import logging

import pytest

from atenbench import progress
from atenbench.progress import Progress


def test_the_line_tells_rate_and_time_left() -> None:
    with Progress(1000, "pass 1") as counter:
        for _ in range(250):
            counter.step()
        assert counter.line(50.0) == "pass 1: 250 of 1,000, 5.0/s, 150 s left"


def test_lines_come_now_and_then(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: False, raising=False)
    with caplog.at_level(logging.INFO), Progress(100, "pass 1") as counter:
        for _ in range(100):
            now += 1.0
            counter.step()
    assert [record.getMessage().split(",")[0] for record in caplog.records] == [
        "pass 1: 31 of 100",
        "pass 1: 62 of 100",
        "pass 1: 93 of 100",
    ]


def test_a_terminal_gets_a_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    with Progress(3, "pass 1") as counter:
        for _ in range(3):
            counter.step()
    assert "pass 1: 100%" in capsys.readouterr().err
