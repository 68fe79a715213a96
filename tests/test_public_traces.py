"""Ingest and aggregate against the public traces, where a copy of them lies beside the clone.

They are somebody else's data and no part of this repository. `EXPECTED.json` beside them was
worked out independently of this library.
"""

import hashlib
import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from atenbench.aggregate import aggregate
from atenbench.ingest import ingest, read_renames
from atenbench.trace import find_traces
from curated import CLONE, SQL

PUBLIC = CLONE.parent / "shared" / "traces"
SUITES = {"timm": "TIMM", "huggingface": "HuggingFace", "torchbench": "TorchBench"}


@pytest.mark.skipif(not PUBLIC.exists(), reason=f"no public traces at {PUBLIC}")
def test_pairs_counts_and_digest_are_the_expected_ones(tmp_path: Path) -> None:
    expected = json.loads((PUBLIC / "EXPECTED.json").read_text())
    traces = find_traces([PUBLIC])
    calls = tmp_path / "calls.parquet"
    renames = read_renames(CLONE / "config/renames.yaml")
    ingest(traces, SUITES, renames, "error", calls, tmp_path / "rejects.parquet")
    aggregate(str(calls), str(SQL / "cases.sql"), str(tmp_path / "cases.parquet"), threads=2)
    cases = pq.read_table(tmp_path / "cases.parquet").to_pylist()
    assert len(traces) == expected["files"]
    assert sum(case["count"] for case in cases) == expected["total_count"]
    assert Counter(case["op_name"] for case in cases) == expected["pairs_per_op"]
    lines = sorted(f"{case['uuid']} {case['count']} {case['in_models_count']}" for case in cases)
    assert hashlib.sha256("\n".join(lines).encode()).hexdigest() == expected["digest"]
