"""What a problem is worth: calls × runtime, as shares of the whole set's and each model's time."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from atenbench.call_table import CALLS
from atenbench.worth import WORTH, write_worth
from curated import SQL, SYNTHETIC, Curated

RELU, ADD, GELU = "aten.relu.default", "aten.add.Tensor", "aten.gelu.default"
ONE, TWO = "((T([2], f16),), {})", "((T([2], f16), ), {})"


def call(op_name: str, model: str, count: int, args: str = ONE) -> dict[str, Any]:
    suite, name = model.split("/")
    canonical = None if args == ONE else ONE
    place = {"suite": suite, "model": name, "file": "f", "line": 1, "canonical": canonical}
    return {"op_name": op_name, "args": args, "count": count} | place


def worth(curated: Curated, calls: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    pq.write_table(pa.Table.from_pylist(calls, schema=CALLS), curated.folder / "calls.parquet")
    output = curated.folder / "worth.parquet"
    paths = [str(curated.folder / "calls.parquet")], curated.tables()["cases"]
    write_worth(*paths, curated.measurements(), str(SQL / "worth.sql"), str(output))
    return {row["uuid"]: row for row in pq.read_table(output).to_pylist()}


def test_shares_of_the_whole_set_and_of_each_model(tmp_path: Path) -> None:
    curated = Curated(tmp_path)
    relu = curated.add(RELU, count=30, runtime_ms=1.0)
    add = curated.add(ADD, count=10, runtime_ms=7.0)
    found = worth(
        curated,
        [call(RELU, "s/a", 10), call(RELU, "s/b", 5), call(RELU, "s/b", 15), call(ADD, "s/a", 10)],
    )
    assert found[add]["total_ms"] == 70 and found[relu]["total_ms"] == 30
    assert (found[add]["share_of_time"], found[relu]["share_of_time"]) == (0.7, 0.3)
    assert (found[add]["rank_by_time"], found[relu]["rank_by_time"]) == (1, 2)
    assert (found[add]["cumulative_share"], found[relu]["cumulative_share"]) == (0.7, 1.0)
    assert found[relu]["share_by_model"] == [
        {"model": "s/a", "calls": 10, "share": pytest.approx(10 / 80)},
        {"model": "s/b", "calls": 20, "share": 1.0},
    ]


def test_calls_in_every_spelling_count(tmp_path: Path) -> None:
    curated = Curated(tmp_path)
    relu = curated.add(RELU, args=TWO, count=5, runtime_ms=1.0)
    found = worth(curated, [call(RELU, "s/a", 3, TWO), call(RELU, "s/b", 2, ONE)])
    models = found[relu]["share_by_model"]
    assert [(model["model"], model["calls"]) for model in models] == [("s/a", 3), ("s/b", 2)]


def test_what_was_not_measured_or_is_not_called_has_none(tmp_path: Path) -> None:
    curated = Curated(tmp_path)
    curated.add(RELU, status="skipped")
    curated.add(ADD, runtime_ms=1.0, **SYNTHETIC)
    curated.add(GELU)
    assert worth(curated, [call(RELU, "s/a", 1), call(ADD, "s/made", 0)]) == {}
    curated.export()
    for row in curated.details().values():
        assert {row[field.name] for field in WORTH} == {None}


def test_the_details_hold_it(tmp_path: Path) -> None:
    curated = Curated(tmp_path)
    uuid = curated.add(RELU, count=4, runtime_ms=0.5)
    curated.export()
    row = curated.details()[uuid]
    assert (row["total_ms"], row["share_of_time"], row["rank_by_time"]) == (2.0, 1.0, 1)
    assert row["share_by_model"] == [{"model": "TIMM/a", "calls": 4, "share": 1.0}]
