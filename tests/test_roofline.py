"""The roofs of the device: plausible, measured once, and nothing where no device is asked."""

import json
from pathlib import Path
from typing import Any

import pytest

from atenbench import roofline


def test_what_this_cpu_does_is_plausible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roofline, "_BYTES", 2**24)
    monkeypatch.setattr(roofline, "_SIZES", (128, 256))
    monkeypatch.setattr(roofline, "_TURNS", 2)
    found = roofline.measured("cpu")
    assert 1e8 < found["bytes_per_s"] < 1e13
    assert found["flops_per_s"].keys() == {"f32", "f16", "bf16"}
    assert all(1e6 < rate < 1e15 for rate in found["flops_per_s"].values())


def test_a_device_is_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[str] = []

    def measured(name: str) -> dict[str, Any]:
        turns.append(name)
        return {"bytes_per_s": 1e9, "flops_per_s": {"f32": 1e10}}

    monkeypatch.setattr(roofline, "measured", measured)
    for output in ("first.json", "second.json"):
        roofline.write_roofline(tmp_path / output, tmp_path / "store", "cpu")
    assert turns == ["cpu"]
    assert (tmp_path / "first.json").read_bytes() == (tmp_path / "second.json").read_bytes()
    assert json.loads((tmp_path / "first.json").read_text())["device"].startswith("cpu ")


def test_off_asks_no_device(tmp_path: Path) -> None:
    roofline.write_roofline(tmp_path / "roofline.json", tmp_path / "store", "off")
    assert json.loads((tmp_path / "roofline.json").read_text()) == roofline.NOTHING
    assert not (tmp_path / "store").exists()
