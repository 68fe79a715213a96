"""Facts about an operator that its schema and tags hold: nothing here runs the operator."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
from torch._ops import OpOverload

from atenbench.arguments import Arguments, Value


class UnknownOperator(LookupError):
    """This torch has no operator, or no overload, of that name."""


def resolve(op_name: str) -> OpOverload:
    """The overload that a trace's ``namespace.operator.overload`` names.

    Raises:
        UnknownOperator: this torch does not have it.
    """
    try:
        namespace, operator, overload = op_name.split(".")
        found = getattr(getattr(getattr(torch.ops, namespace), operator), overload)
    except (AttributeError, ValueError):
        raise UnknownOperator(op_name) from None
    if not isinstance(found, OpOverload):
        raise UnknownOperator(op_name)
    return found


@dataclass(frozen=True, slots=True)
class OperatorFacts:
    """What the schema and the tags of an operator say of every call of it."""

    draws_random_numbers: bool
    """Tagged ``nondeterministic_seeded``: its result comes from a random number generator."""
    is_in_place: bool
    """Some argument is written to (``Tensor(a!)``)."""
    is_view: bool
    """Some result is declared to share its storage with an argument that is not written to."""
    is_creation: bool
    """It fills new memory and reads no values: it takes no tensor, or it takes a whole set of
    tensor options (dtype, layout, device, pin_memory) and is no conversion (non_blocking)."""


_TENSOR_OPTIONS = {"dtype", "layout", "device", "pin_memory"}
_CONVERSION_OPTION = "non_blocking"


@functools.cache
def facts(op: OpOverload) -> OperatorFacts:
    """The facts that hold for every call of the operator."""
    arguments, returns = op._schema.arguments, op._schema.returns
    names = {argument.name for argument in arguments}
    takes_tensor = any(_holds_tensor(argument.type) for argument in arguments)
    takes_options = names >= _TENSOR_OPTIONS and _CONVERSION_OPTION not in names
    return OperatorFacts(
        draws_random_numbers=torch.Tag.nondeterministic_seeded in op.tags,
        is_in_place=op._schema.is_mutable,
        is_view=any(
            result.alias_info is not None and not result.alias_info.is_write for result in returns
        ),
        is_creation=not takes_tensor or takes_options,
    )


def written_tensors(op: OpOverload, arguments: Arguments) -> list[Value]:
    """The arguments that the operator writes to, as given in this call."""
    written: list[Value] = []
    for position, declared in enumerate(op._schema.arguments):
        if declared.alias_info is not None and declared.alias_info.is_write:
            given = argument_value(op, arguments, position)
            written.extend(given if isinstance(given, list | tuple) else [given])
    return written


def argument_value(op: OpOverload, arguments: Arguments, position: int) -> Value:
    """What a call gives for one argument of the schema: by keyword, by position, or the default."""
    declared = op._schema.arguments[position]
    if declared.name in arguments.kwargs:
        return arguments.kwargs[declared.name]
    if position < len(arguments.args) and not declared.kwarg_only:
        return arguments.args[position]
    default: Value = declared.default_value if declared.has_default_value() else None
    return default


_DROPOUT_PROBABILITIES = {"dropout_p", "dropout"}


def is_random(op: OpOverload, arguments: Arguments) -> bool:
    """Whether this call draws random numbers.

    An operator whose only use of them is dropout (attention, recurrent networks) draws none where
    the probability in these arguments is 0.
    """
    if not facts(op).draws_random_numbers:
        return False
    for position, declared in enumerate(op._schema.arguments):
        if declared.name in _DROPOUT_PROBABILITIES:
            return argument_value(op, arguments, position) != 0
    return True


def _holds_tensor(declared: torch._C.JitType) -> bool:
    """Whether a schema type is a tensor, or an optional or a list of tensors."""
    if isinstance(declared, torch._C.TensorType):
        return True
    if isinstance(declared, torch._C.OptionalType | torch._C.ListType):
        return _holds_tensor(declared.getElementType())
    return False
