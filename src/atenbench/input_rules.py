"""Declared rules (``input_rules.toml``) → what the values of each tensor argument must be."""

from __future__ import annotations

import functools
import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch._ops import OpOverload

from atenbench.arguments import Arguments, SparseTensor, Tensor, Value
from atenbench.operators import argument_value

RULES = Path(__file__).with_name("input_rules.toml")

INTEGER_RANGE = (0, 10)
"""Integers that no rule speaks of: low <= value < high. All zero would be a shortcut for many."""

FLOAT_RANGE = (-1.0, 1.0)
"""Floats that no rule speaks of: both signs, so that relu and its like are no copies."""

INTEGERS = frozenset("u8 u16 u32 u64 i8 i16 i32 i64".split())  # noqa: SIM905
_MASKS = frozenset({"b8", "u8"})


class NoValidInput(ValueError):
    """No tensor of this shape can hold valid values (an index into an empty dimension)."""


@dataclass(frozen=True, slots=True)
class Domain:
    """What the values of one tensor must be: ``low <= value < high``.

    ``kind`` is ``range`` or ``index`` (any such values), ``sorted`` (ascending), ``offsets``
    (ascending from 0; ``closed``: the last one is ``high - 1``), ``rows`` (``highs[i]`` bounds row
    i in place of ``high``) or ``mask`` (of booleans: ``high`` of them are true).
    """

    kind: str
    low: float
    high: float
    closed: bool = False
    highs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TensorInput:
    """One tensor of a call.

    Attributes:
        argument: its name in the schema.
        item: its place where the argument is a list of tensors, else None.
        tensor: its shape, dtype and strides.
        domain: what a rule demands of its values; None for plain values.
        written: the operator writes to it.
    """

    argument: str
    item: int | None
    tensor: Tensor | SparseTensor
    domain: Domain | None
    written: bool


def tensor_inputs(op: OpOverload, arguments: Arguments) -> list[TensorInput]:
    """Every tensor of a call, in the order of :meth:`Arguments.tensors`.

    Raises:
        NoValidInput: a rule leaves no value for a tensor that has elements.
    """
    positional = list(range(len(arguments.args)))
    names = {argument.name: place for place, argument in enumerate(op._schema.arguments)}
    keywords = [names[name] for name in arguments.kwargs if name in names]
    inputs: list[TensorInput] = []
    for position in positional + keywords:
        inputs.extend(_argument_inputs(op, arguments, position))
    return inputs


def used_ranges(inputs: list[TensorInput]) -> list[dict[str, Any]]:
    """The rules that gave the inputs their values, so that others can make valid ones too.

    For each tensor that a rule speaks of: ``argument``, ``item`` (in a list of tensors, else null),
    ``row`` (of a matrix of coordinates, else null), ``kind``, ``low`` and ``high`` (exclusive).
    """
    used: list[dict[str, Any]] = []
    for given in inputs:
        if given.domain is None:
            continue
        domain = given.domain
        rows = enumerate(domain.highs) if domain.highs else [(None, domain.high)]
        used.extend(
            {
                "argument": given.argument,
                "item": given.item,
                "row": row,
                "kind": domain.kind,
                "low": domain.low,
                "high": high,
            }
            for row, high in rows
        )
    return used


@functools.cache
def _rules() -> tuple[dict[str, dict[str, Any]], dict[str, frozenset[str]]]:
    """Rules by operator and argument, and undeclared writes by operator."""
    declared = tomllib.loads(RULES.read_text(encoding="utf-8"))
    values: dict[str, dict[str, Any]] = {}
    for group in declared["values"]:
        for operator in group["operators"]:
            values.setdefault(operator, {}).update(group["arguments"])
    return values, {name: frozenset(names) for name, names in declared["writes"].items()}


def needs_indices(op: OpOverload) -> bool:
    """Whether a rule demands indices or offsets of some argument of the operator."""
    rules = _rules()[0].get(_packet_name(op), {})
    names = {argument.name for argument in op._schema.arguments}
    return any(rule["kind"] != "range" and name in names for name, rule in rules.items())


def _packet_name(op: OpOverload) -> str:
    return str(op.overloadpacket._qualified_op_name).replace("::", ".")


def _argument_inputs(op: OpOverload, arguments: Arguments, position: int) -> Iterator[TensorInput]:
    declared = op._schema.arguments[position]
    given = argument_value(op, arguments, position)
    values, writes = _rules()
    packet = _packet_name(op)
    rule = values.get(packet, {}).get(declared.name)
    written = (declared.alias_info is not None and declared.alias_info.is_write) or (
        declared.name in writes.get(packet, frozenset())
    )
    call = _Call(op, arguments)
    for item, tensor in _tensors_of(given):
        domain = None if rule is None else call.domain(rule, tensor, item, given)
        yield TensorInput(declared.name, item, tensor, domain, written)


def _tensors_of(value: Value) -> Iterator[tuple[int | None, Tensor | SparseTensor]]:
    if isinstance(value, Tensor | SparseTensor):
        yield None, value
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            for _, tensor in _tensors_of(item):
                yield place, tensor


@dataclass(frozen=True, slots=True)
class _Call:
    """One call, to work out the bounds that a rule names by argument."""

    op: OpOverload
    arguments: Arguments

    def argument(self, name: str) -> Value:
        for position, declared in enumerate(self.op._schema.arguments):
            if declared.name == name:
                return argument_value(self.op, self.arguments, position)
        raise NoValidInput(f"{self.op} has no argument {name}, which its input rule names")

    def domain(
        self, rule: Mapping[str, Any], tensor: Tensor | SparseTensor, item: int | None, given: Value
    ) -> Domain | None:
        kind = rule["kind"]
        if kind == "range":
            if rule.get("integers_only") and tensor.dtype not in INTEGERS:
                return None
            return Domain("range", rule["low"], rule["high"])
        if kind == "rows":
            return self._rows(rule, tensor)
        if kind == "per_dimension":
            return self._per_dimension(rule, tensor, item, given)
        if kind == "offsets":
            closed = "closed_by" in rule and self.argument(rule["closed_by"]) is True
            return Domain("offsets", 0, self.bound(rule["upto"]) + 1, closed)
        return _filled(Domain(kind, rule.get("low", 0), self.bound(rule["below"])), tensor)

    def _rows(self, rule: Mapping[str, Any], tensor: Tensor | SparseTensor) -> Domain:
        sizes = self.argument(rule["of"])
        highs = tuple(sizes) if isinstance(sizes, list | tuple) else ()
        rows = tensor.shape[0] if tensor.shape else 0
        if len(highs) < rows:
            raise NoValidInput(f"{len(highs)} sizes for {rows} rows of coordinates")
        used = tuple(int(high) for high in highs[:rows] if isinstance(high, int))
        return _filled(Domain("rows", 0, min(used, default=1), highs=used), tensor)

    def _per_dimension(
        self, rule: Mapping[str, Any], tensor: Tensor | SparseTensor, item: int | None, given: Value
    ) -> Domain | None:
        if tensor.dtype in _MASKS:
            return self._mask(given)
        before = list(given)[:item] if isinstance(given, list | tuple) else []
        return _filled(Domain("index", 0, self.size(rule["of"], _dimensions(before))), tensor)

    def _mask(self, given: Value) -> Domain | None:
        """As many true cells as there are indices beside a mask, or values to put; else any."""
        indices = [
            math.prod(tensor.shape)
            for _, tensor in _tensors_of(given)
            if tensor.dtype not in _MASKS
        ]
        values = self.given("values")
        if indices:
            return Domain("mask", 0, max(indices))
        if isinstance(values, Tensor) and values.numel > 1:
            return Domain("mask", 0, values.shape[0])
        return None

    def given(self, name: str) -> Value:
        """An argument, None if the operator has none of that name."""
        names = {declared.name for declared in self.op._schema.arguments}
        return self.argument(name) if name in names else None

    def bound(self, bound: Mapping[str, Any]) -> int:
        """The integer that a BOUND of the rules file stands for."""
        if "size" in bound:
            return self.size(bound["size"], self.integer(bound["dim"]))
        if "product" in bound:
            sizes = self.sizes(bound["product"])
            return math.prod(sizes[dim] for dim in bound.get("dims", range(len(sizes))))
        if "elements" in bound:
            return math.prod(self.sizes(bound["elements"]))
        if "item" in bound:
            return self.sizes(bound["item"])[self.integer(bound["at"])]
        return self.integer(bound["value"])

    def size(self, name: str, dim: int) -> int:
        sizes = self.sizes(name)
        if not sizes and dim in (0, -1):
            return 1
        if not -len(sizes) <= dim < len(sizes):
            raise NoValidInput(f"{name} has no dimension {dim}")
        return sizes[dim]

    def sizes(self, name: str) -> tuple[int, ...]:
        value = self.argument(name)
        if isinstance(value, Tensor | SparseTensor):
            return value.shape
        if isinstance(value, list | tuple):
            return tuple(item for item in value if isinstance(item, int))
        raise NoValidInput(f"{name} is neither a tensor nor a list of sizes")

    def integer(self, value: int | str) -> int:
        """A number of the rules file, or the integer argument it names."""
        found = value if isinstance(value, int) else self.argument(value)
        if not isinstance(found, int):
            raise NoValidInput(f"argument {value} is no integer, as the input rule takes it to be")
        return found


def _dimensions(before: list[Value]) -> int:
    """How many dimensions the entries before an index tensor stand for."""
    return sum(
        len(entry.shape) if isinstance(entry, Tensor) and entry.dtype in _MASKS else 1
        for entry in before
    )


def _filled(domain: Domain, tensor: Tensor | SparseTensor) -> Domain:
    if domain.high <= domain.low and math.prod(tensor.shape) > 0:
        raise NoValidInput(f"no index is valid: {domain.low} <= index < {domain.high}")
    return domain
