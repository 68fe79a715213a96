"""The GPU check, tried out on the CPU: what it reads, compares, says and ends with."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch._ops import OpOverload

from atenbench import gpu_check
from atenbench.arguments import parse
from atenbench.comparison import ReferenceTrial, cpu_bench, do_bench_on_cpu, fresh_call
from atenbench.inputs import Call
from atenbench.operators import resolve

SOURCE = Path(__file__).parents[1] / "src"


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    (tmp_path / "own/tiny.txt").write_text(
        "Operator: aten.relu.default\ncnt: 2, ((T([64, 64], f32),), {})\n"
        "Operator: aten.embedding.default\ncnt: 1, ((T([5, 8], f32), T([2, 3], i64)), {})\n"
        "Operator: aten.mm.default\ncnt: 1, ((T([2, 3], f32), T([2, 3], f32)), {})\n"
        "Operator: aten.nosuch.default\ncnt: 1, ((T([2, 3], f32),), {})\n"
    )
    (tmp_path / "own/again.txt").write_text(
        "Operator: aten.relu.default\ncnt: 7, ((T([64, 64], f32),), {})\n"
    )
    return tmp_path


def test_problems_are_read_once_each(traces: Path) -> None:
    problems = gpu_check.read_problems(traces)
    assert len(problems) == 4
    assert ("aten.relu.default", "((T([64, 64], f32),), {})") in problems
    assert len(gpu_check.sample(problems, 0.001, 0)) == 1
    assert gpu_check.sample(problems, 0.5, 3) == gpu_check.sample(problems, 0.5, 3)


def test_what_runs_is_compared_and_the_rest_is_told(
    traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = gpu_check.compare(gpu_check.read_problems(traces), "cpu")
    assert len(found) == 2 and all(math.isfinite(ratio) for ratio in found)
    said = capsys.readouterr().out
    assert said.count("not timed") == 2 and "wall: ours" in said


def test_a_median_or_a_self_test_that_is_off_ends_with_1(
    traces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["--device", "cpu", "--traces", str(traces), "--fraction", "1"]
    monkeypatch.setattr(gpu_check, "compare", lambda *_: [0.0, 0.01, -0.01])
    monkeypatch.setattr(gpu_check, "self_test", lambda _: 1.01)
    assert gpu_check.main(arguments) == 0
    monkeypatch.setattr(gpu_check, "self_test", lambda _: 1.03)
    assert gpu_check.main(arguments) == 1
    monkeypatch.setattr(gpu_check, "self_test", lambda _: 1.0)
    monkeypatch.setattr(gpu_check, "compare", lambda *_: [0.1, 0.1, -0.1])
    assert gpu_check.main(arguments) == 1
    monkeypatch.setattr(gpu_check, "compare", lambda *_: [])
    assert gpu_check.main(arguments) == 1


def test_without_a_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert gpu_check.main([]) == 1


def test_it_imports_nothing_but_torch_and_the_standard_library() -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in sys.argv[2].split():\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "import atenbench.gpu_check, atenbench.trial, atenbench.isolation\n"
        "print(atenbench.gpu_check.self_test('cpu'))"
    )
    refused = "numpy yaml psutil pyarrow duckdb snakemake pebble filelock tqdm jsonschema"
    command = [sys.executable, "-W", "ignore", "-c", program, str(SOURCE), refused]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert 0.5 < float(said) < 2


def test_the_report_gives_quantiles() -> None:
    said = gpu_check.report([math.log(factor) for factor in (0.5, 1.0, 2.0)])
    assert "+0.000 (1.000)" in said and "-0.693 (0.500)" in said and "+0.693 (2.000)" in said


@pytest.mark.parametrize("loop", [cpu_bench, do_bench_on_cpu])
def test_the_other_ways_time_a_call(loop: Callable[[OpOverload, Call], float]) -> None:
    problem = ("aten.embedding.default", "((T([5, 8], f32), T([2, 3], i64)), {})")
    assert 1e-7 < ReferenceTrial(loop)(problem) < 1e-2


def test_fresh_inputs_are_the_references_with_valid_indices() -> None:
    op = resolve("aten.add.Tensor")
    text = "((T([40, 3], f16, stride=(1, 40)), T([40, 3], f16)), {})"
    (strided, plain), _ = fresh_call(op, parse(text))
    assert strided.stride() == (1, 40) and plain.stride() == (3, 1)
    assert float(plain.min()) >= 0 and float(plain.max()) <= 1
    op = resolve("aten.index_select.default")
    (_, _, index), _ = fresh_call(op, parse("((T([4, 3], f16), 0, T([99], i64)), {})"))
    assert int(index.max()) < 4
