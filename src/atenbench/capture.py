"""Model → trace: what a run would call on CUDA, recorded on meta tensors.

A :class:`Recorder` is a dispatch mode: every operator that a step (a forward, or a forward and its
backward) calls passes through it. The step runs on meta tensors, which have shapes, dtypes and
strides but no memory, so neither weights nor a GPU are needed and a model of any size traces in
the memory of its Python objects. :mod:`atenbench.cuda_calls` makes up for what the meta device
would call otherwise than CUDA.

The text is that of the public traces, so that a problem met again gets the same uuid::

    Operator: aten.mm.default
    cnt: 2, ((T([128, 1000], f16), T([1000, 512], f16)), {})

Imports torch and nothing that is not in the standard library.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from atenbench.arguments import DTYPES
from atenbench.cuda_calls import COMPOSITES, ONE_KERNEL, as_cuda_returns, overridden
from atenbench.known_values import FromPython, KnownValues

_ABBREVIATIONS: dict[torch.dtype, str] = {
    getattr(torch, info.torch_name): name
    for name, info in DTYPES.items()
    if hasattr(torch, info.torch_name)
}

# The public traces abbreviate every dtype of a tensor, but not these two where they stand alone
# (`'dtype': torch.bool`); the uuid of a problem is a digest of the text, so the quirk is kept.
_UNABBREVIATED_VALUES = frozenset({torch.bool, torch.uint8})


class Unspellable(ValueError):
    """A value of a call that the argument language has no form for."""


class Trace:
    """The calls of one step: operator → argument text → count, in the order of the first call."""

    def __init__(self) -> None:
        self.calls: dict[str, Counter[str]] = defaultdict(Counter)
        self.unspellable: Counter[str] = Counter()

    @property
    def operators(self) -> int:
        """How many distinct operators were recorded."""
        return len(self.calls)

    @property
    def problems(self) -> int:
        """How many distinct pairs of operator and arguments were recorded."""
        return sum(map(len, self.calls.values()))

    @property
    def total(self) -> int:
        """How many calls were recorded."""
        return sum(counts.total() for counts in self.calls.values())

    def text(self) -> str:
        """The trace file's text: operators sorted, their problems in the order of first call."""
        return "".join(self._lines())

    def _lines(self) -> Iterator[str]:
        for operator in sorted(self.calls):
            yield f"Operator: {operator}\n"
            for arguments, count in self.calls[operator].items():
                yield f"cnt: {count}, {arguments}\n"


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records each aten operator called under it into :attr:`trace`.

    Args:
        everything: keep in what the public tracer leaves out (views, ``*_like`` constructors,
            calls with a memory format). Calls without a tensor going in or coming out, and
            operators whose schema takes none, are no operator problems and stay out.
        known: the values of inputs and buffers that the step may read.
    """

    def __init__(self, *, everything: bool = False, known: KnownValues | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.everything = everything
        self.known = known or KnownValues()
        self.trace = Trace()

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        composite = _decomposition(func)
        if composite is not None:
            # Only under inference mode, which skips the key at which composites come apart.
            with self:
                return composite(*args, **kwargs)
        wanted = self._wants(func, args, kwargs)
        # Spelled before the call: an in-place view operator changes the shape of its argument.
        text = self._spell(func, args, kwargs) if wanted else None
        result = as_cuda_returns(func, args, self.known.call(func, args, kwargs))
        if text is not None and any(True for _ in _tensors(result)):
            self.trace.calls[str(func)][text] += 1
        return result

    def _wants(
        self, func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> bool:
        if func.namespace != "aten" or not takes_tensors(func):
            return False
        values = (args, tuple(kwargs.values()))
        if not any(True for _ in _tensors(values)):
            return False
        return self.everything or (is_compute(func) and not _has_memory_format(values))

    def _spell(
        self, func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> str | None:
        try:
            return spell_call(args, kwargs)
        except Unspellable:
            self.trace.unspellable[str(func)] += 1
            return None


def record(
    step: Callable[[], object], *, everything: bool = False, known: KnownValues | None = None
) -> Trace:
    """Run a step on meta tensors and return the calls that CUDA would have got.

    What the step draws at random on the CPU (which layers to skip, say) is the same each time.
    """
    recorder = Recorder(everything=everything, known=known)
    with torch.random.fork_rng(devices=[]), overridden(), FromPython(recorder.known), recorder:
        torch.manual_seed(0)
        step()
    return recorder.trace


@functools.cache
def _decomposition(func: torch._ops.OpOverload) -> Callable[..., Any] | None:
    """How a composite that reached the mode whole comes apart; None for a plain operator."""
    name = func.name()  # type: ignore[no-untyped-call]
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    # Some operators have kernels of their own besides (`silu_backward`): those are no composites.
    if func in ONE_KERNEL or has_kernel(name, "Meta"):
        return None
    if not has_kernel(name, "CompositeImplicitAutograd"):
        return None
    # Not `func.decompose`, which prefers a decomposition in Python to what an eager run does.
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    return COMPOSITES.get(func) or functools.partial(func._op_dk, key)


@functools.cache
def takes_tensors(func: torch._ops.OpOverload) -> bool:
    """Whether the schema has a tensor, or a list of tensors, among its arguments."""
    return any(_holds_tensors(argument.type) for argument in func._schema.arguments)


def _holds_tensors(kind: Any) -> bool:
    return kind.isSubtypeOf(torch._C.TensorType.get()) or any(
        map(_holds_tensors, kind.containedTypes())
    )


@functools.cache
def is_compute(func: torch._ops.OpOverload) -> bool:
    """The public tracer's rule, by schema: not a ``*_like`` constructor, not a pure view.

    A view is an operator that mutates nothing and whose only result is a tensor that aliases an
    argument; one with several results (``split``, ``unbind``) stays in.
    """
    schema = func._schema
    if _constructs_alike(schema):
        return False
    if schema.is_mutable:
        return True
    results = [item for item in schema.returns if item.type is torch._C.TensorType.get()]
    if len(results) != 1:
        return True
    aliased = results[0].alias_info
    return aliased is None or not any(
        argument.alias_info and argument.alias_info.before_set & aliased.after_set
        for argument in schema.arguments
    )


_OPTIONS = frozenset({"dtype", "layout", "device", "pin_memory", "memory_format"})


def _constructs_alike(schema: Any) -> bool:
    """A new tensor's whole description beside a tensor to take it from, and nothing copied."""
    names = {argument.name for argument in schema.arguments}
    return names >= _OPTIONS and "non_blocking" not in names


def _tensors(value: object) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)


def _has_memory_format(value: object) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_has_memory_format, value))
    return isinstance(value, torch.memory_format)


def spell_call(args: Iterable[Any], kwargs: Mapping[str, Any]) -> str:
    """The arguments of one call as a trace spells them: ``((positional, ...), {keywords})``.

    Raises:
        Unspellable: a value has no form in the argument language.
    """
    keywords = ", ".join(f"{key!r}: {_spell(value)}" for key, value in kwargs.items())
    return f"({_spell(tuple(args))}, {{{keywords}}})"


def _spell(value: Any) -> str:
    match value:
        case torch.Tensor():
            return _spell_tensor(value)
        case torch.Size() | list():
            return f"[{', '.join(map(_spell, value))}]"
        case tuple():
            inner = ", ".join(map(_spell, value))
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        case torch.dtype():
            return str(value) if value in _UNABBREVIATED_VALUES else _abbreviation(value)
        case torch.device():
            return _spell_device(value)
        case torch.layout() | torch.memory_format():
            return str(value)
        case None | bool() | int() | float() | str():
            return repr(value)
    raise Unspellable(type(value).__name__)


def _abbreviation(dtype: torch.dtype) -> str:
    if dtype not in _ABBREVIATIONS:
        raise Unspellable(str(dtype))
    return _ABBREVIATIONS[dtype]


def _spell_device(device: torch.device) -> str:
    # Meta stands for CUDA; any other device is spelled the way the public traces spell it.
    return repr("cuda") if device.type in ("meta", "cuda") else repr(f"torch.device('{device}')")


def _spell_tensor(tensor: torch.Tensor) -> str:
    shape, dtype = list(tensor.shape), _abbreviation(tensor.dtype)
    if tensor.layout is torch.sparse_coo:
        return f"ST({shape}, {dtype}, {tensor.layout}, {tensor.is_coalesced()}, {tensor._nnz()})"
    if tensor.layout is not torch.strided or tensor.is_nested:
        raise Unspellable(str(tensor.layout))
    if tensor.is_contiguous():
        return f"T({shape}, {dtype})"
    return f"T({shape}, {dtype}, stride={tensor.stride()})"
