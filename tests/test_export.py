"""Facts and tags → the published files: columns, types, order, strict JSON, provenance."""

import json
import math
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from atenbench import query
from atenbench.problem import DETAILS, PROBLEM
from atenbench.record import schema
from atenbench.worth import WORTH
from curated import MEASUREMENTS, SYNTHETIC, Curated, by_uuid

TYPES = [
    ("uuid", pa.string()),
    ("op_name", pa.string()),
    ("args", pa.string()),
    ("runnable", pa.bool_()),
    ("included_in_benchmark", pa.bool_()),
    ("why_excluded", pa.list_(pa.string())),
    ("is_synthetic", pa.bool_()),
    ("runtime_ms", pa.float64()),
    ("relative_runtime_to_kernel_launch", pa.float64()),
    ("is_overhead_dominated_op", pa.bool_()),
    ("count", pa.int64()),
    ("in_models", pa.list_(pa.string())),
    ("in_models_count", pa.int64()),
]


@pytest.fixture
def curated(tmp_path: Path) -> Curated:
    return Curated(tmp_path)


def strictly(path: Path) -> list[dict]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


def included(curated: Curated) -> None:
    for index in range(3):
        curated.add(f"aten.op{index}.default")


def excluded(curated: Curated) -> None:
    for index in range(3):
        curated.add(f"aten.op{index}.default", **SYNTHETIC)


def nothing(curated: Curated) -> None:
    pass


def set_on_the_second_only(curated: Curated) -> None:
    curated.add("aten.a.default")
    second = {"runtime_ms": 0.25, "relative_runtime_to_kernel_launch": 2.0}
    curated.add("aten.clone.default", **second)


@pytest.mark.parametrize("build", [included, excluded, nothing, set_on_the_second_only])
def test_columns_and_types_are_those_of_every_build(curated: Curated, build) -> None:
    """B24, P35: whatever the rows, the schema is declared, and JSON says the same as parquet."""
    build(curated)
    rows = curated.export()
    results = curated.folder / "results"
    written = pq.read_schema(results / "backend_bench_problems.parquet")
    assert [(field.name, field.type) for field in written] == TYPES
    assert strictly(results / "backend_bench_problems.json") == rows
    assert [list(row) for row in rows] == [[name for name, _ in TYPES]] * len(curated.cases)
    first, *records, last = (results / "backend_bench_problems.json").read_text().splitlines()
    assert (first, last) == ("[", "]")
    assert len([line for line in records if line.strip()]) == len(rows)  # none: a blank line
    details = pq.read_schema(results / "problem_details.parquet")
    assert details.names[: len(DETAILS)] == [field.name for field in DETAILS]
    assert [details.field(field.name).type for field in DETAILS] == [f.type for f in DETAILS]


def test_why_excluded_is_empty_and_never_null(curated: Curated) -> None:
    included(curated)
    assert [row["why_excluded"] for row in curated.export()] == [[], [], []]


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_null(curated: Curated, value) -> None:
    """B25."""
    curated.add(runtime_ms=value, relative_runtime_to_kernel_launch=value)
    (row,) = curated.export()
    assert (row["runtime_ms"], row["relative_runtime_to_kernel_launch"]) == (None, None)
    assert row["is_overhead_dominated_op"] is False
    assert strictly(curated.folder / "results" / "backend_bench_problems.json") == [row]


def test_values_come_through_exactly(curated: Curated) -> None:
    args = '(("\\u2028 é \\\\ \\" 漢"), {})'
    measured = {"runtime_ms": 0.1 + 0.2, "relative_runtime_to_kernel_launch": 1e-300}
    curated.add("aten.a.default", args, count=2**63 - 1, **measured)
    (row,) = curated.export()
    assert row["args"] == args
    assert (row["count"], row["runtime_ms"]) == (2**63 - 1, 0.1 + 0.2)
    assert row["relative_runtime_to_kernel_launch"] == 1e-300
    assert strictly(curated.folder / "results" / "backend_bench_problems.json") == [row]


def test_rows_are_ordered_by_operator_then_count_then_key(curated: Curated) -> None:
    for index in range(40):
        curated.add(f"aten.op{index % 3}.default", f"(({index},), {{}})", count=index % 5 + 1)
    rows = curated.export()
    keys = [(row["op_name"], -row["count"], row["uuid"]) for row in rows]
    assert keys == sorted(keys)
    assert len(rows) == 40


def test_the_rows_of_two_builds_are_equal(tmp_path: Path) -> None:
    """B27: whatever the order in which the tables hold them."""
    builds = []
    for turn, folder in ((1, tmp_path / "a"), (-1, tmp_path / "b")):
        folder.mkdir()
        curated = Curated(folder)
        for index in range(500)[::turn]:
            fields = {"runtime_ms": index / 7} if index % 2 else {}
            curated.add(f"aten.op{index % 7}.default", f"(({index},), {{}})", **fields)
        rows = curated.export()
        text = (folder / "results" / "backend_bench_problems.json").read_bytes()
        builds.append((rows, list(curated.details().values()), text))
    assert builds[0] == builds[1]
    assert len(builds[0][0]) == 500


def test_the_details_hold_everything_else(curated: Curated) -> None:
    when = datetime(2026, 12, 1, tzinfo=UTC)
    measured = curated.add(
        "aten.a.default",
        status="timeout",
        reason="over 3 s",
        error="killed",
        measured_at=when,
        device="cpu of some kind",
        samples=7,
        degenerate_inputs=True,  # B06
        dtypes=["f16", "i64"],
        flops=12,
    )
    text = "RuntimeError: long story"
    failed = curated.add(
        "aten.b.default", meta_status="failed", meta_reason="too large", meta_error=text
    )
    waiting = curated.add("aten.c.default", meta_status="undecided", meta_error="no meta kernel")
    published = by_uuid(curated.export())
    details = curated.details()
    assert list(details) == sorted(published)
    columns = [field.name for field in DETAILS]
    own = [name for name in MEASUREMENTS.names if name not in ("uuid", "status", "reason")]
    worth = [field.name for field in WORTH]
    assert list(details[measured]) == columns + own + worth
    assert details[measured]["status"] == "timeout"
    assert details[measured]["reason"] == "over 3 s"
    assert details[measured]["measured_at"] == when
    assert (details[measured]["samples"], details[measured]["flops"]) == (7, 12)
    assert details[measured]["degenerate_inputs"] and published[measured]["included_in_benchmark"]
    assert details[measured]["dtypes"] == ["f16", "i64"]
    assert (details[failed]["status"], details[failed]["reason"]) == ("invalid", "too large")
    assert (details[failed]["runs"], details[failed]["meta_error"]) == (False, text)
    assert text not in str(published[failed])  # P36
    assert (details[waiting]["status"], details[waiting]["reason"]) == ("off", None)
    assert details[waiting]["runs"] is True


def test_both_files_say_how_they_were_made(curated: Curated) -> None:
    curated.add("aten.a.default", device="cpu of some kind")
    curated.add("aten.b.default")
    curated.export()
    results = curated.folder / "results"
    said = query.file_metadata(results / "backend_bench_problems.parquet")
    assert said == query.file_metadata(results / "problem_details.parquet")
    assert said["device"] == "cpu of some kind"
    assert said["overhead_threshold"] == "1.3"
    assert said["version of torch"].startswith("2.")
    digests = {name: value for name, value in said.items() if name.startswith("sha256 of ")}
    assert {name.removeprefix("sha256 of ") for name in digests} == {
        *("cases", "inspected", "tags", "worth", "measurements", "exclusions")
    }
    curated.inspected[0]["is_view"] = True
    curated.export()
    again = query.file_metadata(results / "backend_bench_problems.parquet")
    assert {name for name in said if said[name] != again[name]} == {"sha256 of inspected"}


def test_the_device_is_off_where_none_is_named(curated: Curated) -> None:
    curated.add(status="off")
    curated.export()
    said = query.file_metadata(curated.folder / "results" / "problem_details.parquet")
    assert said["device"] == "off"


def test_a_row_too_few_or_too_many_is_refused(curated: Curated, monkeypatch) -> None:
    """B30: and the files that were there stay."""
    curated.add("aten.a.default")
    curated.add("aten.b.default", status="ok")
    curated.export()
    before = (curated.folder / "results" / "backend_bench_problems.parquet").read_bytes()
    monkeypatch.setattr(curated, "tag", lambda: None)
    curated.measured *= 2
    with pytest.raises(ValueError, match="expected were 2"):
        curated.export()
    assert (curated.folder / "results" / "backend_bench_problems.parquet").read_bytes() == before
    assert len(list((curated.folder / "results").iterdir())) == 3


def test_the_declared_columns_are_the_published_ones() -> None:
    declared = schema(PROBLEM)
    assert [(field.name, field.type) for field in declared] == TYPES
    nullable = {field.name for field in declared if field.nullable}
    assert nullable == {"runtime_ms", "relative_runtime_to_kernel_launch"}
