"""Parsed arguments → what a torch operator is called with; who makes the tensors is passed in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from atenbench.arguments import (
    DTYPES,
    Arguments,
    Device,
    Dtype,
    Layout,
    MemoryFormat,
    SparseTensor,
    Tensor,
    Value,
)

MakeTensor = Callable[[Tensor | SparseTensor], torch.Tensor]


def torch_dtype(name: str) -> torch.dtype:
    """The torch dtype of an abbreviation such as ``f16``."""
    dtype = getattr(torch, DTYPES[name].torch_name)
    assert isinstance(dtype, torch.dtype)
    return dtype


def call_arguments(
    arguments: Arguments, make_tensor: MakeTensor, device: torch.device | str
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments to call an operator with.

    ``make_tensor`` is called once for each tensor, in the order of :meth:`Arguments.tensors`. A
    device named in the arguments becomes ``device``, whatever it was where the trace was made.
    """

    def convert(value: Value) -> Any:
        match value:
            case Tensor() | SparseTensor():
                return make_tensor(value)
            case Dtype():
                return torch_dtype(value.name)
            case Layout() | MemoryFormat():
                return getattr(torch, value.name.removeprefix("torch."))
            case Device():
                return torch.device(device)
            case list():
                return [convert(item) for item in value]
            case tuple():
                return tuple(convert(item) for item in value)
        return value

    def keyword(name: str, value: Value) -> Any:
        return torch.device(device) if name == "device" and value is not None else convert(value)

    args = tuple(convert(value) for value in arguments.args)
    return args, {name: keyword(name, value) for name, value in arguments.kwargs.items()}
