"""The record's fields: documented once, and the same for every reader of both formats."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pandas
import polars
import pytest

from atenbench.mapping import MAPPING
from atenbench.measurement import MEASUREMENT
from atenbench.problem import (
    DETAILS,
    PROBLEM,
    datasets_features,
    duckdb_columns,
    pandas_dtypes,
    polars_schema,
)
from atenbench.record import field_table
from atenbench.worth import WORTH
from curated import CLONE, SYNTHETIC, Curated

MEASURED = [field for field in MEASUREMENT if field.name not in {own.name for own in DETAILS}]
FIELDS_PAGE = CLONE / "docs" / "fields.md"
DUCKDB = {
    "uuid": "VARCHAR",
    "op_name": "VARCHAR",
    "args": "VARCHAR",
    "runnable": "BOOLEAN",
    "included_in_benchmark": "BOOLEAN",
    "why_excluded": "VARCHAR[]",
    "is_synthetic": "BOOLEAN",
    "runtime_ms": "DOUBLE",
    "relative_runtime_to_kernel_launch": "DOUBLE",
    "is_overhead_dominated_op": "BOOLEAN",
    "count": "BIGINT",
    "in_models": "VARCHAR[]",
    "in_models_count": "BIGINT",
}
POLARS = {
    "VARCHAR": polars.String,
    "BOOLEAN": polars.Boolean,
    "DOUBLE": polars.Float64,
    "BIGINT": polars.Int64,
    "VARCHAR[]": polars.List(polars.String),
}
TIMES = ("runtime_ms", "relative_runtime_to_kernel_launch")
PANDAS = {"VARCHAR": "str", "BOOLEAN": "bool", "DOUBLE": "float64", "BIGINT": "int64"}


def all_included(curated: Curated) -> None:
    for index in range(3):
        curated.add(f"aten.op{index}.default", '(("é \\u2028 \\""), {})', count=2**62 + 1)


def all_excluded(curated: Curated) -> None:
    for index in range(3):
        measured = {"runtime_ms": 0.1 + 0.2, "relative_runtime_to_kernel_launch": 1 / 3}
        curated.add(f"aten.op{index}.default", **SYNTHETIC, **measured)


def no_rows(curated: Curated) -> None:
    pass


@pytest.fixture(scope="module", params=[all_included, all_excluded, no_rows])
def build(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict]]:
    curated = Curated(tmp_path_factory.mktemp("build"))
    request.param(curated)
    rows = curated.export()
    return curated.folder, rows


def files(folder: Path) -> dict[str, str]:
    stem = folder / "results" / "backend_bench_problems"
    return {kind: str(stem.with_suffix(f".{kind}")) for kind in ("parquet", "json")}


def test_duckdb_reads_both(build) -> None:
    folder, rows = build
    path = files(folder)
    assert duckdb_columns() == DUCKDB
    for relation in (
        duckdb.read_parquet(path["parquet"]),
        duckdb.sql(
            f"FROM read_json('{path['json']}', format = 'array', columns = {duckdb_columns()})"
        ),
    ):
        assert dict(zip(relation.columns, map(str, relation.types), strict=True)) == DUCKDB
        assert [
            dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()
        ] == rows


def test_pandas_reads_both(build) -> None:
    folder, rows = build
    path, dtypes = files(folder), pandas_dtypes()
    assert dtypes == {name: PANDAS.get(kind, "object") for name, kind in DUCKDB.items()}
    from_json = pandas.read_json(path["json"], dtype=dtypes, precise_float=True)
    for frame in (
        pandas.read_parquet(path["parquet"]),
        from_json.reindex(columns=list(dtypes)).astype(dtypes),
    ):
        assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == dtypes
        read = frame.astype(object).where(frame.notna(), None).to_dict("records")
        for row in read:
            row |= {name: list(row[name]) for name in ("why_excluded", "in_models")}
        assert read == rows


def test_polars_reads_both(build) -> None:
    folder, rows = build
    path = files(folder)
    expected = {name: POLARS[kind] for name, kind in DUCKDB.items()}
    for frame in (
        polars.read_parquet(path["parquet"]),
        polars.read_json(path["json"], schema=polars_schema()),
    ):
        assert frame.schema == expected
        assert frame.to_dicts() == rows


def test_datasets_reads_both(build, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    datasets.disable_progress_bars()
    folder, rows = build
    path, features = files(folder), datasets_features()
    # Of a JSON array datasets keeps ten decimals. Without rows there is no split for it to prepare,
    # but they can be streamed.
    how: dict[str, Any] = {"streaming": not rows, "split": "train", "cache_dir": str(tmp_path)}
    for found in (
        datasets.load_dataset("parquet", data_files=path["parquet"], **how),
        datasets.load_dataset("json", data_files=path["json"], features=features, **how),
    ):
        types = {
            name: f"{feature.feature.dtype}[]" if hasattr(feature, "feature") else feature.dtype
            for name, feature in found.features.items()
        }
        words = {"VARCHAR": "string", "BOOLEAN": "bool", "DOUBLE": "float64", "BIGINT": "int64"}
        words["VARCHAR[]"] = "string[]"
        assert types == {name: words[kind] for name, kind in DUCKDB.items()}
        assert [dict(row) for row in found] == [
            row | {name: pytest.approx(row[name], abs=1e-10) for name in TIMES if row[name]}
            for row in rows
        ]


@pytest.mark.parametrize(
    ("mark", "fields"),
    [("problems", PROBLEM), ("mapping", MAPPING), ("details", (*DETAILS, *MEASURED, *WORTH))],
)
def test_the_page_of_fields_is_in_step(mark: str, fields: tuple) -> None:
    page = FIELDS_PAGE.read_text(encoding="utf-8")
    between = page.partition(f"<!-- {mark} -->\n")[2].partition(f"<!-- /{mark} -->")[0]
    assert between == field_table(fields)


def test_the_pages_example_runs(tmp_path: Path) -> None:
    curated = Curated(tmp_path)
    all_included(curated)
    curated.export()
    code = FIELDS_PAGE.read_text(encoding="utf-8").partition("```python\n")[2].partition("```")[0]
    checks = "\nassert len(by_pandas) == len(by_polars) == len(by_datasets) == len(by_duckdb) == 3"
    environment = os.environ | {
        "PYTHONPATH": str(CLONE / "src"),
        "HF_HOME": str(tmp_path / "hf"),
        "HF_HUB_OFFLINE": "1",
    }
    command = [sys.executable, "-c", code + checks]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)


def test_each_reader_is_loaded_only_when_asked_for() -> None:
    code = (
        "import sys; import atenbench.problem, atenbench.export, atenbench.tag;"
        "import atenbench.aggregate, atenbench.mapping, atenbench.policy_report;"
        "print({'torch', 'polars', 'pandas', 'datasets'} & set(sys.modules))"
    )
    environment = os.environ | {"PYTHONPATH": str(CLONE / "src")}
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert ran.stdout.strip() == "set()"
