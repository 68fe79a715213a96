"""Small tables as the rules write them, for the tests of the rules that read them."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from atenbench.aggregate import CASES
from atenbench.call_table import CALLS
from atenbench.export import export
from atenbench.inspect_cases import INSPECTED
from atenbench.measurement import MEASUREMENT
from atenbench.record import schema
from atenbench.tag import tag
from atenbench.worth import write_worth

CLONE = Path(__file__).parents[1]
SQL = CLONE / "workflow" / "sql"
POLICY = CLONE / "config" / "exclusions.yaml"
POLICY_SCHEMA = CLONE / "workflow" / "schemas" / "exclusions.schema.yaml"
ARGS = "((T([2], f16),), {})"

CASE = {"count": 1, "in_models": ["TIMM/a"], "in_models_count": 1, "is_synthetic": False}
FACTS = {
    "meta_status": "ok",
    "meta_reason": None,
    "meta_error": None,
    "is_random": False,
    "is_in_place": False,
    "is_view": False,
    "is_creation": False,
    "needs_indices": False,
    "reader_understands": True,
    "degenerate_inputs": False,
    "dtypes": ["f16"],
    "input_bytes": 4,
    "output_bytes": 4,
    "bytes_moved": 8,
    "flops": None,
}
SYNTHETIC = {"count": 0, "in_models": [], "in_models_count": 0, "is_synthetic": True}
MEASUREMENTS = schema(MEASUREMENT)
MEASURED = dict.fromkeys(MEASUREMENTS.names[1:]) | {"status": "ok"}


class Curated:
    """A folder of tables: add problems, then run the rules that decide and publish."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cases: list[dict[str, Any]] = []
        self.inspected: list[dict[str, Any]] = []
        self.measured: list[dict[str, Any]] = []

    def add(self, op_name: str = "aten.relu.default", args: str = ARGS, **fields: Any) -> str:
        """A problem; each field goes to the table that has it; one of a measurement makes one."""
        key = {
            "uuid": hashlib.sha256(f"{args}{op_name}".encode()).hexdigest(),
            "op_name": op_name,
            "args": args,
        }
        case, facts, measured = (
            {name: fields.pop(name) for name in list(fields) if name in table}
            for table in (CASE, FACTS, MEASURED)
        )
        assert not fields
        self.cases.append(key | CASE | case)
        self.inspected.append(key | FACTS | facts)
        if measured:
            self.measured.append({"uuid": key["uuid"]} | MEASURED | measured)
        return key["uuid"]

    def tables(self) -> dict[str, str]:
        """The paths of cases and inspected, written in another order than they were added."""
        for name, rows, declared in (
            ("cases", self.cases, CASES),
            ("inspected", self.inspected, INSPECTED),
        ):
            table = pa.Table.from_pylist(rows[::-1], schema=declared)
            pq.write_table(table, self.folder / f"{name}.parquet")
        return {name: str(self.folder / f"{name}.parquet") for name in ("cases", "inspected")}

    def measurements(self) -> list[str]:
        """The paths of two shards, which may be empty."""
        paths = []
        for shard in (0, 1):
            paths.append(str(self.folder / f"{shard + 1}-of-2.parquet"))
            table = pa.Table.from_pylist(self.measured[shard::2], schema=MEASUREMENTS)
            pq.write_table(table, paths[-1])
        return paths

    def worth(self) -> str:
        """The path of what each problem is worth; its first model makes all of its calls."""
        calls = [self._call(case) for case in self.cases]
        pq.write_table(pa.Table.from_pylist(calls, schema=CALLS), self.folder / "calls.parquet")
        output = str(self.folder / "worth.parquet")
        write_worth(
            [str(self.folder / "calls.parquet")],
            self.tables()["cases"],
            self.measurements(),
            str(SQL / "worth.sql"),
            output,
        )
        return output

    def _call(self, case: dict[str, Any]) -> dict[str, Any]:
        suite, model = case["in_models"][0].split("/") if case["in_models"] else ("made", "up")
        place = {"suite": suite, "model": model, "file": f"{suite}/{model}.txt", "line": 1}
        return {name: case[name] for name in ("op_name", "args", "count")} | place

    def tag(self, policy: Path = POLICY, threshold: float = 1.3) -> dict[str, dict[str, Any]]:
        """The tags by uuid."""
        tag(
            self.tables(),
            self.measurements(),
            {"exclusions": str(policy), "schema": str(POLICY_SCHEMA)},
            str(SQL / "tags.sql"),
            threshold,
            str(self.folder / "tags.parquet"),
        )
        rows = pq.read_table(self.folder / "tags.parquet").to_pylist()
        assert [row["uuid"] for row in rows] == sorted(case["uuid"] for case in self.cases)
        return {row["uuid"]: row for row in rows}

    def export(self) -> list[dict[str, Any]]:
        """The published records; the files are in the folder."""
        self.tag()
        results = self.folder / "results"
        export(
            {
                **self.tables(),
                "tags": str(self.folder / "tags.parquet"),
                "worth": self.worth(),
            },
            self.measurements(),
            {"problems": str(SQL / "problems.sql"), "details": str(SQL / "problem_details.sql")},
            {"exclusions": str(POLICY)},
            {"overhead_threshold": "1.3"},
            {
                "problems": str(results / "backend_bench_problems.parquet"),
                "json": str(results / "backend_bench_problems.json"),
                "details": str(results / "problem_details.parquet"),
            },
        )
        return pq.read_table(results / "backend_bench_problems.parquet").to_pylist()

    def details(self) -> dict[str, dict[str, Any]]:
        """The details by uuid."""
        return by_uuid(pq.read_table(self.folder / "results/problem_details.parquet").to_pylist())


def by_uuid(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The rows by their uuid, which must be unique."""
    rows = list(rows)
    found = {row["uuid"]: row for row in rows}
    assert len(found) == len(rows)
    return found
