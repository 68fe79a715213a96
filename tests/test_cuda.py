"""CUDA as a measuring device. Needs a GPU; none was at hand when this was written."""

from __future__ import annotations

import pytest
import torch

from atenbench.devices import empty_baseline, open_device
from atenbench.isolation import Limits, Workers
from atenbench.timing import combine
from atenbench.trial import Survey, Task, Trial

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

ONE = "((T([1024, 1024], f16),), {})"


def test_empty_over_empty_is_one() -> None:
    device = open_device("cuda:0")
    op, call = empty_baseline(device.device)
    list(device.samples(op, [[call]] * 30))
    assert combine([list(device.samples(op, [[call]] * 60))]).ratio == pytest.approx(1, abs=0.02)


def test_a_visit_tells_what_a_gpu_shows() -> None:
    trial = Trial("cuda:0", 2**32)
    trial.open()
    report = trial(Task("key", "aten.relu.default", ONE))
    assert isinstance(report, dict) and report["status"] == "ok"
    assert len(report["pairs"]) >= 6 and report["block"] == 1
    assert report["synchronizes"] is False and report["device_s"] > 0
    report = trial(Task("key", "aten.nonzero.default", ONE))
    assert isinstance(report, dict) and report["synchronizes"] is True


def test_full_memory_is_told_and_survived() -> None:
    trial = Trial("cuda:0", 2**60)
    trial.open()
    huge = "((T([1099511627776], f16),), {})"
    report = trial(Task("key", "aten.relu.default", huge))
    assert isinstance(report, dict) and report["status"] == "oom"
    report = trial(Task("key", "aten.relu.default", ONE))
    assert isinstance(report, dict) and report["status"] == "ok"


def assert_on_the_device(x: torch.Tensor) -> torch.Tensor:
    return x[torch.tensor([10**6], device=x.device)]


class AssertingTrial(Trial):
    """Registers an operator that poisons the CUDA context."""

    def start(self) -> None:
        library = torch.library.Library("asserting", "DEF")
        library.define("out_of_range(Tensor x) -> Tensor")
        library.impl("out_of_range", assert_on_the_device, "CUDA")
        self.library = library
        super().start()


def test_a_device_assert_costs_one_worker_and_one_problem() -> None:
    trial = AssertingTrial("cuda:0", 2**32)
    tasks = [
        Task("before", "aten.relu.default", ONE),
        Task("poison", "asserting.out_of_range.default", ONE),
        Task("after", "aten.relu.default", ONE),
    ]
    with Workers(trial, Limits(120), initializer=trial.start) as workers:
        (survey,) = workers.map([Survey()])
        assert survey.value and survey.value["device"].startswith("cuda")
        reports = [outcome.value for outcome in workers.map(tasks)]
    assert [report["status"] for report in reports if report] == ["ok", "error", "ok"]
    assert workers.started == 2
