"""The same call with its low-precision floats widened to 32 bits."""

from __future__ import annotations

import dataclasses

from atenbench.arguments import Arguments, Dtype, SparseTensor, Tensor, Value

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
