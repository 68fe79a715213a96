"""The argument language of operator traces: safe parse, canonical text, sizes. Imports no torch.

A trace line holds the arguments of one operator call as text, ``((positional, ...), {keywords})``,
in the spelling of PyTorch's ``operator_inp_utils``: ``T([2, 3], f16, stride=(1, 2))`` for a
tensor, ``ST([5, 3], f32, torch.sparse_coo, False, 4)`` for a sparse one, dtypes by abbreviation
or as ``torch.float16``, devices, layouts, memory formats, numbers, strings, lists and tuples.
The text is somebody else's: it is read by an allow-list over Python's ``ast`` and never evaluated.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

MAX_LENGTH = 100_000
"""Longest text accepted, in characters (the longest public one has 5,240)."""

MAX_DEPTH = 16
"""Deepest nesting of brackets accepted (the deepest public text has 5)."""

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


class ArgumentError(ValueError):
    """The text is not in the argument language; the message is the reason alone."""


@dataclass(frozen=True, slots=True)
class DtypeInfo:
    """What one dtype is called and how large its elements are (bytes)."""

    torch_name: str
    itemsize: int


# PyTorch's own abbreviations (torch/utils/_dtype_abbrs.py), kept here so that reading a trace
# needs no torch. A test holds the two against each other.
DTYPES: dict[str, DtypeInfo] = {
    "b8": DtypeInfo("bool", 1),
    "u8": DtypeInfo("uint8", 1),
    "u16": DtypeInfo("uint16", 2),
    "u32": DtypeInfo("uint32", 4),
    "u64": DtypeInfo("uint64", 8),
    "i8": DtypeInfo("int8", 1),
    "i16": DtypeInfo("int16", 2),
    "i32": DtypeInfo("int32", 4),
    "i64": DtypeInfo("int64", 8),
    "f16": DtypeInfo("float16", 2),
    "bf16": DtypeInfo("bfloat16", 2),
    "f32": DtypeInfo("float32", 4),
    "f64": DtypeInfo("float64", 8),
    "c32": DtypeInfo("complex32", 4),
    "c64": DtypeInfo("complex64", 8),
    "c128": DtypeInfo("complex128", 16),
    "f8e4m3fn": DtypeInfo("float8_e4m3fn", 1),
    "f8e4m3fnuz": DtypeInfo("float8_e4m3fnuz", 1),
    "f8e5m2": DtypeInfo("float8_e5m2", 1),
    "f8e5m2fnuz": DtypeInfo("float8_e5m2fnuz", 1),
    "f8e8m0fnu": DtypeInfo("float8_e8m0fnu", 1),
    "f4e2m1fnx2": DtypeInfo("float4_e2m1fn_x2", 1),
    "b1x8": DtypeInfo("bits1x8", 1),
    "b2x4": DtypeInfo("bits2x4", 1),
    "b4x2": DtypeInfo("bits4x2", 1),
    "b8x1": DtypeInfo("bits8", 1),
    "b16x1": DtypeInfo("bits16", 2),
}

_DTYPE_ALIASES = {
    "half": "f16",
    "float": "f32",
    "double": "f64",
    "short": "i16",
    "int": "i32",
    "long": "i64",
    "chalf": "c32",
    "cfloat": "c64",
    "cdouble": "c128",
}
_DTYPE_BY_TORCH_NAME = {info.torch_name: name for name, info in DTYPES.items()} | _DTYPE_ALIASES

LAYOUTS = frozenset(
    {
        "torch.strided",
        "torch.sparse_coo",
        "torch.sparse_csr",
        "torch.sparse_csc",
        "torch.sparse_bsr",
        "torch.sparse_bsc",
        "torch.jagged",
        "torch._mkldnn",
    }
)
MEMORY_FORMATS = frozenset(
    {
        "torch.contiguous_format",
        "torch.preserve_format",
        "torch.channels_last",
        "torch.channels_last_3d",
    }
)


@dataclass(frozen=True, slots=True)
class Dtype:
    """A dtype given as a value, by its abbreviation."""

    name: str


@dataclass(frozen=True, slots=True)
class Device:
    """A device given as a value (``device(type='cuda', index=0)``)."""

    type: str
    index: int | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout such as ``torch.strided``."""

    name: str


@dataclass(frozen=True, slots=True)
class MemoryFormat:
    """A memory format such as ``torch.channels_last``."""

    name: str


@dataclass(frozen=True, slots=True)
class Tensor:
    """A dense tensor: sizes and strides in elements; ``stride`` is None where it is contiguous."""

    shape: tuple[int, ...]
    dtype: str
    stride: tuple[int, ...] | None = None

    @property
    def numel(self) -> int:
        """The number of elements that can be addressed."""
        return math.prod(self.shape)

    @property
    def extent(self) -> int:
        """The storage span in elements: one past the largest offset, 0 for an empty tensor."""
        if self.numel == 0:
            return 0
        if self.stride is None:
            return self.numel
        return 1 + sum(
            (size - 1) * step for size, step in zip(self.shape, self.stride, strict=True)
        )

    @property
    def nbytes(self) -> int:
        """The storage span in bytes."""
        return self.extent * DTYPES[self.dtype].itemsize


@dataclass(frozen=True, slots=True)
class SparseTensor:
    """A sparse tensor: shape, dtype, layout, whether coalesced, and the number of stored values."""

    shape: tuple[int, ...]
    dtype: str
    layout: str
    coalesced: bool
    nnz: int | None = None


Value = (
    Tensor
    | SparseTensor
    | Dtype
    | Device
    | Layout
    | MemoryFormat
    | bool
    | int
    | float
    | str
    | None
    | tuple["Value", ...]
    | list["Value"]
)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The parsed arguments of one call."""

    args: tuple[Value, ...]
    kwargs: dict[str, Value] = field(default_factory=dict)

    def values(self) -> Iterator[Value]:
        """Every leaf value, positional ones first, lists and tuples walked through."""
        for value in (*self.args, *self.kwargs.values()):
            yield from _leaves(value)

    def tensors(self) -> Iterator[Tensor | SparseTensor]:
        """Every tensor, in the order of :meth:`values`."""
        for value in self.values():
            if isinstance(value, Tensor | SparseTensor):
                yield value


def _leaves(value: Value) -> Iterator[Value]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def parse(text: str) -> Arguments:
    """Read the arguments of one call.

    Raises:
        ArgumentError: the text is not in the language; nothing of it has been executed.
    """
    text = text.strip()
    if len(text) > MAX_LENGTH:
        raise ArgumentError(f"arguments longer than {MAX_LENGTH:,} characters")
    if _bracket_depth(text) > MAX_DEPTH:
        raise ArgumentError(f"brackets nested deeper than {MAX_DEPTH}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape in a string is no concern of the user
            root = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else "nested too deeply or not text"
        raise ArgumentError(f"arguments are not well formed: {reason}") from None
    return _Reader(text).arguments(root)


def render(arguments: Arguments) -> str:
    """The canonical text of parsed arguments: ``parse(render(a)) == a``."""
    positional = _render(tuple(arguments.args))
    keywords = ", ".join(f"{key!r}: {_render(value)}" for key, value in arguments.kwargs.items())
    return f"({positional}, {{{keywords}}})"


def _bracket_depth(text: str) -> int:
    """The deepest nesting; brackets inside strings count too, which only errs to the safe side."""
    depth = deepest = 0
    for bracket in re.findall(r"[\[\](){}]", text):
        if bracket in "([{":
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth -= 1
    return deepest


_INTEGER = re.compile(r"0|[1-9][0-9]*")
_FLOAT = re.compile(r"([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+")


def _dotted(node: ast.expr) -> str | None:
    """``a.b`` of a name or of one attribute of a name, else None."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return None


class _Reader:
    """Turns allowed ``ast`` nodes of one text into values; every other node is an error."""

    def __init__(self, text: str) -> None:
        self.source = text.encode()

    def arguments(self, root: ast.expr) -> Arguments:
        """The outermost form: a tuple of a tuple and a dict, and nothing behind it."""
        if (
            not isinstance(root, ast.Tuple)
            or len(root.elts) != 2
            or not isinstance(root.elts[0], ast.Tuple)
            or not isinstance(root.elts[1], ast.Dict)
        ):
            raise ArgumentError("arguments must be ((positional, ...), {keywords})")
        if (root.col_offset, root.end_col_offset) != (0, len(self.source)):
            raise ArgumentError("text before or behind the arguments")
        positional, keywords = root.elts
        assert isinstance(positional, ast.Tuple) and isinstance(keywords, ast.Dict)
        return Arguments(tuple(map(self.value, positional.elts)), self.keywords(keywords))

    def keywords(self, node: ast.Dict) -> dict[str, Value]:
        kwargs: dict[str, Value] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
                raise ArgumentError("a keyword must be a quoted name")
            if not key.value.isidentifier():
                raise ArgumentError(f"{key.value!r} is no keyword name")
            if key.value in kwargs:
                raise ArgumentError(f"keyword {key.value!r} given twice")
            kwargs[key.value] = self.value(value)
        return kwargs

    def value(self, node: ast.expr) -> Value:
        match node:
            case ast.List(elts=items):
                return [self.value(item) for item in items]
            case ast.Tuple(elts=items):
                return tuple(self.value(item) for item in items)
            case ast.Constant():
                return self.constant(node)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.negative(operand)
            case ast.Call():
                return self.call(node)
            case ast.Name() | ast.Attribute():
                return self.name(node)
        raise ArgumentError(f"form not allowed: {type(node).__name__}")

    def constant(self, node: ast.Constant) -> Value:
        value = node.value
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, int | float):
            return self.number(node, negative=False)
        raise ArgumentError(f"form not allowed: {type(value).__name__} literal")

    def number(self, node: ast.Constant, *, negative: bool) -> int | float:
        literal = self.source[node.col_offset : node.end_col_offset].decode()
        value = node.value
        assert isinstance(value, int | float)
        if isinstance(value, int):
            if not _INTEGER.fullmatch(literal) or (negative and value == 0):
                raise ArgumentError(f"not a canonical number: {literal[:40]}")
        elif not _FLOAT.fullmatch(literal):
            raise ArgumentError(f"not a canonical number: {literal[:40]}")
        value = -value if negative else value
        if isinstance(value, int) and not INT64_MIN <= value <= INT64_MAX:
            raise ArgumentError(f"integer does not fit 64 bits: {literal[:40]}")
        if isinstance(value, float) and math.isinf(value):
            raise ArgumentError(f"number out of range: {literal[:40]}")
        return value

    def negative(self, operand: ast.expr) -> int | float:
        if isinstance(operand, ast.Constant) and type(operand.value) in (int, float):
            return self.number(operand, negative=True)
        if isinstance(operand, ast.Name) and operand.id in ("inf", "nan"):
            return -float(operand.id)
        raise ArgumentError("only a number can be negative")

    def name(self, node: ast.expr) -> Value:
        name = _dotted(node)
        if name in ("inf", "nan"):
            return float(name)
        if name in LAYOUTS:
            return Layout(name)
        if name in MEMORY_FORMATS:
            return MemoryFormat(name)
        if name is None:
            raise ArgumentError("form not allowed: attribute of an expression")
        return Dtype(self.dtype(node))

    def dtype(self, node: ast.expr) -> str:
        name = _dotted(node)
        if name in DTYPES:
            return name
        if name is not None and name.startswith("torch."):
            known = _DTYPE_BY_TORCH_NAME.get(name.removeprefix("torch."))
            if known:
                return known
        raise ArgumentError(f"unknown name {name}" if name else "a dtype must be a name")

    def call(self, node: ast.Call) -> Value:
        name = _dotted(node.func)
        if any(isinstance(item, ast.Starred) for item in node.args) or any(
            keyword.arg is None for keyword in node.keywords
        ):
            raise ArgumentError("form not allowed: Starred")
        keywords = {str(keyword.arg): keyword.value for keyword in node.keywords}
        if name == "T":
            return self.tensor(node.args, keywords)
        if name == "ST":
            return self.sparse_tensor(node.args, keywords)
        if name in ("device", "torch.device"):
            return self.device(node.args, keywords)
        raise ArgumentError(f"only T, ST and device can be called, not {name or 'an expression'}")

    def tensor(self, args: list[ast.expr], keywords: dict[str, ast.expr]) -> Tensor:
        if keywords.keys() - {"stride"} or len(args) + len(keywords) not in (2, 3) or len(args) < 2:
            raise ArgumentError("a tensor must be T(shape, dtype) or T(shape, dtype, stride=(...))")
        shape = self.sizes(args[0], "shape")
        stride_node = keywords.get("stride", args[2] if len(args) == 3 else None)
        stride = None if stride_node is None else self.sizes(stride_node, "stride")
        if stride is not None and len(stride) != len(shape):
            raise ArgumentError(f"{len(stride)} strides for {len(shape)} dimensions")
        if stride == contiguous_stride(shape):
            stride = None
        return Tensor(shape, self.dtype(args[1]), stride)

    def sparse_tensor(self, args: list[ast.expr], keywords: dict[str, ast.expr]) -> SparseTensor:
        form = "a sparse tensor must be ST(shape, dtype, layout, coalesced[, nnz])"
        if keywords or len(args) not in (4, 5):
            raise ArgumentError(form)
        layout, coalesced = _dotted(args[2]), self.value(args[3])
        nnz = self.value(args[4]) if len(args) == 5 else None
        if layout not in LAYOUTS or not isinstance(coalesced, bool):
            raise ArgumentError(form)
        if nnz is not None and (type(nnz) is not int or nnz < 0):
            raise ArgumentError(form)
        shape = self.sizes(args[0], "shape")
        return SparseTensor(shape, self.dtype(args[1]), layout, coalesced, nnz)

    def device(self, args: list[ast.expr], keywords: dict[str, ast.expr]) -> Device:
        form = "a device must be device(type='cuda', index=0)"
        given = dict(zip(("type", "index"), args, strict=False))
        if len(args) > 2 or given.keys() & keywords.keys():
            raise ArgumentError(form)
        values = {key: self.value(node) for key, node in (given | keywords).items()}
        device_type, index = values.pop("type", None), values.pop("index", None)
        if values or not isinstance(device_type, str):
            raise ArgumentError(form)
        kind, _, suffix = device_type.partition(":")
        if suffix.isdecimal() and suffix.isascii() and index is None:
            index = int(suffix)
        elif suffix:
            raise ArgumentError(form)
        if not (kind.isascii() and kind.isidentifier()):
            raise ArgumentError(form)
        if index is not None and (type(index) is not int or index < 0):
            raise ArgumentError(form)
        return Device(kind, index)

    def sizes(self, node: ast.expr, what: str) -> tuple[int, ...]:
        if not isinstance(node, ast.List | ast.Tuple):
            raise ArgumentError(f"a {what} must be a list of integers")
        sizes: list[int] = []
        for item in map(self.value, node.elts):
            if type(item) is not int:
                raise ArgumentError(f"a {what} must be a list of integers")
            if item < 0:
                raise ArgumentError(f"negative number in a {what}: {item}")
            sizes.append(item)
        return tuple(sizes)


def contiguous_stride(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The row-major strides, counted as torch counts them (an empty dimension counts as one)."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def _render(value: Value) -> str:
    match value:
        case Tensor():
            stride = "" if value.stride is None else f", stride={value.stride!r}"
            return f"T({list(value.shape)!r}, {value.dtype}{stride})"
        case SparseTensor():
            nnz = "" if value.nnz is None else f", {value.nnz}"
            return (
                f"ST({list(value.shape)!r}, {value.dtype}, {value.layout}, {value.coalesced}{nnz})"
            )
        case Device():
            index = "" if value.index is None else f", index={value.index}"
            return f"device(type={value.type!r}{index})"
        case Dtype() | Layout() | MemoryFormat():
            return value.name
        case list():
            return f"[{', '.join(map(_render, value))}]"
        case tuple():
            inner = ", ".join(map(_render, value))
            return f"({inner},)" if len(value) == 1 else f"({inner})"
    return repr(value)
