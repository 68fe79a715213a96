"""The record of a measurement: its columns, and the row that a journal entry gives."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from atenbench.atomic import replacing
from atenbench.record import Field, schema
from atenbench.store import Entry
from atenbench.timing import combine

_STRING, _FLOAT, _INT, _BOOL = pa.string(), pa.float64(), pa.int64(), pa.bool_()


def _nullable(name: str, kind: pa.DataType, doc: str) -> Field:
    return Field(name, kind, doc, nullable=True)


MEASUREMENT = (
    Field("uuid", _STRING, "the problem's key"),
    Field(
        "status",
        _STRING,
        "`ok` (it has a runtime), `skipped` (predicted too slow), `unsupported` (no kernel for it "
        "on this device), `timeout`, `oom`, `too_large` (over the memory cap, never called), "
        "`crashed`, `error`, or `off`",
    ),
    _nullable("reason", _STRING, "why the status is not `ok`, in fixed words and numbers"),
    _nullable("error", _STRING, "the raw text of a failure: exception, or signal and last words"),
    _nullable(
        "runtime_ms",
        _FLOAT,
        "time of one call: mean within Tukey's fences for each visit, median over visits",
    ),
    _nullable(
        "relative_runtime_to_kernel_launch",
        _FLOAT,
        "median over all samples of the operator's time by that of the launch baseline right "
        "beside it. The baseline is an empty tensor; on CUDA timed as published "
        "(`torch.empty(0, device='cuda')` does the same there), on a CPU called through the same "
        "path as every operator, since the literal call takes a third of that",
    ),
    _nullable("measured_at", pa.timestamp("ms", tz="UTC"), "when the last visit or attempt ended"),
    _nullable("launch_ms", _FLOAT, "the baseline's time: `runtime_ms` by the ratio"),
    _nullable("ratio_low", _FLOAT, "lower end of the ratio's interval (order statistics, 94 %)"),
    _nullable("ratio_high", _FLOAT, "its upper end"),
    _nullable("median_ms", _FLOAT, "median over the samples of all visits"),
    _nullable("min_ms", _FLOAT, "the fastest sample"),
    _nullable("iqr_ms", _FLOAT, "interquartile range of all samples"),
    _nullable("samples", _INT, "how many samples"),
    _nullable("calls_per_sample", _INT, "calls in one sample, each with arguments of its own"),
    _nullable("visits", _INT, "how many visits, minutes apart"),
    _nullable("between_visit_cv", _FLOAT, "standard deviation of the visits' runtimes by mean"),
    _nullable(
        "precision_met",
        _BOOL,
        "the median's interval over all samples and the visits' runtimes are within 2 %",
    ),
    _nullable("first_call_ms", _FLOAT, "the very first call, with all that is set up only once"),
    _nullable("warm_calls", _INT, "calls before the first sample of the last visit"),
    _nullable("host_bound", _BOOL, "CUDA: launching takes the host longer than the flush lasts"),
    _nullable("synchronizes", _BOOL, "CUDA: the operator makes the host wait for the device"),
    _nullable("device_ms", _FLOAT, "CUDA: time on the device alone, behind a backlog of work"),
    _nullable("null_kernel_ms", _FLOAT, "CUDA: an empty Triton kernel in the operator's place"),
    _nullable(
        "literal_launch_ms",
        _FLOAT,
        "the literal `torch.empty(0)` on this device, once for each run",
    ),
    _nullable("predicted_s", _FLOAT, "seconds a call was predicted to take before any was made"),
    _nullable(
        "index_ranges",
        _STRING,
        "JSON list: for each tensor that must hold certain values `argument`, `item` (of a list), "
        "`row` (of coordinates), `kind`, `low` and `high` (exclusive), as they were made",
    ),
    _nullable(
        "output_equals_input",
        _BOOL,
        "the first output equals the first input of its shape and dtype (4,096 random cells)",
    ),
    _nullable("output_constant", _BOOL, "the first output holds one value (4,096 random cells)"),
    _nullable("seed", _INT, "of the random inputs"),
    _nullable("method", _INT, "version of the method: raised when timing or inputs change meaning"),
    _nullable("device", _STRING, "what was measured: model, instruction set or driver, threads"),
    _nullable("torch_version", _STRING, "torch"),
    _nullable("triton_version", _STRING, "triton, where there is one"),
    _nullable("driver_version", _STRING, "NVIDIA driver"),
    _nullable("threads", _INT, "threads of torch while measuring"),
    _nullable("cpu_affinity", _INT, "cores the process may use"),
    _nullable("allocator", _STRING, "allocator settings in the environment"),
    _nullable("flush_denormal", _BOOL, "denormal numbers are taken for 0"),
    _nullable("steal_s", _FLOAT, "time other guests of the host took during the visits"),
    _nullable("load", _FLOAT, "the machine's load average (1 min) at the last visit"),
    _nullable("gpu_clock_mhz", _INT, "SM clock, by the latest reading before the last visit"),
    _nullable("gpu_memory_clock_mhz", _INT, "memory clock, likewise"),
    _nullable("gpu_temperature_c", _INT, "temperature, likewise"),
    _nullable("gpu_power_w", _FLOAT, "power, likewise"),
    _nullable("gpu_throttle", _STRING, "active reasons for a lower clock, as a bit mask"),
)
"""The columns of ``measurements``; in ``problem_details`` they follow those of ``inspected``."""

OF_THE_RUN = (
    "device",
    "torch_version",
    "triton_version",
    "driver_version",
    "threads",
    "cpu_affinity",
    "allocator",
    "flush_denormal",
    "literal_launch_ms",
    "seed",
    "method",
)
"""Columns that are recorded once for a run of the measuring rule."""


def off(uuid: str) -> dict[str, Any]:
    """The row of a problem that no device was asked about."""
    return {"uuid": uuid, "status": "off", "reason": "device: off"}


def row(
    uuid: str,
    entry: Entry,
    limits: Mapping[str, Any],
    runs: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """The row of a problem.

    Args:
        uuid: the problem's.
        entry: what the journal holds of it.
        limits: the limits in force; a failure under other ones does not count.
        runs: the surroundings of each run in the journal.

    Raises:
        LookupError: the journal holds nothing that counts.
    """
    failure = entry.failure_under(limits)
    if not entry.visits and failure is None:
        raise LookupError(f"problem {uuid} was not measured")
    last = entry.visits[-1] if entry.visits else failure
    assert last is not None
    surroundings = runs.get(last["run"], {})
    given = {name: surroundings.get(name) for name in OF_THE_RUN}
    given |= {"uuid": uuid, "measured_at": datetime.fromisoformat(last["at"])}
    given["error"] = None if failure is None else failure.get("error")
    if not entry.visits:
        assert failure is not None
        known = ("status", "reason", "predicted_s")
        return given | {name: failure.get(name) for name in known}
    return given | {"status": "ok"} | _timed(entry.visits)


def _timed(visits: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The columns that the samples and the first visit's observations give."""
    first, last = visits[0], visits[-1]
    timing = combine([[(pair[0], pair[1]) for pair in visit["pairs"]] for visit in visits])
    seen = ("host_bound", "synchronizes", "predicted_s", "output_equals_input", "output_constant")
    runtime_ms = timing.runtime * 1e3
    return {
        **{name: first.get(name) for name in seen},
        **{name: last.get(name) for name in _READINGS},
        "runtime_ms": runtime_ms,
        "relative_runtime_to_kernel_launch": timing.ratio,
        "launch_ms": runtime_ms / timing.ratio if timing.ratio else None,
        "ratio_low": timing.ratio_low,
        "ratio_high": timing.ratio_high,
        "median_ms": timing.median * 1e3,
        "min_ms": timing.least * 1e3,
        "iqr_ms": timing.interquartile_range * 1e3,
        "samples": timing.samples,
        "calls_per_sample": last["block"],
        "visits": timing.visits,
        "between_visit_cv": timing.between_visits,
        "precision_met": timing.precise,
        "first_call_ms": first["first_call_s"] * 1e3,
        "warm_calls": last["warm_calls"],
        "device_ms": _milliseconds(first.get("device_s")),
        "null_kernel_ms": _milliseconds(first.get("null_kernel_s")),
        "index_ranges": json.dumps(first.get("index_ranges", [])),
        "steal_s": _total(visit.get("steal_s") for visit in visits),
    }


_READINGS = (
    "load",
    "gpu_clock_mhz",
    "gpu_memory_clock_mhz",
    "gpu_temperature_c",
    "gpu_power_w",
    "gpu_throttle",
)


def write(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write the rows, in the order of their uuids, whole or not at all."""
    ordered = sorted(rows, key=lambda found: str(found["uuid"]))
    with replacing(path) as part:
        table = pa.Table.from_pylist(list(ordered), schema=schema(MEASUREMENT))
        pq.write_table(table, part, compression="zstd")


def summary(rows: Sequence[Mapping[str, Any]]) -> str:
    """How many rows have each status, and what may be expected of the runtimes."""
    counts: dict[str, int] = {}
    for found in rows:
        counts[found["status"]] = counts.get(found["status"], 0) + 1
    text = ", ".join(f"{status} {count:,}" for status, count in sorted(counts.items()))
    spreads = [
        found["between_visit_cv"] for found in rows if found.get("between_visit_cv") is not None
    ]
    if spreads:
        text += f"; median spread between visits {statistics.median(spreads):.1%}"
    return text


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3


def _total(values: Any) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
