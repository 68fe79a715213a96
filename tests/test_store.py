"""The journal: nothing recorded is lost, nothing torn is read, failures hold under their limits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from atenbench.store import Store, holding_one, problem_key

CONDITIONS = {"device": "cpu A", "torch": "2.13.0", "seed": 0, "method": 1}
VISIT = {"status": "ok", "pairs": [[1.0, 0.5]], "block": 1}


def test_what_is_written_is_read_back_by_another_process(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.writing({"device": "cpu A"}) as journal:
        journal.record("one", VISIT)
        journal.record("one", VISIT)
        journal.record("two", {"status": "unsupported", "reason": "no kernel"})
        journal.close("one", 2)
    for found in (store, Store(tmp_path)):
        assert [visit["pairs"] for visit in found.entry("one").visits] == [[[1.0, 0.5]]] * 2
        assert found.entry("one").closed == 2
        assert found.entry("two").failure is not None
        assert found.entry("three").visits == [] and found.entry("three").failure is None
        assert [run["device"] for run in found.runs.values()] == ["cpu A"]
        assert found.entry("one").visits[0]["run"] in found.runs


def test_a_torn_last_line_is_not_read(tmp_path: Path) -> None:
    with Store(tmp_path).writing({}) as journal:
        journal.record("one", VISIT)
        journal.record("two", VISIT)
    (path,) = tmp_path.glob("*.jsonl")
    whole = path.read_bytes()
    for cut in range(1, len(whole.splitlines()[-1]) + 1):
        path.write_bytes(whole[:-cut])
        store = Store(tmp_path)
        assert len(store.entry("one").visits) == 1 and not store.entry("two").visits
    # The next writer has a file of its own, so the torn line stays the last of its file.
    with store.writing({}) as journal:
        journal.record("two", VISIT)
    assert len(Store(tmp_path).entry("two").visits) == 1


def test_a_damaged_line_is_left_out_with_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.jsonl").write_text('{"key": "x", broken\n{"key": "one", "closed": 3}\n')
    assert Store(tmp_path).entry("one").closed == 3
    assert "a.jsonl:1" in caplog.text


def test_a_failure_counts_only_under_the_limit_it_was_due_to(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.writing({}) as journal:
        journal.record("slow", {"status": "skipped", "limit": {"budget_s": 600}})
        journal.record("bad", {"status": "crashed"})
    limits = {"budget_s": 600, "time_limit_s": 20}
    assert store.entry("slow").failure_under(limits)
    assert store.entry("slow").failure_under({**limits, "budget_s": 1200}) is None
    assert store.entry("slow").failure_under({**limits, "time_limit_s": 1})
    assert store.entry("bad").failure_under({"budget_s": None})


def test_samples_outlive_a_failure_before_them_and_not_one_behind(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.writing({}) as journal:
        journal.record("one", {"status": "skipped", "limit": {"budget_s": 600}})
        journal.record("one", VISIT)
        assert store.entry("one").failure is None
        journal.record("one", {"status": "timeout"})
    entry = Store(tmp_path).entry("one")
    assert len(entry.visits) == 1 and entry.failure is not None


def test_the_key_holds_all_that_a_runtime_depends_on() -> None:
    keys = {problem_key("aten.add.Tensor", "((), {})", CONDITIONS)}
    for name in CONDITIONS:
        keys.add(problem_key("aten.add.Tensor", "((), {})", {**CONDITIONS, name: "other"}))
    keys.add(problem_key("aten.mul.Tensor", "((), {})", CONDITIONS))
    keys.add(problem_key("aten.add.Tensor", "((1,), {})", CONDITIONS))
    assert len(keys) == len(CONDITIONS) + 3
    backwards = dict(reversed(CONDITIONS.items()))
    assert problem_key("aten.add.Tensor", "((), {})", backwards) in keys


def test_small_documents_are_kept_whole(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.kept("cap") is None
    store.keep("cap", {"cap_s": 0.3})
    assert store.kept("cap") == {"cap_s": 0.3}
    (tmp_path / "cap.json").write_text("{")
    assert store.kept("cap") is None


WRITER = """
import sys; sys.path.insert(0, sys.argv[1])
from pathlib import Path
from atenbench.store import Store, holding_one
folder = Path(sys.argv[2])
with holding_one(folder, ["cpu"]), Store(folder).writing({}) as journal:
    number = 0
    while True:
        journal.record(f"{number}", {"status": "ok", "pairs": [[1.0, 0.5]] * 40})
        number += 1
        print(number, flush=True)
"""


def test_kill_9_loses_nothing_that_was_recorded_and_frees_the_lock(tmp_path: Path) -> None:
    source = str(Path(__file__).parents[1] / "src")
    command = [sys.executable, "-c", WRITER, source, str(tmp_path)]
    for round_number in range(3):
        writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        recorded = 0
        for line in writer.stdout:
            recorded = int(line)
            if recorded >= 20 * (round_number + 1):
                break
        os.kill(writer.pid, signal.SIGKILL)
        recorded = int((writer.stdout.read().splitlines() or [recorded])[-1])
        writer.wait()
        with holding_one(tmp_path, ["cpu"]):
            store = Store(tmp_path)
        assert all(len(store.entry(str(number)).visits) >= 1 for number in range(recorded))


def test_a_lock_is_waited_for_and_another_one_is_taken_if_free(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = str(Path(__file__).parents[1] / "src")
    command = [sys.executable, "-c", WRITER, source, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        with holding_one(tmp_path, ["cpu", "cuda-1"]) as held:
            assert held == "cuda-1"
        threading.Timer(0.3, writer.kill).start()
        with holding_one(tmp_path, ["cpu"]) as held:
            assert held == "cpu"
        assert f"process {writer.pid}" in caplog.text
