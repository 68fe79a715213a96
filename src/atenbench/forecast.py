"""What the journal lets expect of problems: who is owed a visit, how long a call takes, the cap."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from atenbench.arguments import parse, render
from atenbench.planning import ROUNDS, SLOW_CALL, affordable_cap, choose_pilots, problem_seconds
from atenbench.prediction import Features, Model, features
from atenbench.settings import Settings
from atenbench.store import Entry, Store, problem_key
from atenbench.timing import Pair, combine

_PILOT_SHARE = 2_000
"""No pilot is to take more than the budget by this (0.3 s of 10 minutes)."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem and what it is measured by."""

    uuid: str
    key: str
    op_name: str
    args: str
    output_bytes: int | None
    features: Features


def problem_of(row: Mapping[str, Any], conditions: Mapping[str, Any]) -> Problem:
    """The problem of a row of the inspected table.

    Args:
        row: with at least the columns ``uuid``, ``op_name``, ``args``, ``dtypes``, ``input_bytes``,
            ``output_bytes``, ``bytes_moved`` and ``flops``.
        conditions: what else its measurement is kept by.
    """
    moved = row["bytes_moved"]
    if moved is None:  # only a device can tell; it reads its inputs at least
        moved = row["input_bytes"]
    return Problem(
        uuid=row["uuid"],
        key=problem_key(row["op_name"], render(parse(row["args"])), conditions),
        op_name=row["op_name"],
        args=row["args"],
        output_bytes=row["output_bytes"],
        features=features(row["op_name"], row["args"], row["dtypes"], moved, row["flops"]),
    )


def pairs_of(visits: Iterable[Mapping[str, Any]]) -> list[list[Pair]]:
    """The samples of some visits as the journal holds them."""
    return [[(pair[0], pair[1]) for pair in visit["pairs"]] for visit in visits]


class Forecast:
    """What is known and expected of all problems of a job, by what the journal holds.

    Attributes:
        problems: all problems of the job.
        predicted: seconds per call of each, by key; measured where it has been. Brought up to date
            by :meth:`update`.
    """

    def __init__(
        self, problems: Sequence[Problem], store: Store, settings: Settings, device: str
    ) -> None:
        self.problems = problems
        self.predicted: dict[str, float] = {}
        self._store = store
        self._passes = settings.passes
        self._limits = settings.limits(device)
        self._budget = settings.budget_seconds(device)

    def is_owed(self, problem: Problem) -> bool:
        """Whether a problem still lacks visits, or the decision to make none."""
        entry = self._store.entry(problem.key)
        if entry.visits:  # one that fails after it was timed keeps what it has
            return entry.failure is None and entry.closed < self._passes
        return entry.failure_under(self._limits) is None

    def is_slow(self, problem: Problem) -> bool:
        """Whether further visits of it come after those of all others."""
        return self.predicted[problem.key] >= SLOW_CALL

    def update(self) -> None:
        """Predict anew from all that is known by now."""
        known = self._known()
        model = Model(
            (problem.features, known[problem.key])
            for problem in self.problems
            if problem.key in known
        )
        self.predicted = {
            problem.key: known.get(problem.key) or model.predict(problem.features)
            for problem in self.problems
        }

    def pilots(self, round_number: int) -> list[Problem]:
        """The problems to visit next to learn the machine's rates; see :mod:`planning`."""
        if self._budget is None or round_number >= ROUNDS:
            return []
        candidates = {problem.key: problem for problem in self.problems if self._may_run(problem)}
        keys = choose_pilots(
            {key: problem.features for key, problem in candidates.items()},
            {key: seconds for key, seconds in self._known().items() if key in candidates},
            round_number,
            self._budget / _PILOT_SHARE,
        )
        return [candidates[key] for key in keys]

    def cap(self, conditions: Mapping[str, Any]) -> float:
        """The longest call, in seconds, that the budget has room for; infinite without a budget.

        Worked out once from all problems of the job, and kept with the store. Should more have come
        since than the budget has room for, what is owed is held to what it has room for.
        """
        if self._budget is None:
            return math.inf
        name = f"cap-{_digest({**conditions, 'budget_s': self._budget})}"
        kept = self._store.kept(name)
        if kept is not None:
            bound = math.inf if kept["cap_s"] is None else float(kept["cap_s"])
            owed = [problem for problem in self.problems if self.is_owed(problem)]
            return min(bound, affordable_cap(self._costs(owed), self._budget))
        candidates = [problem for problem in self.problems if self._may_run(problem)]
        from_scratch = [
            (seconds, problem_seconds(seconds, 0, self._passes))
            for seconds in (self.predicted[problem.key] for problem in candidates)
        ]
        cap = affordable_cap(from_scratch, self._budget)
        document = {
            "cap_s": cap if math.isfinite(cap) else None,
            "budget_s": self._budget,
            "problems": len(candidates),
            "conditions": dict(conditions),
        }
        self._store.keep(name, document)
        return cap

    def seconds_owed(self, problems: Iterable[Problem]) -> float:
        """What the visits take that are owed to some problems."""
        return sum(seconds for _, seconds in self._costs(problems))

    def _costs(self, problems: Iterable[Problem]) -> list[tuple[float, float]]:
        costs = []
        for problem in problems:
            call_seconds = self.predicted[problem.key]
            made = len(self._store.entry(problem.key).visits)
            costs.append((call_seconds, problem_seconds(call_seconds, made, self._passes)))
        return costs

    def _may_run(self, problem: Problem) -> bool:
        """Whether a problem has a runtime or might get one, were there time."""
        entry = self._store.entry(problem.key)
        failure = entry.failure_under(self._limits)
        return bool(entry.visits) or failure is None or failure["status"] == "skipped"

    def _known(self) -> dict[str, float]:
        """Seconds per call of the problems that have been visited, by key."""
        return {
            problem.key: _runtime(entry)
            for problem in self.problems
            if (entry := self._store.entry(problem.key)).visits
        }


def _runtime(entry: Entry) -> float:
    return combine(pairs_of(entry.visits)).runtime


def _digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(sorted(document.items())).encode()).hexdigest()[:16]
