"""One visit in this process: what its report holds, and what becomes of failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch

from atenbench import trial
from atenbench.arguments import parse, render
from atenbench.devices import CpuDevice, Observation, open_device
from atenbench.operators import resolve
from atenbench.outputs import facts
from atenbench.precision import runs_on_meta, widened
from atenbench.timing import Pair, StopRule
from atenbench.trial import Report, Survey, Task
from atenbench.worker import Last
from planted import PlantedTrial


@pytest.fixture(scope="module")
def cpu() -> PlantedTrial:
    made = PlantedTrial("cpu", 2**30)
    made.open()
    return made


def visit(made: PlantedTrial, op_name: str, args: str, **more: Any) -> Report:
    report = made(Task("key", op_name, args, **more))
    assert isinstance(report, dict)
    return report


def test_a_first_visit_tells_samples_and_facts(cpu: PlantedTrial) -> None:
    report = visit(cpu, "aten.relu.default", "((T([64, 256], f16),), {})")
    assert report["status"] == "ok"
    assert report["block"] >= 1 and 1 <= report["warm_calls"] <= 3
    assert len(report["pairs"]) >= 6
    assert all(op > 0 and baseline > 0 for op, baseline in report["pairs"])
    assert (report["output_equals_input"], report["output_constant"]) == (False, False)
    later = visit(cpu, "aten.relu.default", "((T([64, 256], f16),), {})", visit=1)
    assert "output_constant" not in later


@pytest.mark.parametrize(
    ("op_name", "args", "equals", "constant"),
    [
        ("aten.clone.default", "((T([64, 256], f16),), {})", True, False),
        ("aten.isnan.default", "((T([64, 256], f16),), {})", False, True),
        ("aten.new_zeros.default", "((T([4], f16), [3, 5]), {})", False, True),
        ("aten.hardtanh_.default", "((T([64, 256], f16), -2.0, 2.0), {})", True, False),
        ("aten.relu_.default", "((T([64, 256], f16),), {})", False, False),
        ("aten.sum.default", "((T([64], f16),), {})", False, False),
        ("aten.new_zeros.default", "((T([4], f16), [0]), {})", None, None),
        (
            "aten.max_pool2d_with_indices.default",
            "((T([1, 2, 8, 8], f16), [2, 2]), {})",
            False,
            False,
        ),
    ],
)
def test_trivial_outputs_are_told(
    cpu: PlantedTrial, op_name: str, args: str, equals: bool | None, constant: bool | None
) -> None:
    report = visit(cpu, op_name, args)
    assert (report["output_equals_input"], report["output_constant"]) == (equals, constant)


def test_a_large_output_is_looked_at_in_random_cells() -> None:
    given = torch.rand(2000, 1000)
    assert facts(given.clone(), [given])["output_equals_input"] is True
    changed = torch.where(torch.rand(2000, 1000) < 0.01, 2.0, given)
    assert facts(changed, [given])["output_equals_input"] is False
    nans = torch.full((2000, 1000), torch.nan)
    assert facts(nans, [nans])["output_constant"] is True
    assert facts((None, given.clone()), [None, given])["output_equals_input"] is True


def test_kernels_missing_for_a_dtype_are_told_from_errors(cpu: PlantedTrial) -> None:
    norm = "((T([4, 8], {x}), T([4, 8], {x}), [8], T([4, 1], f32), T([4, 1], f32), T([8], {x}), T([8], {x}), [True, True, True]), {{}})"  # noqa: E501
    report = visit(cpu, "aten.native_layer_norm_backward.default", norm.format(x="f16"))
    assert (report["status"], report["reason"]) == ("unsupported", "no kernel for its dtype")
    assert visit(cpu, "aten.native_layer_norm_backward.default", norm.format(x="f32"))["pairs"]
    # Takes nothing but f16, which the CPU lacks.
    report = visit(cpu, "aten._softmax.default", "((T([48, 128, 128], f16), -1, True), {})")
    assert report["status"] == "unsupported"
    report = visit(cpu, "aten.mm.default", "((T([2, 3], f16), T([2, 3], f16)), {})")
    assert (report["status"], report["reason"]) == ("error", "raised an exception")


def test_widening_changes_low_precision_alone() -> None:
    text = (
        "((T([2], f16), [T([3], bf16, stride=(2,)), None], T([2], i64), f16, c32, (T([1], c32),)), "
        "{'dtype': bf16, 'other': T([2], f64)})"
    )
    assert render(widened(parse(text))) == (
        "((T([2], f32), [T([3], f32, stride=(2,)), None], T([2], i64), f32, c64, (T([1], c64),)), "
        "{'dtype': f32, 'other': T([2], f64)})"
    )
    assert runs_on_meta(resolve("aten.neg.default"), parse("((T([2], f16),), {})"))
    assert not runs_on_meta(resolve("aten.mm.default"), parse("((T([2], f16), 3), {})"))


def test_sizes_over_the_cap_are_never_made(cpu: PlantedTrial) -> None:
    report = visit(cpu, "aten.neg.default", "((T([1000000, 1000000], f32),), {})")
    assert (report["status"], report["reason"]) == (
        "too_large",
        "needs 3725.29 GiB, cap 1.00 GiB",
    )
    report = visit(cpu, "aten.neg.default", "((T([10], f32),), {})", output_bytes=2**40)
    assert report["status"] == "too_large"


def test_a_survey_tells_the_surroundings(cpu: PlantedTrial) -> None:
    found = cpu(Survey())
    assert isinstance(found, dict)
    assert found["threads"] == 1 and found["torch_version"] == torch.__version__
    assert 0 < found["literal_launch_ms"] < 1


class FakeDevice:
    """A device on which every call takes what it is told to, and which can be out of order."""

    device = torch.device("cpu")
    most_calls = 1

    def __init__(self, seconds: Sequence[float], errors: Sequence[Exception] = ()) -> None:
        self.seconds = iter(seconds)
        self.errors = list(errors)
        self.calls = 0
        self.released = 0
        self.broken = False

    def allocate(self, nbytes: int) -> torch.Tensor:
        return torch.empty(nbytes, dtype=torch.uint8)

    def memory_bytes(self) -> int:
        return 2**30

    def call(self, op: Callable[..., Any], call: Any) -> tuple[Any, float]:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return op(*call[0], **call[1]), next(self.seconds)

    def samples(self, op: Callable[..., Any], blocks: Sequence[Any]) -> Iterator[Pair]:
        for _ in blocks:
            yield next(self.seconds), 1e-6

    def baseline(self) -> float:
        return 1e-6

    def observe(self, op: Callable[..., Any], calls: Sequence[Any]) -> Observation:
        return Observation(host_bound=True, device_seconds=2e-6)

    def release_memory(self) -> None:
        self.released += 1

    def literal_baseline(self) -> float:
        return 1e-6

    def is_broken_by(self, error: BaseException) -> bool:
        return self.broken


def on_fake(monkeypatch: pytest.MonkeyPatch, device: FakeDevice, name: str = "cuda:0") -> Any:
    monkeypatch.setattr(trial, "open_device", lambda _: device)
    monkeypatch.setattr(trial, "CUDA_RULE", StopRule())
    made = PlantedTrial(name, 2**30)
    made.open()
    return made


RELU = ("aten.relu.default", "((T([8], f32),), {})")


@pytest.mark.parametrize(
    ("expected", "calls", "samples"),
    [
        (None, [0.5], 1),  # a first call of that length is the sample
        (0.4, [0.5], 1),
        (0.001, [0.5] + [0.001] * 62, 5),  # the first call has set something up
        (None, [0.006], 1),
        (None, [0.003, 0.004] + [0.004] * 9, 2),
    ],
)
def test_slow_calls_are_made_as_seldom_as_they_can_be(
    monkeypatch: pytest.MonkeyPatch, expected: float | None, calls: list[float], samples: int
) -> None:
    report = visit(on_fake(monkeypatch, FakeDevice(calls)), *RELU, expected_s=expected)
    assert len(report["pairs"]) == samples
    assert report["first_call_s"] == calls[0]


def test_what_a_gpu_shows_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    report = visit(on_fake(monkeypatch, FakeDevice([1e-4] * 70)), *RELU)
    assert (report["host_bound"], report["device_s"]) == (True, 2e-6)


def test_full_memory_is_given_back_and_the_call_made_once_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    full = torch.OutOfMemoryError("CUDA out of memory")
    device = FakeDevice([1e-4] * 70, [full])
    assert visit(on_fake(monkeypatch, device), *RELU)["status"] == "ok"
    assert device.released == 1
    device = FakeDevice([1e-4] * 70, [full, full])
    assert visit(on_fake(monkeypatch, device), *RELU)["status"] == "oom"
    # A CPU process cannot give its address space back.
    device = FakeDevice([1e-4] * 70, [MemoryError(), MemoryError()])
    made = on_fake(monkeypatch, device, "cpu")
    report = made(Task("key", *RELU))
    assert isinstance(report, Last) and report.value["status"] == "oom"


def test_a_broken_context_ends_the_worker_and_is_not_called_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device = FakeDevice([1e-4] * 70, [RuntimeError("device-side assert")])
    device.broken = True
    report = on_fake(monkeypatch, device)(Task("key", *RELU))
    assert isinstance(report, Last)
    assert (report.value["status"], report.value["reason"]) == ("error", "the device failed")
    assert device.calls == 1


def test_garbage_is_collected_only_between_many_visits(
    cpu: PlantedTrial, monkeypatch: pytest.MonkeyPatch
) -> None:
    collections: list[int] = []
    monkeypatch.setattr(trial, "_collect_garbage", lambda: collections.append(1))
    for _ in range(401):
        visit(cpu, "aten.neg.default", "((T([1000000, 1000000], f32),), {})")
    assert 2 <= len(collections) <= 3


def test_the_cpu_is_opened_by_name() -> None:
    assert isinstance(open_device("cpu"), CpuDevice)
