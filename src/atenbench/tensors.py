"""Parsed arguments → what a torch operator is called with; who makes the tensors is passed in."""

from __future__ import annotations

import re
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
    device named in the arguments becomes ``device``, whatever accelerator it was where the trace
    was made. One exception: a call that names the CPU moves data there, so on an accelerator the
    CPU stays the CPU (such a problem times a copy, not a kernel).
    """
    here = torch.device(device)

    def convert(value: Value) -> Any:
        match value:
            case Tensor() | SparseTensor():
                return make_tensor(value)
            case Dtype():
                return torch_dtype(value.name)
            case Layout() | MemoryFormat():
                return getattr(torch, value.name.removeprefix("torch."))
            case Device():
                return _place(value.type, here)
            case list():
                return [convert(item) for item in value]
            case tuple():
                return tuple(convert(item) for item in value)
        return value

    def keyword(name: str, value: Value) -> Any:
        if name == "device" and isinstance(value, str):
            return _place(_QUOTED_DEVICE.sub(r"\1", value), here)
        return convert(value)

    args = tuple(convert(value) for value in arguments.args)
    return args, {name: keyword(name, value) for name, value in arguments.kwargs.items()}


_QUOTED_DEVICE = re.compile(r"torch\.device\('(.*)'\)")
"""How the public tracer wrote some devices: the text of a device, as a string."""


def _place(named: str, here: torch.device) -> torch.device:
    """The device that takes the place of a named one."""
    return torch.device("cpu") if named == "cpu" and here.type == "cuda" else here
