"""Shards → measurements: every problem of a shard is timed once, whatever happens on the way.

Method: problems are visited in isolated workers, in shuffled passes over the whole shard; each
visit is written into the journal as it ends, so a killed run goes on where it stood. On a CPU,
calls that are predicted to exceed what the time budget has room for are not made. The declared
output is a snapshot of the journal. With the device ``off`` nothing is run, nor torch imported.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atenbench.errors import UserError
from atenbench.settings import METHOD, Settings
from atenbench.store import holding_one

if TYPE_CHECKING:
    from atenbench.trial import Trial

logger = logging.getLogger(__name__)


def measure_shard(
    shard: Path,
    inspected: Path,
    output: Path,
    store_folder: Path,
    settings: Settings,
    make_trial: Callable[[str, int | None, int], Trial] | None = None,
) -> None:
    """Measure a shard and write its table: one row for each of its problems, each with a status.

    Args:
        shard: the problems to measure.
        inspected: all problems of the job, since a time budget is for all of them.
        output: the table to write.
        store_folder: the journal.
        settings: how to measure.
        make_trial: in place of :class:`atenbench.trial.Trial`, to measure operators that torch does
            not have; see :func:`atenbench.session.measure_owed`.

    Raises:
        UserError: there is no such device, or its workers do not start.
    """
    from atenbench import measurement

    rows = read_problems(shard)
    if settings.device == "off":
        measurement.write([measurement.off(row["uuid"]) for row in rows], output)
        logger.info("device: off; no problem was measured")
        return
    devices = _devices(settings.device)
    locks = {f"{socket.gethostname()}-{name.replace(':', '-')}": name for name in devices}
    with holding_one(store_folder, list(locks)) as lock:
        measured = _measured(
            rows, read_problems(inspected), locks[lock], store_folder, settings, make_trial
        )
        measurement.write(measured, output)
    logger.info("%s", measurement.summary(measured))


def _measured(
    rows: Sequence[Mapping[str, Any]],
    all_rows: Sequence[Mapping[str, Any]],
    device: str,
    store_folder: Path,
    settings: Settings,
    make_trial: Callable[[str, int | None, int], Trial] | None,
) -> list[dict[str, Any]]:
    """Measure on one device, which is held; the rows of the shard's table."""
    from atenbench import measurement, trial
    from atenbench.forecast import Forecast, problem_of
    from atenbench.session import measure_owed
    from atenbench.store import Store

    store = Store(store_folder)
    conditions = _conditions(device, settings)
    problems = {row["uuid"]: problem_of(row, conditions) for row in all_rows}
    shard = [problems.get(row["uuid"]) or problem_of(row, conditions) for row in rows]
    forecast = Forecast(list(problems.values()), store, settings, device)
    measure_owed(shard, forecast, store, settings, device, conditions, make_trial or trial.Trial)
    limits = settings.limits(device)
    return [
        measurement.row(problem.uuid, store.entry(problem.key), limits, store.runs)
        for problem in shard
    ]


def read_problems(table: Path) -> list[dict[str, Any]]:
    """The problems of an inspected table, or of a shard of it, that are to be measured."""
    import pyarrow.parquet as pq

    from atenbench.shard import COLUMNS

    found: list[dict[str, Any]] = pq.read_table(table, columns=list(COLUMNS)).to_pylist()
    return [row for row in found if row["meta_status"] != "failed"]


def _devices(wanted: str) -> list[str]:
    from atenbench.devices import choose

    found = choose(wanted)
    if not found:
        raise UserError("device: cuda is wanted but torch finds none; set it to auto, cpu or off")
    return found


def _conditions(device: str, settings: Settings) -> dict[str, Any]:
    """What else a runtime depends on: a change of any finds nothing in the journal."""
    import torch

    from atenbench.machine import fingerprint

    return {
        "device": fingerprint(device),
        "torch": torch.__version__,
        "seed": settings.seed,
        "method": METHOD,
    }
