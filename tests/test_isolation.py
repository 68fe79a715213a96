"""Every way an item can end a worker, its neighbours, and the death of the parent."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from atenbench.isolation import Limits, Outcome, Status, Workers, WorkerStartError, run_isolated
from atenbench.worker import Last

MIB = 2**20
LIMITS = Limits(seconds=60)


def double(number: int) -> int:
    return 2 * number


def misbehave(how: str) -> str:
    match how:
        case "raise":
            raise ValueError("no such thing")
        case "segfault":
            ctypes.string_at(0)
        case "abort":
            os.write(2, b"terminate called\n")
            os.abort()
        case "exit":
            os._exit(3)
        case "hang":
            time.sleep(600)
        case "allocate":
            hoard = []
            while True:
                hoard.append(bytearray(16 * MIB))
        case "unpicklable":
            return lambda: None  # type: ignore[return-value]
    return how


class Counter:
    """Keeps state in the worker; asks for a fresh one at ``"last"``."""

    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, item: str) -> object:
        self.seen += 1
        return Last(self.seen) if item == "last" else self.seen


def kill_once(marker: str) -> str:
    """Dies as if killed by somebody, unless the marker file says it did so before."""
    path = Path(marker)
    if not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


def kill_always(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def setting(name: str) -> str | None:
    return os.environ.get(name)


def refuse() -> None:
    raise RuntimeError("initializer refuses")


def remember_pid(path: str) -> None:
    Path(path).write_text(str(os.getpid()))
    time.sleep(600)


def by_item(outcomes: list[Outcome[str, str]]) -> dict[str, Outcome[str, str]]:
    assert len({outcome.item for outcome in outcomes}) == len(outcomes)
    return {outcome.item: outcome for outcome in outcomes}


def test_every_item_has_one_outcome_and_workers_share_them() -> None:
    outcomes = list(run_isolated(double, range(50), LIMITS, workers=2))
    assert sorted((outcome.item, outcome.value) for outcome in outcomes) == [
        (number, 2 * number) for number in range(50)
    ]
    assert {outcome.status for outcome in outcomes} == {Status.OK}


def test_a_fault_costs_its_own_item_only() -> None:
    faults = {
        "raise": (Status.ERROR, "ValueError: no such thing"),
        "segfault": (Status.CRASHED, "SIGSEGV"),
        "abort": (Status.CRASHED, "SIGABRT: terminate called"),
        "exit": (Status.CRASHED, "exit code 3"),
        "hang": (Status.TIMEOUT, "no end after 5 s"),
        "allocate": (Status.OUT_OF_MEMORY, "MemoryError: "),
    }
    items = [name for fault in faults for name in (f"before {fault}", fault, f"after {fault}")]
    limits = Limits(seconds=5, address_space=384 * MIB)
    outcomes = by_item(list(run_isolated(misbehave, items, limits)))
    assert outcomes.keys() == set(items)
    for item, outcome in outcomes.items():
        expected = faults.get(item, (Status.OK, ""))
        assert (outcome.status, outcome.detail) == expected
        assert outcome.value == (item if outcome.status is Status.OK else None)


def test_a_value_that_cannot_be_sent_back_is_an_error() -> None:
    (outcome,) = run_isolated(misbehave, ["unpicklable"], LIMITS)
    assert outcome.status is Status.ERROR


def test_workers_keep_state_until_told_that_they_are_spent() -> None:
    with Workers(Counter(), LIMITS) as workers:
        counts = [outcome.value for outcome in workers.map(["a", "b", "last", "c", "d"])]
        counts += [outcome.value for outcome in workers.map(["e"])]
    assert counts == [1, 2, 3, 1, 2, 3]
    assert workers.started == 2


def test_items_are_taken_only_when_a_worker_is_free() -> None:
    taken: list[int] = []

    def items() -> list[int]:
        for number in range(3):
            taken.append(number)
            yield number

    for outcome in run_isolated(double, items(), LIMITS):
        assert taken == list(range(outcome.item + 1))


def test_killed_from_outside_is_tried_again_once(tmp_path: Path) -> None:
    (outcome,) = run_isolated(kill_once, [str(tmp_path / "marker")], LIMITS)
    assert (outcome.status, outcome.value) == (Status.OK, "survived")
    (outcome,) = run_isolated(kill_always, [1], LIMITS)
    assert (outcome.status, outcome.detail) == (Status.OUT_OF_MEMORY, "SIGKILL")


def test_environment_is_there_before_the_interpreter_starts() -> None:
    limits = Limits(
        seconds=60, environment={"MALLOC_TRIM_THRESHOLD_": "123", "PYTHONHASHSEED": "1"}
    )
    (outcome,) = run_isolated(setting, ["MALLOC_TRIM_THRESHOLD_"], limits)
    assert outcome.value == "123"


def test_no_items_start_no_worker() -> None:
    with Workers(double, LIMITS) as workers:
        assert list(workers.map([])) == []
    assert workers.started == 0


def test_a_worker_that_cannot_start_is_no_fault_of_an_item() -> None:
    with pytest.raises(WorkerStartError, match="initializer refuses"):
        list(run_isolated(double, [1], LIMITS, initializer=refuse))


def test_an_iteration_left_early_leaves_no_worker() -> None:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with Workers(double, LIMITS, workers=2) as workers:
        for _ in workers.map(range(100)):
            break
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= before


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_die_with_the_parent(tmp_path: Path, signal_number: signal.Signals) -> None:
    note = tmp_path / "pid"
    program = (
        "import sys; sys.path[:0] = sys.argv[2:]\n"
        "from test_isolation import *\n"
        "list(run_isolated(remember_pid, [sys.argv[1]], LIMITS))"
    )
    root = Path(__file__).parents[1]
    paths = [str(root / "src"), str(root / "tests")]
    parent = subprocess.Popen([sys.executable, "-c", program, str(note), *paths])
    try:
        deadline = time.monotonic() + 60
        while not (note.exists() and note.read_text()):
            assert time.monotonic() < deadline and parent.poll() is None
            time.sleep(0.02)
        worker = psutil.Process(int(note.read_text()))
        parent.send_signal(signal_number)
        parent.wait(timeout=30)
        worker.wait(timeout=30)  # raises where it lives on
    finally:
        parent.kill()
