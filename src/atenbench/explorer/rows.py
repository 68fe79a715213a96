"""Tables → what the explorer shows of each problem, as columns that pack well.

Repeated words (operators, models, reasons) are listed once and referred to by number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from torch._ops import OpOverload

from atenbench.arguments import DTYPES, ArgumentError, Arguments, SparseTensor, Tensor, parse
from atenbench.arguments import render as render_arguments
from atenbench.call_code import call_code
from atenbench.operators import UnknownOperator, resolve

Row = Mapping[str, Any]

_AS_THEY_ARE = (
    *("uuid", "args", "count", "runnable", "included", "synthetic", "overhead", "runtime_ms"),
    *("relative", "ratio_low", "ratio_high", "launch_ms", "median_ms", "iqr_ms", "samples"),
    *("visits", "between_visit_cv", "precision_met", "bytes_moved", "flops", "total_ms"),
    *("share", "rank", "reason", "error", "output_constant", "output_equals_input", "degenerate"),
)


class _Words:
    """Words, each with the number that stands for it."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = sorted(set(words))
        self._numbers = {word: number for number, word in enumerate(self.words)}

    def number(self, word: str) -> int:
        return self._numbers[word]

    def numbers(self, words: Iterable[str]) -> list[int]:
        return [self._numbers[word] for word in words]


def packed(rows: Sequence[Row], device: str) -> dict[str, Any]:
    """The problems as columns, and the words that they refer to.

    Args:
        rows: those of ``explorer.sql``.
        device: ``cpu`` or ``cuda``: where the code of a problem puts its tensors.
    """
    operators = _Words(row["op_name"] for row in rows)
    statuses = _Words(row["status"] for row in rows)
    listed = {
        name: _Words(word for row in rows for word in row[name])
        for name in ("in_models", "why_excluded", "dtypes")
    }
    columns: dict[str, list[Any]] = {
        name: [_short(row[name]) for row in rows] for name in _AS_THEY_ARE
    }
    columns["operator"] = [operators.number(row["op_name"]) for row in rows]
    columns["status"] = [statuses.number(row["status"]) for row in rows]
    for name, words in listed.items():
        columns[name] = [words.numbers(row[name]) for row in rows]
    columns["calls"] = [[model["calls"] for model in row["by_model"]] for row in rows]
    columns["shares"] = [[_short(model["share"]) for model in row["by_model"]] for row in rows]
    laid_out = [laid_out_and_code(row["op_name"], row["args"], device) for row in rows]
    columns["arguments"] = [arguments for arguments, _ in laid_out]
    columns["code"] = [code for _, code in laid_out]
    return {
        "operators": operators.words,
        "statuses": statuses.words,
        **{name: words.words for name, words in listed.items()},
        "columns": columns,
    }


def _short(value: Any) -> Any:
    """Six digits of a number are more than a reader or a pixel wants."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def laid_out_and_code(
    op_name: str, args: str, device: str
) -> tuple[list[list[str]] | None, str | None]:
    """A problem's arguments, one line each, and the code that runs it; None where there is none.

    A line is the name of the argument, its dtype or kind, its shape or value, and its strides and
    bytes.
    """
    try:
        arguments = parse(args)
    except ArgumentError:
        return None, None
    try:
        op = resolve(op_name)
    except UnknownOperator:
        return _lines(arguments, []), None
    names = [argument.name for argument in op._schema.arguments]
    return _lines(arguments, names), _code(op_name, op, arguments, device)


def _code(op_name: str, op: OpOverload, arguments: Arguments, device: str) -> str | None:
    if len(arguments.args) > len(op._schema.arguments):
        return None
    return call_code(op_name, op, arguments, device)


def _lines(arguments: Arguments, names: Sequence[str]) -> list[list[str]]:
    given = [
        (names[place] if place < len(names) else f"#{place + 1}", value)
        for place, value in enumerate(arguments.args)
    ]
    lines: list[list[str]] = []
    for name, value in (*given, *arguments.kwargs.items()):
        if isinstance(value, list | tuple) and any(
            isinstance(item, Tensor | SparseTensor) for item in value
        ):
            lines.extend(_line(f"{name}[{place}]", item) for place, item in enumerate(value))
        else:
            lines.append(_line(name, value))
    return lines


def _line(name: str, value: Any) -> list[str]:
    if isinstance(value, Tensor | SparseTensor):
        shape = " × ".join(map(str, value.shape)) or "scalar"
        return [name, value.dtype, shape, _storage(value)]
    text = render_arguments(Arguments((value,))).removeprefix("((").removesuffix(",), {})")
    return [name, "", text, ""]


def _storage(tensor: Tensor | SparseTensor) -> str:
    if isinstance(tensor, SparseTensor):
        stored = "" if tensor.nnz is None else f", {tensor.nnz:,} values stored"
        return f"sparse ({tensor.layout.removeprefix('torch.')}{stored})"
    size = tensor.extent * DTYPES[tensor.dtype].itemsize
    strides = "" if tensor.stride is None else f"strides {', '.join(map(str, tensor.stride))}; "
    return f"{strides}{size:,} bytes"
