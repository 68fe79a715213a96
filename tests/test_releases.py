"""The curator's round in one run: the published set and new traces in, the next release out."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from atenbench.release import checked_manifest
from hub import serving

REPOSITORY = Path(__file__).parent.parent

PUBLISHED = [
    {
        "op_name": "aten.relu.default",
        "args": "((T([2, 3], f16),), {})",
        "count": 5,
        "is_synthetic": False,
        "in_models": ["TIMM/a", "TIMM/b"],
    },
    {
        "op_name": "aten.mm.default",
        "args": "((T([2, 3], f16), T([3, 4], f16)), {})",
        "count": 1,
        "is_synthetic": False,
        "in_models": ["TIMM/b"],
    },
]
TRACE = """Operator: aten.relu.default
cnt: 2, ((T([2, 3], f16),), {})
Operator: aten.tanh.default
cnt: 1, ((T([7], f16),), {})
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What one run makes of a published file on the hub and a trace, with synthetic problems."""
    folder = tmp_path_factory.mktemp("release")
    (folder / "traces/mine").mkdir(parents=True)
    (folder / "traces/mine/new.txt").write_text(TRACE)
    pq.write_table(pa.Table.from_pylist(PUBLISHED), folder / "p.parquet")
    with serving() as hub:
        commit = hub.commit("owner/set", {"p.parquet": (folder / "p.parquet").read_bytes()})
        url = f"hf://datasets/owner/set@{commit}/p.parquet"
        settings = {
            "traces": json.dumps(["traces", url]),
            "previous_release": url,
            "synthetic": 1,
            "device": "off",
        }
        command = [sys.executable, "-m", "snakemake", "--cores", "2"]
        command += ["-s", str(REPOSITORY / "Snakefile"), "--directory", str(folder)]
        command += ["--config", *(f"{key}={value}" for key, value in settings.items()), "--"]
        command += ["results/dataset/manifest.json", "results/changes.md", "results/traces/all.txt"]
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        environment |= {"HF_ENDPOINT": hub.url, "HF_HUB_CACHE": str(folder / "cache")}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    yield folder / "results"


def rows(table: Path) -> list[dict[str, Any]]:
    return list(pq.read_table(table).to_pylist())


def test_what_was_published_and_what_is_new_are_one_set(results: Path) -> None:
    real = [row for row in rows(results / "cases.parquet") if not row["is_synthetic"]]
    assert [(row["op_name"], row["count"], row["in_models"]) for row in real] == [
        ("aten.mm.default", 1, ["TIMM/b"]),
        ("aten.relu.default", 7, ["TIMM/a", "TIMM/b", "mine/new"]),
        ("aten.tanh.default", 1, ["mine/new"]),
    ]


def test_synthetic_problems_run_and_are_left_out_by_policy(results: Path) -> None:
    problems = rows(results / "backend_bench_problems.parquet")
    made_up = [row for row in problems if row["is_synthetic"]]
    assert [row["op_name"] for row in made_up] == [
        "aten.mm.default",
        "aten.relu.default",
        "aten.tanh.default",
    ]
    for row in made_up:
        assert (row["count"], row["in_models"], row["runnable"]) == (0, [], True)
        assert row["why_excluded"] == [
            "Synthetic ops are not supported in the official benchmark yet"
        ]


def test_the_changes_name_what_is_new_and_what_is_called_more(results: Path) -> None:
    found = [(row["kind"], row["op_name"]) for row in rows(results / "changes.parquet")]
    assert found == [
        ("added", "aten.mm.default"),
        ("added", "aten.relu.default"),
        ("added", "aten.tanh.default"),
        ("added", "aten.tanh.default"),
        ("recounted", "aten.relu.default"),
    ]
    assert "| mine/new" in (results / "changes.md").read_text()


def test_the_traces_written_hold_all_of_it_and_the_folder_is_whole(results: Path) -> None:
    lines = (results / "traces/all.txt").read_text().splitlines()
    counts = [int(line.split()[1].rstrip(",")) for line in lines if line.startswith("cnt:")]
    assert sorted(counts) == [0, 0, 0, 1, 1, 7]
    manifest = checked_manifest(results / "dataset")
    assert manifest["problems"] == 6
    traces = [name for name in manifest["files"] if name.startswith("traces/")]
    assert traces == ["traces/TIMM/a.txt", "traces/TIMM/b.txt", "traces/mine/new.txt"]
    assert (results / "dataset/traces/mine/new.txt").read_text() == TRACE
