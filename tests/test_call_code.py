"""The code that the explorer shows runs, with nothing but torch."""

import subprocess
import sys

import pytest

from atenbench.arguments import parse
from atenbench.call_code import call_code
from atenbench.operators import resolve

CALLS = {
    "aten.add.Tensor": "((T([8, 16], bf16), T([16], bf16)), {'alpha': 2})",
    "aten.mm.default": "((T([8, 16], f32), T([16, 4], f32, stride=(1, 16))), {})",
    "aten.embedding.default": "((T([10, 4], f32), T([2, 3], i64), 0), {})",
    "aten.gather.default": "((T([3, 5], f32), 1, T([3, 2], i64)), {})",
    "aten._embedding_bag.default": "((T([10, 4], f32), T([6], i64), T([3], i64)), {})",
    "aten.cat.default": "(([T([2], f16), T([3], f16)],), {})",
    "aten.index.Tensor": "((T([5, 6], f32), [T([4], i64), None]), {})",
    "aten.where.self": "((T([4], b8), T([4], f32), T([], f32)), {})",
    "aten.clamp.default": "((T([4], f32), -inf, 1.5), {})",
    "aten._to_copy.default": "((T([4], f32),), {'dtype': f16, 'device': 'cuda:0'})",
    "aten.expand_copy.default": "((T([1], c64), [3]), {})",
    "aten.sum.default": "((T([3, 4], f32, stride=(0, 0)),), {})",
    "aten.nll_loss_forward.default": "((T([3, 4], f32), T([3], i64), None, 1, -100), {})",
}


def code(op_name: str, args: str) -> str | None:
    return call_code(op_name, resolve(op_name), parse(args), "cpu")


def test_all_of_it_runs() -> None:
    script = ""
    for op_name, args in CALLS.items():
        found = code(op_name, args)
        assert found is not None, op_name
        assert found.count(f"torch.ops.{op_name}(") == 1
        script += found
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_inputs_are_as_the_arguments_say() -> None:
    found = code("aten.mm.default", CALLS["aten.mm.default"])
    assert found == (
        "import torch\n\n"
        "torch.ops.aten.mm.default(\n"
        '    torch.randn((8, 16), dtype=torch.float32, device="cpu"),\n'
        '    torch.randn((64,), dtype=torch.float32, device="cpu").as_strided((16, 4), (1, 16)),\n'
        ")\n"
    )


@pytest.mark.parametrize(
    ("op_name", "args"),
    [
        ("aten.embedding.default", "((T([0, 4], f32), T([2, 3], i64)), {})"),
        ("aten.relu.default", "((ST([5, 3], f32, torch.sparse_coo, False, 4),), {})"),
    ],
)
def test_where_no_few_words_do_there_is_none(op_name: str, args: str) -> None:
    assert code(op_name, args) is None


def test_text_stays_text() -> None:
    hostile = "');import os;os.system('echo')#"
    found = code("aten.add.Tensor", f"((T([4], f32), {hostile!r}), {{}})")
    assert found is not None and repr(hostile) in found
