"""Arguments as text → their canonical text, without reading what is canonical already.

A second description of a part of the language that :mod:`atenbench.arguments` reads, for speed
alone: it may only say yes to what is spelled as :func:`atenbench.arguments.render` would, and a
test with made-up texts holds the two against each other.
"""

from __future__ import annotations

import re

from atenbench.arguments import DTYPES, INT64_MAX, MAX_LENGTH, contiguous_stride, parse, render


def canonical(text: str) -> str:
    """The canonical text of arguments: ``render(parse(text))``, and as strict.

    Nearly all of a trace is canonical already and of a few plain forms. To see that with a regular
    expression, which accepts nothing else, is several times as fast as to read it.

    Raises:
        ArgumentError: like :func:`parse`.
    """
    text = text.strip()
    if len(text) <= MAX_LENGTH and _PLAIN.fullmatch(text) and _spelled_canonically(text):
        return text
    return render(parse(text))


_SIZE = r"(?:0|[1-9][0-9]{0,17})"
_SIZES = rf"(?:{_SIZE}(?:, {_SIZE})*+)?+"
_FRACTION = r"-?[0-9]++\.[0-9]++(?:e[+-][0-9]++)?+|-?[0-9]e-[0-9]++"


def _plain_forms() -> re.Pattern[str]:
    """Calls of tensors, numbers, booleans, dtypes and lists of these, with one keyword at most."""
    dtype = f"(?:{'|'.join(sorted(DTYPES, key=len, reverse=True))})"
    stride = rf"(?:, stride=\({_SIZE}(?:,|(?:, {_SIZE})++)\))?+"
    tensor = rf"T\(\[{_SIZES}\], {dtype}{stride}\)"
    number = rf"{_FRACTION}|{INT64_MAX}|0|-?[1-9][0-9]{{0,17}}"
    item = rf"(?:{tensor}|{number}|True|False|None|{dtype})"
    value = rf"(?:{item}|\[(?:{item}(?:, {item})*+)?+\])"
    keyword = rf"(?:'[a-z][a-z_]*+': {value})?+"
    return re.compile(rf"\(\({value}(?:,|(?:, {value})++)\), \{{{keyword}\}}\)")


_PLAIN = _plain_forms()
_PLAIN_FRACTION = re.compile(_FRACTION)
_PLAIN_STRIDE = re.compile(rf"T\(\[({_SIZES})\], \w+, stride=\(([^)]*)\)")


def _spelled_canonically(text: str) -> bool:
    """Of a plain text: fractions are as ``repr`` gives them, and no stride is to be left out."""
    for fraction in _PLAIN_FRACTION.findall(text) if "." in text or "e-" in text else ():
        if repr(float(fraction)) != fraction:
            return False
    for sizes, steps in _PLAIN_STRIDE.findall(text) if "stride" in text else ():
        shape = tuple(int(size) for size in sizes.split(", ")) if sizes else ()
        stride = tuple(int(step) for step in steps.removesuffix(",").split(", "))
        if len(stride) != len(shape) or stride == contiguous_stride(shape):
            return False
    return True
