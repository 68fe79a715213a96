"""Whether a call fails for want of low-precision kernels: the same call with wider floats."""

from __future__ import annotations

import dataclasses

import torch
from torch._ops import OpOverload

from atenbench.arguments import Arguments, Dtype, SparseTensor, Tensor, Value
from atenbench.tensors import call_arguments, torch_dtype

WIDER = {"f16": "f32", "bf16": "f32", "c32": "c64"}
"""Dtypes for which a device may lack kernels, and the one of 32 bits that stands for them."""


def widened(arguments: Arguments) -> Arguments:
    """The arguments with f16 and bf16 as f32 and c32 as c64, also where a dtype is a value."""
    args = tuple(_wide(value) for value in arguments.args)
    return Arguments(args, {name: _wide(value) for name, value in arguments.kwargs.items()})


def _wide(value: Value) -> Value:
    match value:
        case Tensor() | SparseTensor():
            return dataclasses.replace(value, dtype=WIDER.get(value.dtype, value.dtype))
        case Dtype(name=name):
            return Dtype(WIDER.get(name, name))
        case list():
            return [_wide(item) for item in value]
        case tuple():
            return tuple(_wide(item) for item in value)
    return value


def runs_on_meta(op: OpOverload, arguments: Arguments) -> bool:
    """Whether the operator accepts these arguments, going by tensors without data."""
    try:
        args, kwargs = call_arguments(arguments, _meta_tensor, "meta")
        op(*args, **kwargs)
    except Exception:  # whatever it is: it does not accept them
        return False
    return True


def _meta_tensor(tensor: Tensor | SparseTensor) -> torch.Tensor:
    made = torch.empty(tensor.shape, dtype=torch_dtype(tensor.dtype), device="meta")
    if isinstance(tensor, Tensor) and tensor.stride is not None:
        return made.new_empty_strided(tensor.shape, tensor.stride)
    return made
