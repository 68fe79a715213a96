"""The values that a run knows without weights: positions, masks, constants, inputs given by value.

A meta tensor has no content, so a model that reads a value (`if mask.all()`) stops there. Most of
what models read does not depend on weights: whether positions count up by one, how large the
image is, where its tokens stand. :class:`KnownValues` keeps a small real tensor beside each meta
tensor that is computed from such things alone, computes it along, and answers from it. Where a
model asks whether its numbers are finite, they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

aten = torch.ops.aten

_BOOLEAN = 2**24
"""Elements up to which a boolean tensor is followed (four masks of 2,048 positions)."""

_NUMBERS = 2**22
"""Elements up to which a tensor of numbers is followed."""

_INDEXING = frozenset({aten.index.Tensor, aten.index_put.default, aten.index_put_.default})


_WITHOUT_CONTENT = frozenset(
    {aten.empty, aten.empty_strided, aten.empty_like, aten.new_empty, aten.new_empty_strided}
)


class KnownValues:
    """Meta tensor → its value, where it is known."""

    def __init__(self) -> None:
        self._values: Any = WeakTensorKeyDictionary()
        # A write of something unknown spoils every view of the same memory. The storages are
        # kept, so that no new one can be mistaken for a spoilt one.
        self._spoilt: dict[int, torch.UntypedStorage] = {}

    def give(self, tensor: torch.Tensor, value: torch.Tensor) -> None:
        """Say that a meta tensor has this value, if it is small enough to be worth following."""
        if _worth_following(value):
            self._values[tensor] = value

    def of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """The value of a tensor, or None where it is not known."""
        if tensor.device.type != "meta":
            return tensor
        value: torch.Tensor | None = self._values.get(tensor)
        if value is None or value.untyped_storage()._cdata in self._spoilt:
            return None
        return value

    def call(
        self, func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Call an operator on meta tensors; what is known of its result is known afterwards."""
        tensors = list(_tensors((args, tuple(kwargs.values()))))
        if not any(item.device.type == "meta" for item in tensors) and not _on_meta(kwargs):
            return func(*args, **kwargs)
        values = [self.of(item) for item in tensors]
        known = all(value is not None for value in values)
        if known and (_depends_on_data(func) or _leaves_for_cpu(kwargs)):
            return self._read(func, args, kwargs)
        result = func(*self._without_masks(func, args), **kwargs)
        if known and _is_determined(func):
            self._follow(func, args, kwargs, result)
        elif (sound := _of_sound_numbers(func, args)) is not None:
            self._values[result] = torch.tensor(sound).expand(result.shape)
        elif func._schema.is_mutable:
            self._spoil(func, args, kwargs)
        return result

    def _read(
        self, func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """The result of an operator whose result, or its shape, depends on the data."""
        real = func(*self._real(args), **{key: self._real(item) for key, item in kwargs.items()})
        return real if _leaves_for_cpu(kwargs) else self._as_meta(real)

    def _as_meta(self, real: Any) -> Any:
        if isinstance(real, torch.Tensor):
            sketch = real.to("meta")
            self.give(sketch, real)
            return sketch
        if isinstance(real, list | tuple):
            return type(real)(map(self._as_meta, real))
        return real

    def _follow(
        self,
        func: torch._ops.OpOverload,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        result: Any,
    ) -> None:
        outputs = list(_tensors(result))
        if not all(map(_worth_following, outputs)):
            if func._schema.is_mutable:
                self._spoil(func, args, kwargs)
            return
        try:
            real = func(
                *self._real(args), **{key: self._real(item) for key, item in kwargs.items()}
            )
        except (RuntimeError, NotImplementedError):
            return  # no such kernel on the CPU: the value stays unknown
        for output, value in zip(outputs, _tensors(real), strict=True):
            if output.device.type == "meta":
                self.give(output, value)

    def _real(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.of(value)
        if isinstance(value, list | tuple):
            return type(value)(map(self._real, value))
        if isinstance(value, torch.device) and value.type == "meta":
            return torch.device("cpu")
        return value

    def _spoil(
        self, func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        for position, argument in enumerate(func._schema.arguments):
            if argument.alias_info is None or not argument.alias_info.is_write:
                continue
            written = args[position] if position < len(args) else kwargs.get(argument.name)
            for tensor in _tensors(written):
                value = self.of(tensor) if tensor.device.type == "meta" else None
                if value is not None:
                    storage = value.untyped_storage()
                    self._spoilt[storage._cdata] = storage

    def _without_masks(self, func: torch._ops.OpOverload, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The same indexing by positions: the meta device cannot count what a mask lets through."""
        if func not in _INDEXING or args[0].device.type != "meta":
            return args
        indices: list[torch.Tensor | None] = []
        for index in args[1]:
            if index is None:
                indices.append(None)
                continue
            value = self.of(index)
            if value is not None and value.dtype in (torch.bool, torch.uint8):
                indices += [item.to("meta") for item in value.nonzero(as_tuple=True)]
            else:
                indices.append(index.to("meta"))  # CUDA takes index tensors from the CPU
        return (args[0], indices, *args[2:])


class FromPython(TorchFunctionMode):
    """Notes the values that come from Python, and reads `cuda` as the device that stands for it.

    On meta, ``torch.tensor([2, 3], device=x.device)`` and ``x[[0, -1]]`` forget their numbers
    before any operator is called.
    """

    def __init__(self, known: KnownValues) -> None:
        super().__init__()
        self.known = known

    def __torch_function__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = dict(kwargs or {})
        if "device" in kwargs:
            kwargs["device"] = _without_cuda(kwargs["device"])
        if func in (torch.Tensor.to, torch.Tensor.type):
            args = tuple(map(_without_cuda, args))
        if func is torch.Tensor.cuda:
            return args[0].to("meta")
        if func in (torch.Tensor.__getitem__, torch.Tensor.__setitem__):
            return func(args[0], _as_indices(args[1]), *args[2:])
        result = func(*args, **kwargs)
        if func in (torch.tensor, torch.as_tensor, torch.Tensor.new_tensor) and _is_meta(result):
            data = args[-1]
            if not isinstance(data, torch.Tensor):
                self.known.give(result, torch.as_tensor(data, dtype=result.dtype, device="cpu"))
        return result


def _is_meta(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == "meta"


def _without_cuda(value: Any) -> Any:
    names_cuda = isinstance(value, torch.device | str) and str(value).partition(":")[0] == "cuda"
    return torch.device("meta") if names_cuda else value


def _as_indices(index: Any) -> Any:
    """Lists of numbers as real tensors, so that indexing keeps what they say."""
    if isinstance(index, tuple):
        return tuple(map(_as_indices, index))
    if isinstance(index, list) and index and all(type(item) is int for item in index):
        return torch.tensor(index, device="cpu")
    return index


def _worth_following(tensor: torch.Tensor) -> bool:
    return tensor.numel() <= (_BOOLEAN if tensor.dtype is torch.bool else _NUMBERS)


def _of_sound_numbers(func: torch._ops.OpOverload, args: tuple[Any, ...]) -> bool | None:
    """What a test for NaN or infinity says of every number of a run that goes well."""
    if func in (aten.isnan.default, aten.isinf.default):
        return False
    if func is aten.eq.Tensor and args[0] is args[1]:  # `isfinite` asks whether x == x …
        return True
    if func is aten.ne.Scalar and args[1] == math.inf:  # … and whether |x| != inf
        return True
    return None


def _depends_on_data(func: torch._ops.OpOverload) -> bool:
    return (
        torch.Tag.data_dependent_output in func.tags or torch.Tag.dynamic_output_shape in func.tags
    ) and func not in _INDEXING


def _is_determined(func: torch._ops.OpOverload) -> bool:
    return (
        torch.Tag.nondeterministic_seeded not in func.tags
        and func.overloadpacket not in _WITHOUT_CONTENT
    )


def _leaves_for_cpu(kwargs: Mapping[str, Any]) -> bool:
    device = kwargs.get("device")
    return isinstance(device, torch.device) and device.type == "cpu"


def _on_meta(kwargs: Mapping[str, Any]) -> bool:
    device = kwargs.get("device")
    return isinstance(device, torch.device) and device.type == "meta"


def _tensors(value: object) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)
