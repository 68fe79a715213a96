"""A problem → Python code that builds inputs for it and runs it with nothing but torch."""

from __future__ import annotations

import math
from collections.abc import Iterator

from torch._ops import OpOverload

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
from atenbench.input_rules import INTEGER_RANGE, INTEGERS, Domain, NoValidInput, tensor_inputs

_ONE_LINE = 100


def call_code(op_name: str, op: OpOverload, arguments: Arguments, device: str) -> str | None:
    """The code of one call; None where no valid input can be spelled out in a few words.

    Args:
        op_name: the operator's full name, as in the problems.
        op: what that names.
        arguments: the problem's arguments.
        device: where its tensors are to be, ``cpu`` or ``cuda``.
    """
    try:
        domains = iter([given.domain for given in tensor_inputs(op, arguments)])
        spell = _Speller(domains, device)
        words = [spell.value(value) for value in arguments.args]
        words += [
            f"{name}={spell.keyword(name, value)}" for name, value in arguments.kwargs.items()
        ]
    except (NoValidInput, NotImplementedError, StopIteration):
        return None
    call = f"torch.ops.{op_name}"
    line = f"{call}({', '.join(words)})"
    if len(line) > _ONE_LINE and words:
        line = "\n".join([f"{call}(", *(f"    {word}," for word in words), ")"])
    return f"import torch\n\n{line}\n"


class _Speller:
    """Spells values as Python; tensors take their domains in the order of the arguments."""

    def __init__(self, domains: Iterator[Domain | None], device: str) -> None:
        self._domains = domains
        self._device = device

    def keyword(self, name: str, value: Value) -> str:
        """A keyword argument; a device is the one that tensors are on, whatever was traced."""
        return repr(self._device) if name == "device" else self.value(value)

    def value(self, value: Value) -> str:
        """Any value."""
        match value:
            case Tensor():
                return self._tensor(value, next(self._domains))
            case SparseTensor():
                raise NotImplementedError
            case Dtype():
                return _dtype(value.name)
            case Layout() | MemoryFormat():
                return value.name
            case Device():
                return repr(self._device)
            case list():
                return f"[{', '.join(map(self.value, value))}]"
            case tuple():
                inner = ", ".join(map(self.value, value))
                return f"({inner},)" if len(value) == 1 else f"({inner})"
            case float() if not math.isfinite(value):
                return f'float("{value}")'
        return repr(value)

    def _tensor(self, tensor: Tensor, domain: Domain | None) -> str:
        if tensor.stride is None:
            return self._filled(tensor.dtype, tensor.shape, domain)
        flat = self._filled(tensor.dtype, (tensor.extent,), domain)
        return f"{flat}.as_strided({tensor.shape}, {tensor.stride})"

    def _filled(self, dtype: str, shape: tuple[int, ...], domain: Domain | None) -> str:
        on = f'device="{self._device}"'
        options = f"dtype={_dtype(dtype)}, {on}"
        if domain is not None and domain.kind in ("mask", "rows", "offsets"):
            return _structured(domain, shape, f"{_dtype(dtype)}", on)
        if dtype == "b8":
            return f"torch.rand({shape}, {on}).lt(0.5)"
        if dtype in INTEGERS:
            low, high = (domain.low, domain.high) if domain else INTEGER_RANGE
            values = f"torch.randint({int(low)}, {int(high)}, {shape}, {options})"
            return f"{values}.sort().values" if domain and domain.kind == "sorted" else values
        if domain is not None:
            return f"torch.empty({shape}, {options}).uniform_({domain.low}, {domain.high})"
        if dtype.startswith("f8"):
            return f"torch.randn({shape}, {on}).to({_dtype(dtype)})"
        return f"torch.randn({shape}, {options})"


def _dtype(name: str) -> str:
    return f"torch.{DTYPES[name].torch_name}"


def _structured(domain: Domain, shape: tuple[int, ...], dtype: str, on: str) -> str:
    """Values that hang together: a mask, a row of coordinates for each dimension, offsets."""
    if domain.kind == "mask":
        count = math.prod(shape)
        return f"torch.randperm({count}, {on}).lt({int(domain.high)}).reshape({shape})"
    if domain.kind == "rows":
        rows = [
            f"torch.randint(0, {max(high, 1)}, {shape[1:]}, dtype={dtype}, {on})"
            for high in domain.highs
        ]
        return f"torch.stack([{', '.join(rows)}])"
    if len(shape) != 1:
        raise NotImplementedError
    most, count = int(domain.high) - 1, shape[0]
    last = most if domain.closed else most * (count - 1) // max(count, 1)
    return f"torch.linspace(0, {last}, {count}, {on}).to({dtype})"
