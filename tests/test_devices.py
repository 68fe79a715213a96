"""The CPU as a measuring device, on a real and on a passed-in clock; how it is described."""

from __future__ import annotations

import itertools
import os
import statistics

import pytest
import torch

from atenbench import machine
from atenbench.devices import CpuDevice, choose, empty_baseline
from atenbench.timing import combine


class Ticking:
    """A clock that advances by one millisecond whenever it is read."""

    def __init__(self) -> None:
        self.reads = itertools.count()

    def __call__(self) -> float:
        return next(self.reads) / 1000


def test_samples_alternate_between_operator_and_baseline() -> None:
    device = CpuDevice(Ticking())
    seen: list[int] = []
    pairs = list(device.samples(seen.append, [[((1,), {}), ((2,), {})], [((3,), {}), ((4,), {})]]))
    assert seen == [1, 2, 3, 4]
    assert [op for op, _ in pairs] == [pytest.approx(0.0005)] * 2  # 1 ms for two calls


def test_one_call_gives_its_result_and_its_seconds() -> None:
    result, seconds = CpuDevice(Ticking()).call(max, ((1, 2), {"key": None}))
    assert (result, seconds) == (2, pytest.approx(0.001))


def test_empty_over_empty_is_one() -> None:
    device = CpuDevice()
    op, call = empty_baseline(device.device)
    ratios = []
    for _ in range(5):
        blocks = [[call] * 40 for _ in range(40)]
        ratios.append(combine([list(device.samples(op, blocks))]).ratio)
    assert 0.9 < statistics.median(ratio for ratio in ratios if ratio) < 1.1


def test_memory_is_of_the_size_asked_for_and_writable() -> None:
    device = CpuDevice()
    for nbytes in (1, 512, 3 * 2**20 + 5):
        memory = device.allocate(nbytes)
        assert (memory.dtype, memory.numel()) == (torch.uint8, nbytes)
        memory.fill_(7)
        assert int(memory[-1]) == 7
    with pytest.raises(MemoryError):
        device.allocate(2**60)


def test_the_baseline_takes_the_path_of_every_operator() -> None:
    op, (args, kwargs) = empty_baseline(torch.device("cpu"))
    assert isinstance(op, torch._ops.OpOverload)
    assert op(*args, **kwargs).numel() == 0
    assert empty_baseline(torch.device("cuda", 1))[1][1] == {"device": torch.device("cuda", 1)}


def test_devices_are_chosen_by_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert choose("auto") == choose("cpu") == ["cpu"]
    assert choose("cuda") == []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert choose("auto") == choose("cuda") == ["cuda:0", "cuda:1"]
    assert choose("cpu") == ["cpu"]


def test_the_fingerprint_names_the_cpu_and_is_stable() -> None:
    found = machine.fingerprint("cpu")
    assert found == machine.fingerprint("cpu")
    assert machine.cpu_model() in found
    assert torch.backends.cpu.get_cpu_capability() in found


def test_surroundings_hold_what_is_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "17")
    monkeypatch.setenv("UNRELATED", "1")
    found = machine.surroundings("cpu")
    assert "MALLOC_TRIM_THRESHOLD_=17" in found["allocator"].split()
    assert "UNRELATED" not in found["allocator"]
    assert found["cpu_affinity"] == len(os.sched_getaffinity(0))
    assert found["flush_denormal"] is False
    torch.set_flush_denormal(True)
    try:
        assert machine.surroundings("cpu")["flush_denormal"] is True
    finally:
        torch.set_flush_denormal(False)


def test_stolen_time_only_grows() -> None:
    first, second = machine.steal_seconds(), machine.steal_seconds()
    assert first is not None and second is not None and 0 <= first <= second


def test_gpu_readings_leave_out_what_is_not_told() -> None:
    assert machine.parse_gpu_readings("1980, 2619, 41, 118.52, 0x0000000000000000\n") == {
        "gpu_clock_mhz": 1980,
        "gpu_memory_clock_mhz": 2619,
        "gpu_temperature_c": 41,
        "gpu_power_w": 118.52,
        "gpu_throttle": "0x0000000000000000",
    }
    assert machine.parse_gpu_readings("[N/A], 2619, , x, 0x4")["gpu_memory_clock_mhz"] == 2619
    assert set(machine.parse_gpu_readings("[N/A], 2619, , x, 0x4")) == {
        "gpu_memory_clock_mhz",
        "gpu_throttle",
    }
    assert machine.parse_gpu_readings("") == {}
