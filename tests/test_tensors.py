"""Parsed arguments as torch takes them."""

from typing import Any

import pytest
import torch

from atenbench.arguments import SparseTensor, Tensor, parse
from atenbench.tensors import call_arguments, torch_dtype


def converted(text: str, device: str = "meta") -> tuple[tuple[Any, ...], dict[str, Any]]:
    def make(tensor: Tensor | SparseTensor) -> torch.Tensor:
        return torch.empty(tensor.shape, dtype=torch_dtype(tensor.dtype), device="meta")

    return call_arguments(parse(text), make, device)


def test_every_form_becomes_what_torch_takes() -> None:
    args, kwargs = converted(
        "((T([2], f16), [T([3], i64), None], (1, 2.5), f32, torch.strided, torch.channels_last),"
        " {'dtype': torch.bool, 'layout': torch.sparse_coo})"
    )
    assert args[0].shape == (2,) and args[0].dtype == torch.float16
    assert args[1][0].dtype == torch.int64 and args[1][1] is None
    assert args[2:] == ((1, 2.5), torch.float32, torch.strided, torch.channels_last)
    assert kwargs == {"dtype": torch.bool, "layout": torch.sparse_coo}


@pytest.mark.parametrize(
    ("named", "here", "becomes"),
    [
        ("'cuda'", "cpu", "cpu"),
        ("'cuda:1'", "cuda", "cuda"),
        ("device(type='cuda')", "cpu", "cpu"),
        ("device(type='cuda', index=1)", "meta", "meta"),
        ("'cpu'", "cuda", "cpu"),
        ("\"torch.device('cpu')\"", "cuda", "cpu"),
        ("device(type='cpu')", "cuda", "cpu"),
        ("\"torch.device('cpu')\"", "meta", "meta"),
        ("None", "cuda", None),
    ],
)
def test_devices(named: str, here: str, becomes: str | None) -> None:
    _, kwargs = converted(f"((T([2], f16),), {{'device': {named}}})", here)
    assert kwargs["device"] == (None if becomes is None else torch.device(becomes))


def test_only_the_device_argument_is_a_device() -> None:
    assert converted("(('cuda',), {'mode': 'cpu'})") == (("cuda",), {"mode": "cpu"})
