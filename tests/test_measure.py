"""Measuring a shard: every fault its status, nothing lost, nothing done twice."""

from __future__ import annotations

import collections
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from atenbench import session
from atenbench.measure import measure_shard
from atenbench.measurement import MEASUREMENT
from atenbench.record import schema
from atenbench.settings import Settings
from atenbench.shard import COLUMNS, shard_of, write_shards
from atenbench.store import Store
from planted import PlantedTrial

SETTINGS = Settings(
    device="cpu", time_limit_s=5, memory_cap_gib=0.5, time_budget_minutes=None, passes=2
)
ONE = "((T([64, 8], f32),), {})"
LOW = "((T([64, 8], f16),), {})"
PLAIN = [
    ("aten.relu.default", ONE),
    ("aten.neg.default", ONE),
    ("aten.add_.Tensor", "((T([64, 8], f32), T([64, 8], f32)), {})"),
    ("aten.embedding.default", "((T([5, 8], f32), T([2, 3], i64)), {})"),
    ("aten._unsafe_view.default", "((T([64, 8], f32), [512]), {})"),
]

Problem = tuple[str, str]


def uuid_of(problem: Problem) -> str:
    return hashlib.sha256((problem[1] + problem[0]).encode()).hexdigest()


def inspected(folder: Path, problems: Iterable[Problem], flops: int | None = None) -> Path:
    rows = [
        {
            "uuid": uuid_of(problem),
            "op_name": problem[0],
            "args": problem[1],
            "meta_status": "ok",
            "is_view": False,
            "dtypes": ["f32"],
            "input_bytes": 4096,
            "output_bytes": 4096,
            "bytes_moved": 8192,
            "flops": flops,
        }
        for problem in problems
    ]
    table = pa.Table.from_pylist(rows, schema=SHARD_SCHEMA)
    path = folder / "inspected.parquet"
    pq.write_table(table, path)
    return path


SHARD_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("uuid", "op_name", "args", "meta_status")),
        ("is_view", pa.bool_()),
        ("dtypes", pa.list_(pa.string())),
        *((name, pa.int64()) for name in ("input_bytes", "output_bytes", "bytes_moved", "flops")),
    ]
)


def measure(
    folder: Path, problems: Iterable[Problem], settings: Settings = SETTINGS, **options: Any
) -> dict[str, dict[str, Any]]:
    table, output = inspected(folder, problems, **options), folder / "measurements.parquet"
    measure_shard(table, table, output, folder / "store", settings, PlantedTrial)
    rows = pq.read_table(output).to_pylist()
    assert pq.read_schema(output).equals(schema(MEASUREMENT))
    assert [row["uuid"] for row in rows] == sorted(uuid_of(problem) for problem in problems)
    return {row["uuid"]: row for row in rows}


def visits(folder: Path) -> collections.Counter[str]:
    """How many visits the journal holds of each key."""
    entries = Store(folder / "store").entries
    return collections.Counter({key: len(entry.visits) for key, entry in entries.items()})


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which plain problems and all kinds of faults have been measured together."""
    folder = tmp_path_factory.mktemp("faulty")
    measure(folder, FAULTY)
    return folder


FAULTS = {
    ("planted.segfault.default", ONE): ("crashed", "the process crashed", "SIGSEGV"),
    ("planted.abort.default", ONE): ("crashed", "the process crashed", "SIGABRT"),
    ("planted.hang.default", ONE): ("timeout", "no end within 5 s", "no end after 5 s"),
    ("planted.allocate.default", ONE): ("oom", "out of memory", "RuntimeError"),
    ("planted.fail.default", ONE): ("error", "raised an exception", "ValueError: no such luck"),
    ("planted.fail.default", LOW): ("error", "raised an exception", "ValueError: no such luck"),
    ("planted.only_wide.default", LOW): ("unsupported", "no kernel for its dtype", "RuntimeError"),
    ("planted.no_kernel.default", ONE): (
        "unsupported",
        "no kernel on this device",
        "NotImplementedError",
    ),
    ("aten.relu.default", "((T([1000000, 1000], f32),), {})"): (
        "too_large",
        "needs 3.73 GiB, cap 0.50 GiB",
        None,
    ),
    ("aten.embedding.default", "((T([0, 8], f32), T([2, 3], i64)), {})"): (
        "error",
        "no valid input",
        "NoValidInput",
    ),
}
FAULTY = [*PLAIN, *FAULTS]


def test_each_fault_has_its_status_and_its_neighbours_are_measured(faulty: Path) -> None:
    rows = {row["uuid"]: row for row in pq.read_table(faulty / "measurements.parquet").to_pylist()}
    for problem, (status, reason, error) in FAULTS.items():
        row = rows[uuid_of(problem)]
        assert (row["status"], row["reason"], row["runtime_ms"]) == (status, reason, None), problem
        assert (row["error"] or "").startswith(error or "")
        assert row["measured_at"] is not None
    for problem in PLAIN:
        row = rows[uuid_of(problem)]
        assert (row["status"], row["reason"], row["error"]) == ("ok", None, None)
        assert 0 < row["min_ms"] <= row["median_ms"]
        assert 0 < row["runtime_ms"] < 50
        assert row["visits"] >= 2 and row["samples"] >= 6 * row["visits"]
        assert row["launch_ms"] == pytest.approx(
            row["runtime_ms"] / row["relative_runtime_to_kernel_launch"]
        )
        assert row["ratio_low"] <= row["relative_runtime_to_kernel_launch"] <= row["ratio_high"]


def test_the_record_tells_how_and_where(faulty: Path) -> None:
    rows = {row["uuid"]: row for row in pq.read_table(faulty / "measurements.parquet").to_pylist()}
    row = rows[uuid_of(PLAIN[3])]
    (used,) = json.loads(row["index_ranges"])
    assert (used["argument"], used["low"], used["high"]) == ("indices", 0, 5)
    assert row["threads"] == 1
    assert "MALLOC_TRIM_THRESHOLD_" in row["allocator"]
    assert row["device"].startswith("cpu ")
    assert row["torch_version"] and row["method"] >= 1 and row["seed"] == 0
    assert row["literal_launch_ms"] > 0 and row["first_call_ms"] > 0 and row["predicted_s"] > 0
    assert row["flush_denormal"] is False
    relu = rows[uuid_of(PLAIN[0])]
    assert (relu["output_equals_input"], relu["output_constant"]) == (False, False)


def test_with_nothing_new_no_worker_is_started(
    faulty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = pq.read_table(faulty / "measurements.parquet")
    journal = sorted(path.name for path in (faulty / "store").glob("*.jsonl"))
    monkeypatch.setattr(session, "Workers", None)
    measure(faulty, FAULTY)
    assert pq.read_table(faulty / "measurements.parquet").equals(before)
    assert sorted(path.name for path in (faulty / "store").glob("*.jsonl")) == journal


def test_only_what_is_new_or_was_limited_is_measured(faulty: Path) -> None:
    before = visits(faulty)
    new = ("aten.abs.default", ONE)
    respelled = ("aten.neg.default", "( ( T( (64,8) , f32 ) , ) , { } )")
    small = Settings(
        device="cpu", time_limit_s=4, memory_cap_gib=0.5, time_budget_minutes=None, passes=2
    )
    rows = measure(faulty, [*FAULTY, new, respelled], small)
    after = visits(faulty)
    assert rows[uuid_of(new)]["status"] == "ok"
    assert rows[uuid_of(respelled)]["runtime_ms"] == rows[uuid_of(PLAIN[1])]["runtime_ms"]
    assert rows[uuid_of(("planted.hang.default", ONE))]["reason"] == "no end within 4 s"
    assert {key: after[key] for key in before} == before
    assert len(+after) == len(+before) + 1


def test_a_larger_budget_measures_only_what_was_skipped(tmp_path: Path) -> None:
    slow = ("aten.mm.default", "((T([1024, 1024], f32), T([1024, 1024], f32)), {})")
    little = Settings(device="cpu", time_budget_minutes=0.008, time_limit_s=20)
    rows = measure(tmp_path, [slow], little, flops=2 * 1024**3)
    assert rows[uuid_of(slow)]["status"] == "skipped"
    assert rows[uuid_of(slow)]["reason"].startswith("predicted 0.5")
    rows = measure(tmp_path, [*PLAIN, slow], little, flops=0)
    assert rows[uuid_of(slow)]["status"] == "skipped"  # whatever is predicted now
    before = visits(tmp_path)
    much = Settings(device="cpu", time_budget_minutes=5, time_limit_s=20)
    rows = measure(tmp_path, [*PLAIN, slow], much, flops=0)
    assert {row["status"] for row in rows.values()} == {"ok"}
    assert {key: visits(tmp_path)[key] for key in +before} == +before


def test_a_problem_that_fails_after_it_was_timed_keeps_its_runtime(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED_MARKER", str(tmp_path / "marker"))
    later, fatal = ("planted.fail_later.default", ONE), ("planted.abort.default", ONE)
    once = Settings(device="cpu", time_budget_minutes=None, passes=1)
    measure(tmp_path, [later], once)
    rows = measure(tmp_path, [later, fatal])
    row = rows[uuid_of(later)]
    assert (row["status"], row["reason"]) == ("ok", None)
    assert row["runtime_ms"] > 0 and row["error"].startswith("SIGABRT")


def test_device_off_measures_nothing_and_imports_no_torch(tmp_path: Path) -> None:
    table = inspected(tmp_path, PLAIN)
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path\n"
        "from atenbench.measure import measure_shard; from atenbench.settings import Settings\n"
        "table, output, store = map(Path, sys.argv[2:])\n"
        "measure_shard(table, table, output, store, Settings(device='off'))\n"
        "assert 'torch' not in sys.modules"
    )
    output, store = tmp_path / "measurements.parquet", tmp_path / "store"
    source = Path(__file__).parents[1] / "src"
    subprocess.run(
        [sys.executable, "-c", program, *map(str, (source, table, output, store))], check=True
    )
    rows = pq.read_table(output).to_pylist()
    assert {row["status"] for row in rows} == {"off"} and len(rows) == len(PLAIN)
    assert not store.exists()


RUN = """
import sys; sys.path[:0] = sys.argv[4:]
from pathlib import Path
import test_measure
test_measure.measure_shard(
    Path(sys.argv[1]), Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]),
    test_measure.SETTINGS, test_measure.PlantedTrial,
)
"""


def test_killed_at_random_moments_it_loses_nothing_and_repeats_only_what_was_in_flight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kill -9 of the process or of its worker, again and again, then one run to the end."""
    problems = [
        (op_name, f"((T([{size}, 8], f32),), {{}})")
        for op_name in ("aten.relu.default", "aten.neg.default", "aten.exp.default")
        for size in range(1, 100, 2)
    ]
    table, output = inspected(tmp_path, problems), tmp_path / "measurements.parquet"
    notes = tmp_path / "notes"
    monkeypatch.setenv("PLANTED_NOTES", str(notes))
    paths = [str(Path(__file__).parents[1] / "src"), str(Path(__file__).parent)]
    command = [sys.executable, "-c", RUN, str(table), str(output), str(tmp_path / "store"), *paths]
    draw = random.Random(5)
    kills = 0
    for round_number in range(3):
        run = psutil.Popen(command, stderr=subprocess.DEVNULL)
        begun = _lines(notes)
        while _lines(notes) == begun and run.poll() is None:
            time.sleep(0.02)
        time.sleep(draw.uniform(0, 0.6))
        if run.poll() is None:
            kills += _kill(run, worker=round_number % 2 == 1)
        if round_number % 2 == 1:
            time.sleep(draw.uniform(0, 1))
            kills += _kill(run, worker=False)
        run.wait()
    measured = measure(tmp_path, problems)
    assert {row["status"] for row in measured.values()} == {"ok"}
    entries = Store(tmp_path / "store").entries
    assert len(entries) == len(problems)
    recorded = sum(len(entry.visits) for entry in entries.values())
    assert all(2 <= len(entry.visits) <= 3 for entry in entries.values())
    attempts = notes.read_text().splitlines()
    assert kills >= 3
    assert recorded <= len(attempts) <= recorded + kills
    repeated = collections.Counter(attempts)
    assert sum(count - 1 for count in repeated.values()) <= kills


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0


def _kill(run: psutil.Popen, *, worker: bool) -> int:
    victims = run.children() if worker else [run]
    for victim in victims:
        os.kill(victim.pid, signal.SIGKILL)
    return len(victims)


@pytest.mark.parametrize("shards", [1, 3, 8])
def test_shards_part_the_problems_by_their_uuid_alone(tmp_path: Path, shards: int) -> None:
    problems = [("aten.relu.default", f"((T([{size}], f32),), {{}})") for size in range(100)]
    table = inspected(tmp_path, problems)
    outputs = [tmp_path / f"{number}-of-{shards}.parquet" for number in range(1, shards + 1)]
    write_shards(table, outputs)
    first = [path.read_bytes() for path in outputs]
    seen: list[str] = []
    for number, path in enumerate(outputs, start=1):
        found = pq.read_table(path)
        assert found.column_names == list(COLUMNS)
        uuids = found.column("uuid").to_pylist()
        assert uuids == sorted(uuids)
        assert {shard_of(uuid, shards) for uuid in uuids} <= {number}
        seen += uuids
    assert sorted(seen) == sorted(map(uuid_of, problems))
    inspected(tmp_path, reversed(problems))
    write_shards(table, outputs)
    assert [path.read_bytes() for path in outputs] == first
