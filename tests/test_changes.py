"""A release beside an earlier one: what is found to have changed, and how it is told."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from atenbench.changes import CHANGES, Devices, compare
from atenbench.changes_report import render
from atenbench.errors import UserError
from atenbench.ingest import ingest
from atenbench.measurement import MEASUREMENT
from atenbench.problem import PROBLEM
from atenbench.query import fetch
from atenbench.record import schema
from atenbench.trace import find_traces

REPOSITORY = Path(__file__).parent.parent
SQL = REPOSITORY / "workflow/sql"

A, B, C = "((T([2], f16),), {})", "((T([4], f16),), {})", "((T([8], f16),), {})"
RANDOM = "BackendBench does not support correctness testing for random ops yet"


def problem(args: str, **changed: Any) -> dict[str, Any]:
    return {
        "uuid": f"uuid of {args}",
        "op_name": "aten.relu.default",
        "args": args,
        "runnable": True,
        "included_in_benchmark": True,
        "why_excluded": [],
        "is_synthetic": False,
        "runtime_ms": None,
        "relative_runtime_to_kernel_launch": None,
        "is_overhead_dominated_op": False,
        "count": 2,
        "in_models": ["TIMM/a"],
        "in_models_count": 1,
        **changed,
    }


def timing(args: str, runtime: float, low: float, high: float, **changed: Any) -> dict[str, Any]:
    """A measurement with a launch of 1 ms, so that ratios are runtimes."""
    return {
        "uuid": f"uuid of {args}",
        "status": "ok",
        "runtime_ms": runtime,
        "relative_runtime_to_kernel_launch": runtime,
        "ratio_low": low,
        "ratio_high": high,
        "between_visit_cv": 0.0,
        "device": "the device",
        "method": 1,
        **changed,
    }


def release(folder: Path, problems: list[Any], details: list[Any] | None = None) -> Path:
    folder.mkdir()
    table = pa.Table.from_pylist(problems, schema=schema(PROBLEM))
    pq.write_table(table, folder / "backend_bench_problems.parquet")
    if details is not None:
        timings = pa.Table.from_pylist(details, schema=schema(MEASUREMENT))
        pq.write_table(timings, folder / "problem_details.parquet")
    return folder


def changes(previous: Path, now: Path) -> tuple[list[dict[str, Any]], Devices]:
    out = now / "changes.parquet"
    tables = now / "backend_bench_problems.parquet", now / "problem_details.parquet"
    renames = {"aten.rilu.default": "aten.relu.default"}
    devices = compare(previous, *tables, renames, str(SQL / "changes.sql"), out)
    assert pq.read_schema(out).equals(CHANGES)
    return pq.read_table(out).to_pylist(), devices


def told(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(row["kind"], row["args"]) for row in rows]


def test_each_kind_of_change_is_found_and_nothing_else(tmp_path: Path) -> None:
    excluded = {"included_in_benchmark": False, "why_excluded": [RANDOM]}
    was = release(tmp_path / "was", [problem(A), problem(B), problem("((T([1], f16),), {})")], [])
    now = release(
        tmp_path / "now",
        [
            problem(A, count=5, in_models=["TIMM/a", "TIMM/b"]),
            problem(B, **excluded),
            problem(C),
            problem("((T([1], f16),), {})"),
        ],
        [],
    )
    rows, _ = changes(was, now)
    assert told(rows) == [("added", C), ("recounted", A), ("retagged", B)]
    added, recounted, retagged = rows
    assert (added["previous_uuid"], added["uuid"]) == (None, f"uuid of {C}")
    assert (recounted["previous_count"], recounted["count"]) == (2, 5)
    assert (retagged["previous_why_excluded"], retagged["why_excluded"]) == ([], [RANDOM])
    back, _ = changes(now, was)
    assert told(back) == [("recounted", A), ("removed", C), ("retagged", B)]


def test_another_spelling_or_an_older_name_is_the_same_problem(tmp_path: Path) -> None:
    was = release(
        tmp_path / "was",
        [problem("((T([2],f16),),{})"), problem(B, op_name="aten.rilu.default")],
        [],
    )
    now = release(tmp_path / "now", [problem(A), problem(B)], [])
    assert changes(was, now)[0] == []


def test_runtimes_count_as_changed_where_their_intervals_have_nothing_in_common(
    tmp_path: Path,
) -> None:
    all_three = [problem(A), problem(B), problem(C)]
    was = release(
        tmp_path / "was",
        all_three,
        [timing(A, 10, 9, 11), timing(B, 10, 9, 11), timing(C, 10, 9, 11)],
    )
    now = release(
        tmp_path / "now",
        all_three,
        [
            timing(A, 12, 11.5, 12.5),
            timing(B, 12, 10.5, 12.5),
            # Visits that disagree by 10 % say more than the interval within them.
            timing(C, 12, 11.5, 12.5, between_visit_cv=0.1),
        ],
    )
    rows, devices = changes(was, now)
    assert told(rows) == [("retimed", A)]
    assert (rows[0]["previous_low_ms"], rows[0]["high_ms"]) == (9, 12.5)
    assert devices.comparable
    text = render(rows, "v1", devices)
    assert "| `aten.relu.default` | 0        | 1        | 1.20" in text
    assert f"| `{A}` | 10 (9 – 11) | 12 (11.5 – 12.5) |" in " ".join(text.split())


@pytest.mark.parametrize("changed", [{"device": "another"}, {"method": 2}, {"runtime_ms": None}])
def test_runtimes_of_another_device_or_method_are_not_compared(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    was = release(tmp_path / "was", [problem(A)], [timing(A, 10, 9, 11)])
    now = release(
        tmp_path / "now",
        [problem(A, is_overhead_dominated_op=True)],
        [timing(A, 20, 19, 21, **changed)],
    )
    rows, devices = changes(was, now)
    assert rows == []
    if "device" in changed:
        assert "measured on the device, this on another" in render(rows, "v1", devices)


def test_a_changed_overhead_flag_is_told_on_the_same_device(tmp_path: Path) -> None:
    was = release(tmp_path / "was", [problem(A)], [timing(A, 1.31, 1.2, 1.4)])
    now = release(
        tmp_path / "now",
        [problem(A, is_overhead_dominated_op=True)],
        [timing(A, 1.29, 1.2, 1.4)],
    )
    assert told(changes(was, now)[0]) == [("overhead", A)]


def test_an_older_file_can_be_compared_as_far_as_it_goes(tmp_path: Path) -> None:
    row = {"op_name": "aten.relu.default", "args": A, "count": 1, "runtime_ms": 1.0}
    old = tmp_path / "old.json"
    old.write_text(json.dumps([row, row, row | {"args": B, "count": 3}]))
    # What was appended twice, was counted twice.
    now = release(tmp_path / "now", [problem(A), problem(B), problem(C)], [timing(A, 2, 1, 3)])
    rows, devices = changes(old, now)
    assert told(rows) == [("added", C), ("recounted", B)]
    assert "no details of the earlier release" in render(rows, "v1", devices)
    pq.write_table(pa.Table.from_pylist([row, row]), tmp_path / "old.parquet")
    assert told(changes(tmp_path / "old.parquet", now)[0]) == [("added", B), ("added", C)]


def test_a_release_that_is_not_there_is_named(tmp_path: Path) -> None:
    now = release(tmp_path / "now", [problem(A)], [])
    with pytest.raises(UserError, match="no such file or folder"):
        changes(tmp_path / "gone", now)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"no backend_bench_problems.parquet in it"):
        changes(tmp_path / "empty", now)
    (tmp_path / "bad.parquet").write_text("bad")
    with pytest.raises(UserError, match=r"bad.parquet: cannot be read"):
        changes(tmp_path / "bad.parquet", now)


def test_a_model_left_out_is_told_by_exactly_its_own_problems_and_counts(tmp_path: Path) -> None:
    """With the repository's traces, against a count that does not use the pipeline's SQL."""
    table = tmp_path / "calls.parquet"
    ingest(
        find_traces([REPOSITORY / "resources/traces"]),
        {},
        {},
        "error",
        table,
        tmp_path / "rejects.parquet",
    )
    calls = pq.read_table(table)
    left_out = "BERT-base"
    rest = calls.filter(pc.not_equal(calls.column("model"), left_out))
    folders = []
    for name, chosen in (("was", rest), ("now", calls)):
        pq.write_table(chosen, tmp_path / f"{name}-calls.parquet")
        cases = fetch(SQL / "cases.sql", {"calls": tmp_path / f"{name}-calls.parquet"}).to_pylist()
        problems = [problem("") | case for case in cases]
        folders.append(release(tmp_path / name, problems, []))
    rows, devices = changes(*folders)

    own: dict[tuple[str, str], int] = {}
    others: set[tuple[str, str]] = set()
    for call in calls.to_pylist():
        key = call["op_name"], call["canonical"] or call["args"]
        if call["model"] == left_out:
            own[key] = own.get(key, 0) + call["count"]
        else:
            others.add(key)
    found = {
        kind: {(row["op_name"], row["args"]) for row in rows if row["kind"] == kind}
        for kind in ("added", "recounted")
    }
    assert found == {"added": own.keys() - others, "recounted": own.keys() & others}
    assert found["added"] and found["recounted"] and len(rows) == len(own)
    for row in rows:
        difference = row["count"] - (row["previous_count"] or 0)
        assert difference == own[row["op_name"], row["args"]]
    text = render(rows, "v1", devices)
    (line,) = [line for line in text.splitlines() if f"/{left_out} " in line]
    numbers = [int(cell) for cell in line.split("|")[2:-1]]
    assert numbers == [len(found["added"]), len(found["recounted"])]


def test_no_change_is_told_as_such(tmp_path: Path) -> None:
    same = release(tmp_path / "same", [problem(A)], [timing(A, 2, 1, 3)])
    rows, devices = changes(same, same)
    assert rows == []
    assert "No problem has changed" in render(rows, "v1", devices)
