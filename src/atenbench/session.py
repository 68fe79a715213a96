"""One run of the measuring rule on one device: making the visits that are owed."""

from __future__ import annotations

import logging
import math
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from atenbench.errors import UserError
from atenbench.forecast import Forecast, Problem, pairs_of
from atenbench.isolation import Limits, Outcome, Status, Workers, WorkerStartError
from atenbench.machine import gpu_readings, steal_seconds
from atenbench.planning import ROUNDS
from atenbench.progress import Progress
from atenbench.settings import LIMITED_BY, Settings
from atenbench.store import Journal, Store
from atenbench.timing import wants_another_visit
from atenbench.trial import Report, Survey, Task, Trial

logger = logging.getLogger(__name__)

EXTRA_VISITS = 1
"""Further visits at most, for a problem whose visits leave its value open."""

WORKER_ENVIRONMENT = {
    # Else the C library returns a large result's memory after each call, and page faults of the
    # next one take most of its time (44 ms in place of 12 ms for 48 MB).
    "MALLOC_MMAP_THRESHOLD_": "4294967296",
    "MALLOC_TRIM_THRESHOLD_": "17179869184",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
"""Of a worker that measures on a CPU."""

_PILOT_TIME = 0.25  # of the budget, at most
_SECONDS_BETWEEN_READINGS = 10.0
_BUSY = 0.7  # load for each core from which other work disturbs

_STATUS = {
    Status.CRASHED: ("crashed", "the process crashed"),
    Status.OUT_OF_MEMORY: ("oom", "out of memory"),
    Status.ERROR: ("error", "raised an exception"),
}


def measure_owed(
    shard: Sequence[Problem],
    forecast: Forecast,
    store: Store,
    settings: Settings,
    device: str,
    conditions: Mapping[str, Any],
    make_trial: Callable[[str, int | None, int], Trial] = Trial,
) -> None:
    """Bring every problem of a shard to a status, with as many visits as there is time for.

    Args:
        shard: the problems.
        forecast: of all problems of the job.
        store: the journal; no worker is started where it holds all that is owed.
        settings: how to measure.
        device: ``cpu`` or ``cuda:N``; the caller holds its lock.
        conditions: what else measurements are kept by.
        make_trial: what visits a problem in a worker, from device, memory cap and seed; a picklable
            one of its own may register operators that torch does not have.

    Raises:
        UserError: the workers do not start.
    """
    owed = sum(map(forecast.is_owed, shard))
    logger.info("%s problems, %s of them known from before", _n(len(shard)), _n(len(shard) - owed))
    if not owed:
        return
    _warn_if_busy()
    trial = make_trial(device, settings.memory_cap_bytes(), settings.seed)
    environment = WORKER_ENVIRONMENT if device == "cpu" else {}
    limits = Limits(settings.time_limit_s, environment=environment)
    with ExitStack() as stack:
        pool: Workers[Task | Survey, Report] = Workers(trial, limits, initializer=trial.start)
        workers = stack.enter_context(pool)
        try:
            (seen,) = workers.map([Survey()])
            surroundings = {**(seen.value or {}), **conditions}
            journal = stack.enter_context(store.writing(surroundings))
            Session(forecast, store, journal, workers, settings, device).measure(shard, conditions)
        except WorkerStartError as error:
            raise UserError(f"device {device}: {error}") from None


class Session:
    """Visits problems in a pool of workers and writes down how each visit ends."""

    def __init__(
        self,
        forecast: Forecast,
        store: Store,
        journal: Journal,
        workers: Workers[Task | Survey, Report],
        settings: Settings,
        device: str,
    ) -> None:
        self._forecast = forecast
        self._store = store
        self._journal = journal
        self._workers = workers
        self._settings = settings
        self._limits = settings.limits(device)
        self._budget = settings.budget_seconds(device) or math.inf
        self._readings = _Readings(device)
        self._foretold: list[tuple[float, float]] = []

    def measure(self, shard: Sequence[Problem], conditions: Mapping[str, Any]) -> None:
        """Pilots, the cap, then passes over the shard, each in an order of its own."""
        started = time.monotonic()
        for round_number in range(ROUNDS):
            self._forecast.update()
            pilots = self._forecast.pilots(round_number)
            self._visit(pilots, 0, started + _PILOT_TIME * self._budget, "pilots")
        self._forecast.update()
        cap = self._forecast.cap(conditions)
        self._skip(shard, cap)
        owed = [problem for problem in shard if self._forecast.is_owed(problem)]
        expected = self._forecast.seconds_owed(owed)
        self._say_what_comes(shard, owed, cap, expected)
        self._foretold.clear()
        began = time.monotonic()
        share = len(shard) / max(len(self._forecast.problems), 1)
        deadline = started + self._budget * share
        # What was foretold is given its time, even where starting has taken most of a small budget.
        self._pass(owed, 0, max(deadline, began + expected))
        self._skip(owed, -math.inf)  # the machine was slower than foretold
        self._make_further_passes(owed, deadline)
        self._say_how_true(expected, time.monotonic() - began)

    def _make_further_passes(self, owed: Sequence[Problem], deadline: float) -> None:
        """Visits after the first, as long as there is time.

        Those of slow problems come last: they are what a spent budget leaves out.
        """
        slow = [problem for problem in owed if self._forecast.is_slow(problem)]
        quick = [problem for problem in owed if not self._forecast.is_slow(problem)]
        for problems in (quick, slow):
            for visit in range(1, self._settings.passes + EXTRA_VISITS):
                self._pass(problems, visit, deadline)
        for problem in owed:
            if self._forecast.is_owed(problem):
                self._journal.close(problem.key, self._settings.passes)

    def _pass(self, problems: Sequence[Problem], visit: int, until: float) -> None:
        due = [problem for problem in problems if self._is_due(problem, visit)]
        random.Random(self._settings.seed + visit).shuffle(due)
        self._visit(due, visit, until, f"pass {visit + 1}")

    def _is_due(self, problem: Problem, visit: int) -> bool:
        visits = self._store.entry(problem.key).visits
        if len(visits) != visit or not self._forecast.is_owed(problem):
            return False
        return visit < self._settings.passes or wants_another_visit(pairs_of(visits))

    def _visit(self, problems: Sequence[Problem], visit: int, until: float, what: str) -> None:
        if not problems:
            return
        tasks = self._tasks(problems, visit, until)
        with Progress(len(problems), what) as progress:
            for outcome in self._workers.map(tasks):
                assert isinstance(outcome.item, Task)
                self._record(outcome.item, outcome)
                progress.step()

    def _tasks(self, problems: Sequence[Problem], visit: int, until: float) -> Iterator[Task]:
        for problem in problems:
            if time.monotonic() > until:
                logger.info("the time budget is spent; no more visits")
                return
            expected = self._forecast.predicted[problem.key]
            yield Task(
                problem.key, problem.op_name, problem.args, visit, expected, problem.output_bytes
            )

    def _record(self, task: Task, outcome: Outcome[Any, Report]) -> None:
        report = self._report(outcome)
        if task.visit == 0:
            report["predicted_s"] = task.expected_s
        if report["status"] in LIMITED_BY:
            name = LIMITED_BY[report["status"]]
            report["limit"] = {name: self._limits[name]}
        report |= self._readings.now()
        self._journal.record(task.key, report)
        if report["status"] == "ok":
            if task.visit == 0 and task.expected_s:
                self._foretold.append((task.expected_s, report["pairs"][0][0]))
        elif report["status"] != "unsupported":
            logger.info("%s %s: %s", task.op_name, task.args[:200], report["status"])

    def _report(self, outcome: Outcome[Any, Report]) -> Report:
        if outcome.status is Status.OK:
            return dict(outcome.value or {})
        if outcome.status is Status.TIMEOUT:
            reason = f"no end within {self._settings.time_limit_s:g} s"
            return {"status": "timeout", "reason": reason, "error": outcome.detail}
        status, reason = _STATUS[outcome.status]
        return {"status": status, "reason": reason, "error": outcome.detail}

    def _skip(self, shard: Sequence[Problem], cap: float) -> None:
        """Write down which unvisited problems, longer a call than the cap, will not be called."""
        for problem in shard:
            expected = self._forecast.predicted[problem.key]
            visited = bool(self._store.entry(problem.key).visits)
            if visited or expected <= cap or not self._forecast.is_owed(problem):
                continue
            report = {
                "status": "skipped",
                "reason": f"predicted {expected:.3g} s",
                "predicted_s": expected,
                "limit": {"budget_s": self._limits["budget_s"]},
            }
            self._journal.record(problem.key, report)

    def _say_what_comes(
        self, shard: Sequence[Problem], owed: Sequence[Problem], cap: float, expected: float
    ) -> None:
        within = f", none longer than {cap:.3g} s a call" if math.isfinite(cap) else ""
        logger.info(
            "%s of %s problems to measure%s; about %.1f minutes",
            _n(len(owed)),
            _n(len(shard)),
            within,
            min(expected, self._budget) / 60,
        )

    def _say_how_true(self, expected: float, took: float) -> None:
        logger.info("measured in %.1f minutes; foretold %.1f", took / 60, expected / 60)
        off = sorted(max(a / b, b / a) for a, b in self._foretold if a > 0 and b > 0)
        if off:
            logger.info(
                "a call was foretold to within a factor of %.2f (median), %.2f (9 of 10)",
                statistics.median(off),
                off[int(0.9 * (len(off) - 1))],
            )


class _Readings:
    """What is noted of the machine with each visit."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._gpu: dict[str, Any] = {}
        self._read_at = -math.inf
        self._stolen = steal_seconds()

    def now(self) -> dict[str, Any]:
        """The load, the time stolen since the last visit, and a GPU's latest readings."""
        stolen, before = steal_seconds(), self._stolen
        self._stolen = stolen
        lost = None if stolen is None or before is None else round(stolen - before, 3)
        if self._device != "cpu" and time.monotonic() - self._read_at > _SECONDS_BETWEEN_READINGS:
            self._gpu, self._read_at = gpu_readings(self._device), time.monotonic()
        return {"load": _load(), "steal_s": lost, **self._gpu}


def _load() -> float | None:
    try:
        return round(os.getloadavg()[0], 2)
    except OSError:
        return None


def _warn_if_busy() -> None:
    load = _load()
    if load is not None and load > _BUSY * (os.cpu_count() or 1):
        logger.warning(
            "the machine is busy (load %.1f): runtimes will be less repeatable; ratios to the "
            "launch baseline suffer little",
            load,
        )


def _n(count: int) -> str:
    return f"{count:,}"
