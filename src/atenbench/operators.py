"""Facts about an operator that its schema and tags hold: nothing here runs the operator."""

from __future__ import annotations

import torch
from torch._ops import OpOverload


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
