"""What can be said of a problem without a device: does it run on meta tensors, what is it, how big.

Meta tensors have shapes, strides and dtypes but no data, so an operator's own checks run and
nothing is allocated. Operators run in worker processes all the same: what crashes or hangs there
is a fact about that problem and stops nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils.flop_counter import flop_registry

from atenbench.arguments import (
    INT64_MAX,
    ArgumentError,
    Arguments,
    Device,
    Dtype,
    SparseTensor,
    Tensor,
    parse,
)
from atenbench.input_rules import needs_indices
from atenbench.operators import UnknownOperator, facts, is_random, resolve, written_tensors
from atenbench.tensors import call_arguments, torch_dtype

READER_DTYPES = frozenset("bf16 f64 f32 f16 c32 c64 c128 i8 i16 i32 i64 b8 u8".split())  # noqa: SIM905
"""The dtypes that BackendBench's own reader of arguments knows by abbreviation."""

Facts = dict[str, Any]


def inspect_case(op_name: str, args: str) -> Facts:
    """The facts of one problem: the columns of ``inspected.parquet`` behind its key.

    Never raises for anything that an operator or its arguments do.
    """
    try:
        arguments = parse(args)
    except ArgumentError as error:  # a cases table that was not made by ingest
        return _unknown() | _failed("arguments do not fit the schema", error)
    observed = _unknown() | _of_arguments(arguments)
    try:
        op = resolve(op_name)
    except UnknownOperator as error:
        return observed | _failed("operator not in this torch", error)
    return observed | _of_operator(op, arguments) | _meta_run(op, arguments)


def _unknown() -> Facts:
    """The value of each fact where nothing is known."""
    return {
        "meta_status": "failed",
        "meta_reason": None,
        "meta_error": None,
        "is_random": False,
        "is_in_place": False,
        "is_view": False,
        "is_creation": False,
        "needs_indices": False,
        "reader_understands": False,
        "degenerate_inputs": False,
        "dtypes": [],
        "input_bytes": None,
        "output_bytes": None,
        "bytes_moved": None,
        "flops": None,
    }


def _failed(reason: str, error: BaseException | str) -> Facts:
    return {"meta_status": "failed", "meta_reason": reason, "meta_error": _raw(error)}


def _raw(error: BaseException | str) -> str:
    """An error's text, of a dispatcher error without the list of every kernel's place on disk."""
    text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    return text.partition("\n")[0]


def _of_arguments(arguments: Arguments) -> Facts:
    tensors = list(arguments.tensors())
    total = sum(tensor.nbytes for tensor in tensors if isinstance(tensor, Tensor))
    return {
        "reader_understands": reader_understands(arguments),
        "degenerate_inputs": any(
            isinstance(tensor, Tensor) and tensor.numel > 1 and tensor.extent == 1
            for tensor in tensors
        ),
        "dtypes": sorted({tensor.dtype for tensor in tensors}),
        "input_bytes": total if total <= INT64_MAX else None,
    }


def reader_understands(arguments: Arguments) -> bool:
    """Whether BackendBench's own reader knows every form in the arguments.

    It knows ``T(size, dtype[, stride])``, ``torch.…`` names, ``inf``, strings and numbers; not
    sparse tensors, ``nan``, ``device(…)`` or other dtypes.
    """
    return all(_reader_knows(value) for value in arguments.values())


def _reader_knows(value: object) -> bool:
    match value:
        case Tensor() as tensor:
            return tensor.dtype in READER_DTYPES
        case Dtype(name=name):
            return name in READER_DTYPES
        case SparseTensor() | Device():
            return False
        case float() as number:
            return number == number
    return True


def _of_operator(op: OpOverload, arguments: Arguments) -> Facts:
    known = facts(op)
    return {
        "is_random": is_random(op, arguments),
        "is_in_place": known.is_in_place,
        "is_view": known.is_view,
        "is_creation": known.is_creation,
        "needs_indices": needs_indices(op),
    }


def _meta_run(op: OpOverload, arguments: Arguments) -> Facts:
    """Run the operator on meta tensors and say how that went, and how much it reads and writes."""
    if any(_span_overflows(tensor) for tensor in arguments.tensors()):
        return _failed("too large", "a tensor spans more bytes than 64 bits count")
    if any(_is_expanded(tensor) for tensor in written_tensors(op, arguments)):
        return _failed("writes to overlapping memory", "a written tensor has a stride of 0")
    try:
        args, kwargs = call_arguments(arguments, _meta_tensor, "meta")
    except Exception as error:  # torch raises many types for a layout or size it does not support
        return _failed("unsupported input", error)
    try:
        result = op(*args, **kwargs)
    except NotImplementedError as error:
        return {"meta_status": "undecided", "meta_error": _raw(error)}
    except MemoryError as error:
        return _failed("out of memory", error)
    except Exception as error:  # whatever an operator raises is a fact about it
        return _failed(_why(op, args, kwargs), error)
    return {"meta_status": "ok"} | _sizes(op, args, kwargs, result)


def _span_overflows(tensor: Tensor | SparseTensor) -> bool:
    if isinstance(tensor, Tensor):
        return tensor.nbytes > INT64_MAX or tensor.numel > INT64_MAX
    return any(size > INT64_MAX for size in tensor.shape)


def _is_expanded(value: object) -> bool:
    """Whether one element of the tensor stands in several places (a stride of 0)."""
    return (
        isinstance(value, Tensor)
        and value.stride is not None
        and any(
            size > 1 and step == 0 for size, step in zip(value.shape, value.stride, strict=True)
        )
    )


def _meta_tensor(tensor: Tensor | SparseTensor) -> torch.Tensor:
    dtype = torch_dtype(tensor.dtype)
    if isinstance(tensor, SparseTensor):
        layout = getattr(torch, tensor.layout.removeprefix("torch."))
        return torch.empty(tensor.shape, dtype=dtype, layout=layout, device="meta")
    if tensor.stride is None:
        return torch.empty(tensor.shape, dtype=dtype, device="meta")
    return torch.empty_strided(tensor.shape, tensor.stride, dtype=dtype, device="meta")


def _why(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The fixed reason of a failed run: the schema refuses the arguments, or their shapes do."""
    try:
        torch._C._check_schema_allow_fake_script_object(op._schema, *args, **kwargs)
    except RuntimeError:
        return "arguments do not fit the schema"
    return "shapes do not fit"


def _sizes(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Facts:
    inputs = list(_tensors((args, kwargs)))
    outputs = list(_tensors(result))
    fresh = [output for output in outputs if not any(_share(output, given) for given in inputs)]
    is_view = facts(op).is_view or (len(fresh) < len(outputs) and not facts(op).is_in_place)
    written = [_touched_bytes(output) for output in outputs]
    read = [] if facts(op).is_creation else [_touched_bytes(tensor) for tensor in inputs]
    return {
        "is_view": is_view,
        "output_bytes": sum(_touched_bytes(output) for output in fresh),
        "bytes_moved": 0 if is_view else sum(read) + sum(written),
        "flops": _flops(op, args, kwargs, result),
    }


def _share(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors lie in the same storage."""
    return bool(torch._C._is_alias_of(one, other))  # type: ignore[attr-defined]


def _touched_bytes(tensor: torch.Tensor) -> int:
    """The bytes of a tensor's distinct elements: an expanded dimension counts once."""
    if tensor.layout is not torch.strided:
        return 0
    elements = 1
    for size, step in zip(tensor.shape, tensor.stride(), strict=True):
        elements *= 1 if step == 0 and size > 1 else size
    return elements * tensor.element_size()


def _flops(
    op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
) -> int | None:
    """The floating-point operations, from torch's registry of formulas; None where it has none."""
    formula = flop_registry.get(op.overloadpacket)
    if formula is None:
        return None
    try:
        return int(formula(*args, **kwargs, out_val=result))
    except Exception:  # a formula for other arguments than these is no formula
        return None


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(tuple(value.values()))
    elif isinstance(value, Iterable) and not isinstance(value, str):
        for item in value:
            yield from _tensors(item)
