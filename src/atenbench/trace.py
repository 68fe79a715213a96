"""Trace files: where they lie, what their names say, and the line grammar. Imports no torch.

A trace is ``{folder}/{suite}/{model}.txt`` or ``.txt.gz``; a name may end in a mode
(``{model}.train.txt``), which is no part of the model's name. Its lines are::

    Operator: aten.add.Tensor
    cnt: 3, ((T([2], f16), T([2], f16)), {})

A ``cnt:`` line belongs to the operator above it; count 0 marks a synthetic call, which no model
made. Blank lines and blanks at the ends of a line mean nothing.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

from atenbench.arguments import INT64_MAX, ArgumentError
from atenbench.canonical import canonical
from atenbench.errors import UserError

MODES = ("train", "eval", "prefill", "decode")
SUFFIXES = (".txt", ".txt.gz")


@dataclass(frozen=True, slots=True)
class TraceFile:
    """One trace file and what its place and name say."""

    path: Path
    folder: str
    """The suite's folder name, not its label."""
    model: str
    mode: str | None

    @property
    def name(self) -> str:
        """The file within its traces folder, the same on every machine."""
        return f"{self.folder}/{self.path.name}"


class CallText(NamedTuple):
    """What a good ``cnt:`` line says, whatever operator it stands under."""

    args: str
    canonical: str
    times: int


@dataclass(slots=True)
class Calls:
    """Good ``cnt:`` lines that follow each other under one operator: their numbers and texts."""

    op_name: str
    lines: list[int] = field(default_factory=list)
    texts: list[CallText] = field(default_factory=list)


@dataclass(slots=True)
class BadLine:
    """A line that is no call, and why."""

    line: int
    reason: str
    text: str


def find_traces(folders: Iterable[Path]) -> list[TraceFile]:
    """Every trace below the folders, ordered by suite folder and file name.

    Raises:
        UserError: a folder is missing or holds no trace, or two files claim one place.
    """
    found: dict[tuple[str, str], TraceFile] = {}
    for folder in folders:
        traces = list(_traces_in(folder))
        if not traces:
            raise UserError(f"{folder}: no traces there; expected {{suite}}/{{model}}.txt below it")
        for trace in traces:
            place = (trace.folder, _stem(trace.path))
            if place in found:
                raise UserError(
                    f"{trace.path}: the same suite and model as {found[place].path}; "
                    "remove or rename one of them, or its calls would count twice"
                )
            found[place] = trace
    return [found[place] for place in sorted(found)]


def _traces_in(folder: Path) -> Iterator[TraceFile]:
    try:
        suites = sorted(entry for entry in folder.iterdir() if entry.is_dir())
        files = [path for suite in suites for path in sorted(suite.iterdir())]
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror}") from None
    for path in files:
        if path.name.endswith(SUFFIXES) and not path.name.startswith(".") and path.is_file():
            model, _, mode = _stem(path).rpartition(".")
            if not model or mode not in MODES:
                yield TraceFile(path, path.parent.name, _stem(path), None)
            else:
                yield TraceFile(path, path.parent.name, model, mode)


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".txt")


def digest(traces: Sequence[TraceFile]) -> str:
    """A SHA-256 over the names and contents of the traces, to notice every change of one.

    File times say nothing here: an edited trace may carry an old one (``cp -p``, ``tar -x``).
    """
    total = hashlib.sha256()
    for trace in traces:
        try:
            content = hashlib.sha256(trace.path.read_bytes()).hexdigest()
        except OSError as error:
            raise UserError(f"{trace.path}: {error.strerror}") from None
        total.update(f"{trace.name} {content}\n".encode())
    return total.hexdigest()


_OPERATOR = re.compile(r"Operator: +(\S+)")
OPERATOR_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*){2}", re.ASCII)
_CALL = re.compile(r"cnt: +([0-9]+), *(.*)")
MOST_CALLS = 50_000
"""That are handed over at a time."""
_LONGEST_LINE = 1_000_000
_BLOCK = 2**20


class LineReader:
    """Reads the lines of traces into calls and bad lines.

    ``renames`` maps an operator name of another torch version to today's. Lines that were seen
    before are not read again: models of one family share most of their calls.
    """

    def __init__(self, renames: Mapping[str, str], remembered: int = 20_000) -> None:
        self._renames = renames
        self._remembered = remembered
        self._operators: dict[bytes, str] = {}
        self._calls: dict[bytes, CallText] = {}

    def read(self, lines: Iterable[bytes]) -> Iterator[Calls | BadLine]:
        """All lines that say something, in order; nothing is left out in silence.

        Equal lines share one :class:`CallText` as long as they are remembered.
        """
        section = _Section()
        calls = Calls("")
        number = 0
        is_silent = True
        try:
            for number, raw in enumerate(lines, start=1):
                text = self._calls.get(raw)
                if text is None or section.operator is None:
                    item = self._new(number, raw, section)
                    if not isinstance(item, CallText):
                        is_silent = is_silent and item is None and not calls.lines
                        yield from _ended(calls, item)
                        calls = Calls(section.operator or "")
                        continue
                    text = item
                calls.lines.append(number)
                calls.texts.append(text)
                if len(calls.lines) == MOST_CALLS:
                    yield calls
                    calls, is_silent = Calls(calls.op_name), False
        except DamagedTrace:
            reason = "damaged or cut short gzip data from here on"
            yield from _ended(calls, BadLine(number + 1, reason, ""))
        else:
            is_silent = is_silent and not calls.lines
            nothing = BadLine(1, "no call in the whole file: is it empty?", "")
            yield from _ended(calls, nothing if is_silent else None)

    def _new(self, number: int, raw: bytes, section: _Section) -> CallText | BadLine | None:
        """What a line says that is not known yet; None where it is good, but no call."""
        operator = self._operators.get(raw)
        if operator is not None:
            section.operator = operator
            return None
        is_call = raw.lstrip(b" \t").startswith(b"cnt:")
        try:
            if is_call and section.operator is None:
                raise _Bad(section.why_none)
            text = _text(raw, first=number == 1)
            if is_call:
                call = self._call(text)
                _remember(self._calls, raw, call, self._remembered)
                return call
            if text:
                section.operator = self._operator(text)
                if number > 1:  # the first line may start with a byte-order mark, no other may
                    _remember(self._operators, raw, section.operator, self._remembered)
            return None
        except _Bad as bad:
            if not is_call:  # what follows may belong to an operator that was meant here
                section.operator = None
                section.why_none = f"the operator line {number} above it is bad"
            return BadLine(number, str(bad), _shown(raw))

    def _operator(self, text: str) -> str:
        match = _OPERATOR.fullmatch(text)
        if not match:
            raise _Bad("neither 'Operator: NAME' nor 'cnt: N, ARGS'")
        if not OPERATOR_NAME.fullmatch(match[1]):
            raise _Bad("an operator's name must be namespace.operator.overload")
        return self._renames.get(match[1], match[1])

    def _call(self, text: str) -> CallText:
        match = _CALL.fullmatch(text)
        if not match:
            raise _Bad("not 'cnt: N, ARGS' with a count in ASCII digits")
        digits, args = match[1], match[2].strip()
        if len(digits) > 18:  # Python refuses to convert thousands of digits
            digits = digits.lstrip("0") or "0"
            if len(digits) > 19 or int(digits) > INT64_MAX:
                raise _Bad("the count does not fit 64 bits")
        try:
            return CallText(args, canonical(args), int(digits))
        except ArgumentError as error:
            raise _Bad(str(error)) from None


@dataclass(slots=True)
class _Section:
    """The operator that the lines at hand stand under, or why there is none."""

    operator: str | None = None
    why_none: str = "no Operator line above it"


def _ended(calls: Calls, item: BadLine | None) -> Iterator[Calls | BadLine]:
    """The calls gathered so far, if any, and what ended them, if it is worth a word."""
    if calls.lines:
        yield calls
    if item is not None:
        yield item


Key = TypeVar("Key")
Known = TypeVar("Known")


def _remember(memory: dict[Key, Known], key: Key, known: Known, most: int) -> None:
    """Keep what was found, in bounded memory: a full one is emptied, which costs least to track."""
    if len(memory) >= most:
        memory.clear()
    memory[key] = known


class _Bad(Exception):
    """Why the line at hand is bad."""


def _text(raw: bytes, *, first: bool) -> str:
    """The text of a line without its end, a byte-order mark, and blanks at both ends."""
    if len(raw) > _LONGEST_LINE:
        raise _Bad(f"longer than {_LONGEST_LINE:,} bytes")
    try:
        text = raw.decode("utf-8-sig" if first else "utf-8")
    except UnicodeDecodeError:
        raise _Bad("not UTF-8 text") from None
    text = text.removesuffix("\n").removesuffix("\r")
    if "\r" in text:
        raise _Bad("a carriage return inside the line")
    if "\0" in text:
        raise _Bad("a NUL byte in the line")
    return text.strip(" \t")


def _shown(raw: bytes) -> str:
    """The line as it can be kept and read: decoded as far as that goes, and of bounded length."""
    return raw[:10_000].decode("utf-8", errors="backslashreplace").rstrip("\r\n")


class DamagedTrace(Exception):
    """The rest of a trace cannot be unpacked."""


def lines_of(trace: TraceFile) -> Iterator[bytes]:
    """The raw lines of a trace, unpacked, in bounded memory: of an overlong line only the start.

    Raises:
        DamagedTrace: compressed data is damaged or cut short.
        UserError: the file cannot be read.
    """
    rest = b""
    try:
        with _opened(trace.path) as stream:
            block = b"start"
            while block:
                block = stream.read1(_BLOCK)
                lines = io.BytesIO(rest + block).readlines()
                is_cut = block and lines and not lines[-1].endswith(b"\n")
                rest = lines.pop() if is_cut else b""
                yield from lines
                if len(rest) > _LONGEST_LINE:
                    yield rest
                    rest = _behind_the_line(stream)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise DamagedTrace from None
    except OSError as error:
        raise UserError(f"{trace.path}: {error.strerror or error}") from None


def _behind_the_line(stream: io.BufferedReader | gzip.GzipFile) -> bytes:
    """Pass over the rest of a line; what was read of the next ones."""
    while block := stream.read1(_BLOCK):
        _, end, behind = block.partition(b"\n")
        if end:
            return behind
    return b""


def _opened(path: Path) -> io.BufferedReader | gzip.GzipFile:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")
