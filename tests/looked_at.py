"""A small set with something of everything, for the tests of what is looked at."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from atenbench.ingest import REJECTS
from curated import Curated

HOSTILE = "<img src=x onerror=\"window.hacked='yes'\"></script><script>window.hacked='yes'</script>"
"""Text as an attacker would put it into a trace, or into the name of one."""

HOSTILE_NAME = HOSTILE.partition("</")[0]
"""The same as far as the name of a file can hold it."""

MM_ARGS = "((T([8, 16], f16), T([16, 4], f16, stride=(1, 16))), {})"
EMBEDDING_ARGS = "((T([10, 4], f32), T([2, 3], i64)), {})"


def took(ms: float, ratio: float, **more: Any) -> dict[str, Any]:
    return {
        "runtime_ms": ms,
        "relative_runtime_to_kernel_launch": ratio,
        "ratio_low": ratio * 0.98,
        "ratio_high": ratio * 1.02,
        "launch_ms": ms / ratio,
        "median_ms": ms,
        "iqr_ms": ms / 100,
        "samples": 30,
        "visits": 2,
        "between_visit_cv": 0.01,
        "precision_met": True,
        "device": "cpu of some kind",
        **more,
    }


def small_set(folder: Path, *, measured: bool = True) -> dict[str, str]:
    """The tables ``problems``, ``details``, ``calls`` and ``rejects`` of seven problems."""
    curated = Curated(folder)

    def add(op: str, args: str, count: int, models: list[str], **more: Any) -> None:
        if not measured:
            more = {key: value for key, value in more.items() if key not in took(1, 1)}
            more["status"] = "off"
        many = {"in_models": sorted(models), "in_models_count": len(models)}
        curated.add(op, args, **({"count": count} | many | more))

    two = ["TIMM/b", "HuggingFace/a"]
    add("aten.mm.default", MM_ARGS, 10, two, **took(5, 500), flops=1024, bytes_moved=640)
    add("aten.gelu.default", "((T([8], f16),), {})", 40, ["TIMM/b"], **took(1, 100))
    add("aten.relu.default", "((T([4], f32),), {})", 9, two, **took(0.01, 1.2), dtypes=["f32"])
    skipped = {"status": "skipped", "reason": "predicted to take 3 s"}
    add("aten.embedding.default", EMBEDDING_ARGS, 3, ["TIMM/b"], **skipped)
    add("aten.cat.default", "(([T([2], f16), T([3], f16)],), {})", 7, ["TIMM/b"], **took(0.02, 2))
    add(
        "aten.view.default",
        f"((T([4], f32), {HOSTILE!r}), {{}})",
        1,
        [f"TIMM/{HOSTILE_NAME}"],
        **took(0.004, 9),
    )
    add("aten.add.Tensor", "((T([4], f32), 1), {})", 0, [], is_synthetic=True, **took(0.1, 10))
    curated.export()
    rejects = folder / "rejects.parquet"
    pq.write_table(pa.Table.from_pylist([], schema=REJECTS), rejects)
    results = folder / "results"
    return {
        "problems": str(results / "backend_bench_problems.parquet"),
        "details": str(results / "problem_details.parquet"),
        "calls": str(folder / "calls.parquet"),
        "rejects": str(rejects),
    }
