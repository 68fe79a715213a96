"""Builds a model whose weights take no memory, from a constructor that does not know of it.

PyTorch's own `torch.device("meta")` context breaks constructors that read a value while they
build (``[x.item() for x in torch.linspace(0, rate, depth)]``). Here small tensors and constants
are real CPU tensors until the model stands, and only what holds weights is on meta from the
start; where the two meet, the result is on meta. :func:`to_meta` then moves everything over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from atenbench.known_values import KnownValues

_READABLE = 4096
"""Elements up to which a tensor without content, or with random content, stays real."""

_CONSTANT = 2**22
"""Elements up to which a computed constant (a mask, a table of positions) stays real."""


class _Building(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sends large new tensors to meta, and whatever meets a meta tensor after them."""

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = dict(kwargs or {})
        tensors = list(_tensors((args, tuple(kwargs.values()))))
        if not tensors:
            return self._create(func, args, kwargs)
        if all(item.device.type != "meta" for item in tensors):
            return func(*args, **kwargs)
        if func._schema.is_mutable and tensors[0].device.type != "meta":
            return args[0]  # a real tensor filled from a meta one: its values are unknown
        if kwargs.get("device") is not None:
            kwargs["device"] = torch.device("meta")
        if func is torch.ops.aten._local_scalar_dense.default:
            raise ValueError("the constructor reads a value of a weight")
        return func(*_to_meta(args), **{key: _to_meta(item) for key, item in kwargs.items()})

    @staticmethod
    def _create(func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if "device" not in {argument.name for argument in func._schema.arguments}:
            return func(*args, **kwargs)
        sketch = func(*args, **(kwargs | {"device": torch.device("meta")}))
        limit = _CONSTANT if _has_content(func) else _READABLE
        return sketch if sketch.numel() > limit else func(*args, **kwargs)


def _has_content(func: torch._ops.OpOverload) -> bool:
    """Whether a creating operator decides the values: not `empty`, not a random one."""
    return (
        torch.Tag.nondeterministic_seeded not in func.tags
        and func.overloadpacket not in _WITHOUT_CONTENT
    )


_WITHOUT_CONTENT = frozenset({torch.ops.aten.empty, torch.ops.aten.empty_strided})


def _tensors(value: object) -> Any:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)


def _to_meta(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to("meta")
    if isinstance(value, list | tuple):
        return type(value)(map(_to_meta, value))
    return value


def build(construct: Callable[[], torch.nn.Module], known: KnownValues) -> torch.nn.Module:
    """Call a constructor and return its model on meta, the same weights shared as before.

    The buffers that the constructor computed (positions, masks) are known to a later recording.
    """
    with torch.random.fork_rng(devices=[]), _Building():  # type: ignore[no-untyped-call]
        torch.manual_seed(0)
        model = construct()
    return to_meta(model, known)


def to_meta(model: torch.nn.Module, known: KnownValues) -> torch.nn.Module:
    """Move every parameter and buffer to meta in place; what was shared stays shared."""
    moved: dict[int, Any] = {}
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None and parameter.device.type != "meta":
                if id(parameter) not in moved:
                    moved[id(parameter)] = torch.nn.Parameter(
                        parameter.detach().to("meta"), requires_grad=parameter.requires_grad
                    )
                module._parameters[name] = moved[id(parameter)]
        for name, buffer in module._buffers.items():
            if buffer is not None and buffer.device.type != "meta":
                if id(buffer) not in moved:
                    moved[id(buffer)] = buffer.to("meta")
                    known.give(moved[id(buffer)], buffer)
                module._buffers[name] = moved[id(buffer)]
    return model
