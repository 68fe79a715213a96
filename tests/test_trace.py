"""Trace files: finding them, their names, and the line grammar."""

import gzip
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from atenbench.errors import UserError
from atenbench.trace import (
    BadLine,
    Calls,
    CallText,
    LineReader,
    TraceFile,
    digest,
    find_traces,
    lines_of,
)

A = "((T([2], f16),), {})"
RELU = b"Operator: aten.relu.default\n"


class Call(NamedTuple):
    line: int
    op_name: str
    text: CallText


def one_by_one(items: Iterable[Calls | BadLine]) -> Iterator[Call | BadLine]:
    for item in items:
        if isinstance(item, BadLine):
            yield item
        else:
            calls = zip(item.lines, item.texts, strict=True)
            yield from (Call(line, item.op_name, text) for line, text in calls)


def read(*lines: str | bytes, renames: dict[str, str] | None = None) -> list[Call | BadLine]:
    """The items of a trace of these lines, each ended by a line feed."""
    raw = [(line.encode() if isinstance(line, str) else line) + b"\n" for line in lines]
    return list(one_by_one(LineReader(renames or {}).read(raw)))


def the_bad(items: list[Call | BadLine]) -> BadLine:
    (bad,) = [item for item in items if isinstance(item, BadLine)]
    return bad


def test_a_call_belongs_to_the_operator_above_it() -> None:
    items = read("Operator: aten.relu.default", f"cnt: 3, {A}", "", "Operator: aten.add.Tensor",
                 "cnt: 0, ((T([2], f16), 1), {})")  # fmt: skip
    assert items == [
        Call(2, "aten.relu.default", CallText(A, A, 3)),
        Call(5, "aten.add.Tensor", CallText(*["((T([2], f16), 1), {})"] * 2, 0)),
    ]


def test_blanks_at_the_ends_mean_nothing() -> None:
    items = read("Operator: aten.relu.default  ", f"cnt: 3, {A} \t", f"  cnt: 1,  {A}")
    assert [(call.op_name, call.text.args) for call in items if isinstance(call, Call)] == [
        ("aten.relu.default", A)
    ] * 2


def test_args_keep_their_spelling_beside_the_canonical_one() -> None:
    (call,) = read("Operator: aten.relu.default", "cnt: 3, ((T([2],f16),),{})")
    assert isinstance(call, Call)
    assert call.text[:2] == ("((T([2],f16),),{})", A)


def test_renamed_operators() -> None:
    (call,) = read("Operator: aten.sum.SymInt", f"cnt: 3, {A}",
                   renames={"aten.sum.SymInt": "aten.sum.dim_IntList"})  # fmt: skip
    assert isinstance(call, Call) and call.op_name == "aten.sum.dim_IntList"


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_line_ends_and_byte_order_mark(end: bytes) -> None:
    lines = [b"\xef\xbb\xbfOperator: aten.relu.default" + end, b"cnt: 3, " + A.encode() + end]
    assert list(one_by_one(LineReader({}).read(lines))) == [
        Call(2, "aten.relu.default", CallText(A, A, 3))
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (f"cnt: ٣, {A}", "ASCII digits"),
        (f"cnt: {'9' * 25}, {A}", "64 bits"),
        (f"cnt: {'9' * 5000}, {A}", "64 bits"),
        (f"cnt: 9223372036854775808, {A}", "64 bits"),
        (f"cnt: -1, {A}", "ASCII digits"),
        (f"cnt: 1 {A}", "ASCII digits"),
        (f"cnt:1, {A}", "ASCII digits"),
        ("cnt: 1, ((T([2], f1", "well formed"),
        ("cnt: 1, ", "well formed"),
        (f"cnt: 1, {A}\rcnt: 2, {A}", "carriage return"),
        (b"cnt: 1, \0", "NUL"),
        (b"cnt: 1, \xff", "UTF-8"),
        (b"cnt: 1, " + b"1" * 2_000_000, "longer than"),
    ],
)
def test_a_bad_call_is_named_and_leaves_the_operator(line: str | bytes, reason: str) -> None:
    items = read("Operator: aten.relu.default", line, f"cnt: 3, {A}")
    assert the_bad(items).line == 2
    assert reason in the_bad(items).reason
    assert items[1:] == [Call(3, "aten.relu.default", CallText(A, A, 3))]


@pytest.mark.parametrize(
    "line", ["Operator:aten.x.default", "Operator: aten.relu", "Operator: aten.re lu.default",
             "Operator: ", "operator: aten.relu.default", "# a remark", "Operator: 9.a.b",
             "\0" * 64, "Operator: aten.relu.default\rcnt: 1, x"]
)  # fmt: skip
def test_an_unknown_line_takes_the_operator_with_it(line: str) -> None:
    items = read("Operator: aten.add.Tensor", line, f"cnt: 3, {A}", "Operator: aten.relu.default",
                 f"cnt: 3, {A}")  # fmt: skip
    bad, orphan, call = items
    assert isinstance(bad, BadLine) and bad.line == 2 and bad.text == line
    assert isinstance(orphan, BadLine) and "line 2" in orphan.reason
    assert isinstance(call, Call) and call.line == 5


def test_a_call_before_any_operator() -> None:
    assert "no Operator line" in the_bad(read(f"cnt: 3, {A}")).reason


@pytest.mark.parametrize("lines", [[], [""], ["", "  "], ["Operator: aten.relu.default"]])
def test_a_trace_without_a_call_is_not_silent(lines: list[str]) -> None:
    assert "no call" in the_bad(read(*lines)).reason


def test_names_and_modes(tmp_path: Path) -> None:
    for name in ("resnet18.txt", "Llama-3.2-1B.prefill.txt", "Llama-3.2-1B.decode.txt.gz",
                 "a.b.txt", ".hidden.txt", "train.txt", "notes.md"):  # fmt: skip
        (tmp_path / "timm").mkdir(exist_ok=True)
        (tmp_path / "timm" / name).touch()
    (tmp_path / "manifest.json").touch()
    found = [(trace.name, trace.model, trace.mode) for trace in find_traces([tmp_path])]
    assert found == [
        ("timm/Llama-3.2-1B.decode.txt.gz", "Llama-3.2-1B", "decode"),
        ("timm/Llama-3.2-1B.prefill.txt", "Llama-3.2-1B", "prefill"),
        ("timm/a.b.txt", "a.b", None),
        ("timm/resnet18.txt", "resnet18", None),
        ("timm/train.txt", "train", None),
    ]


@pytest.mark.parametrize("second", ["two/timm/resnet18.txt", "one/timm/resnet18.txt.gz"])
def test_two_files_for_one_place_are_an_error(tmp_path: Path, second: str) -> None:
    for name in ("one/timm/resnet18.txt", "two/timm/resnet34.txt", second):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    with pytest.raises(UserError, match="resnet18"):
        find_traces([tmp_path / "one", tmp_path / "two"])


@pytest.mark.parametrize("folder", ["missing", "empty"])
def test_folders_without_traces_are_an_error(tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=folder):
        find_traces([tmp_path / folder])


def make_trace(path: Path, content: bytes) -> TraceFile:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    (trace,) = find_traces([path.parent.parent])
    return trace


def test_compressed_traces_and_damaged_ones(tmp_path: Path) -> None:
    content = RELU + f"cnt: 3, {A}\n".encode()
    whole = make_trace(tmp_path / "a/s/m.txt.gz", gzip.compress(content))
    assert list(lines_of(whole)) == content.splitlines(keepends=True)
    for damage in (gzip.compress(content)[:-9], b"no gzip at all"):
        damaged = make_trace(tmp_path / "b/s/m.txt.gz", damage)
        assert "gzip" in the_bad(list(one_by_one(LineReader({}).read(lines_of(damaged))))).reason


def test_a_line_without_end_keeps_the_count_of_lines(tmp_path: Path) -> None:
    content = RELU + b"x" * 5_000_000 + b"\nOperator: aten.abs.default\ncnt: 1, " + A.encode()
    trace = make_trace(tmp_path / "s/m.txt", content)
    bad, call = one_by_one(LineReader({}).read(lines_of(trace)))
    assert isinstance(bad, BadLine) and bad.line == 2 and len(bad.text) <= 10_000
    assert isinstance(call, Call) and call.line == 4


def test_the_digest_follows_content_and_names_and_not_times(tmp_path: Path) -> None:
    trace = make_trace(tmp_path / "s/m.txt", RELU)
    before = digest([trace])
    import os

    os.utime(trace.path, (0, 0))
    assert digest([trace]) == before
    trace.path.write_bytes(RELU + b"\n")
    os.utime(trace.path, (0, 0))
    assert digest([trace]) != before
    trace.path.write_bytes(RELU)
    assert digest([make_trace(tmp_path / "t/s/other.txt", RELU)]) != before
