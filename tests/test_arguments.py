"""The argument language: what it reads, how it spells it again, and what it refuses."""

import math
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atenbench.arguments import (
    DTYPES,
    MAX_DEPTH,
    MAX_LENGTH,
    ArgumentError,
    Arguments,
    Device,
    Dtype,
    Layout,
    MemoryFormat,
    SparseTensor,
    Tensor,
    parse,
    render,
)
from atenbench.canonical import canonical


def value(text: str) -> object:
    """The one positional value of a call."""
    (only,) = parse(f"(({text},), {{}})").args
    return only


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("T([2, 3], f16)", Tensor((2, 3), "f16")),
        ("T([2, 3], f16, stride=(1, 2))", Tensor((2, 3), "f16", (1, 2))),
        ("T([2, 3], f16, [1, 2])", Tensor((2, 3), "f16", (1, 2))),
        ("T([], f32)", Tensor((), "f32")),
        ("T([], f32, stride=())", Tensor((), "f32")),
        ("T([0, 4], f32, stride=(8, 1))", Tensor((0, 4), "f32", (8, 1))),
        ("T([2, 3], torch.float16)", Tensor((2, 3), "f16")),
        ("T([1, 4], f16, stride=(77, 1))", Tensor((1, 4), "f16", (77, 1))),
        ("ST([5, 3], f32, torch.sparse_coo, False, 4)",
         SparseTensor((5, 3), "f32", "torch.sparse_coo", False, 4)),
        ("ST([5, 3], f32, torch.sparse_coo, True)",
         SparseTensor((5, 3), "f32", "torch.sparse_coo", True)),
        ("inf", math.inf),
        ("-inf", -math.inf),
        ("1e-05", 1e-05),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("True", True),
        ("None", None),
        ("'cuda'", "cuda"),
        ('"torch.device(\'cpu\')"', "torch.device('cpu')"),
        ("f8e4m3fn", Dtype("f8e4m3fn")),
        ("u16", Dtype("u16")),
        ("torch.bool", Dtype("b8")),
        ("torch.half", Dtype("f16")),
        ("device(type='cuda')", Device("cuda")),
        ("device(type='cuda', index=1)", Device("cuda", 1)),
        ("device('cuda:1')", Device("cuda", 1)),
        ("torch.device('cpu')", Device("cpu")),
        ("torch.sparse_coo", Layout("torch.sparse_coo")),
        ("torch.channels_last", MemoryFormat("torch.channels_last")),
        ("[1, -2, 0.5]", [1, -2, 0.5]),
        ("(1, (2,))", (1, (2,))),
        ("[None, T([2], i64)]", [None, Tensor((2,), "i64")]),
    ],
)  # fmt: skip
def test_forms(text: str, expected: object) -> None:
    assert value(text) == expected
    assert type(value(text)) is type(expected)


def test_nan_is_a_number() -> None:
    number = value("nan")
    assert isinstance(number, float) and math.isnan(number)
    assert render(parse("((nan, -nan), {})")) == "((nan, nan), {})"


def test_keywords() -> None:
    parsed = parse("((T([2], f16),), {'dtype': f32, 'pin_memory': None})")
    assert parsed.kwargs == {"dtype": Dtype("f32"), "pin_memory": None}


@pytest.mark.parametrize(
    "spellings",
    [
        ("((T([2, 3], f16), 1e-05), {})", "((T([2,3],f16),1e-5),{})",
         "((T([2, 3,], f16), 0.00001,), {})"),
        ("((T([2, 3], f16, stride=(1, 2)),), {})", "((T([2, 3], f16, [1, 2]),), {})",
         "((T((2, 3), torch.float16, stride=[1, 2]),), {})"),
        ("((T([2, 3], f16),), {})", "((T([2, 3], f16, stride=(3, 1)),), {})"),
    ],
)  # fmt: skip
def test_spellings_of_one_call_have_one_canonical_text(spellings: tuple[str, ...]) -> None:
    assert {render(parse(text)) for text in spellings} == {spellings[0]}


def test_an_odd_stride_of_a_size_one_dimension_is_kept() -> None:
    assert render(parse("((T([1, 4], f16, stride=(77, 1)),), {})")) == (
        "((T([1, 4], f16, stride=(77, 1)),), {})"
    )


MARKER = "ATENBENCH_HOSTILE_TEXT_RAN"


@pytest.mark.parametrize(
    "text",
    [
        f"((__import__('os').environ.__setitem__('{MARKER}', '1'),), {{}})",
        f"(([open('{MARKER}', 'w')],), {{}})",
        f"((exec(\"open('{MARKER}', 'w')\"),), {{}})",
        f"((T([2], f16).__class__.__init__.__globals__['open']('{MARKER}', 'w'),), {{}})",
        f"((T([len(open('{MARKER}', 'w').name)], f16),), {{}})",
        f"((), {{'x': open('{MARKER}', 'w')}})",
        f"((device(open('{MARKER}', 'w')),), {{}})",
    ],
)
def test_hostile_text_runs_nothing(
    text: str, tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError):
        parse(text)
    assert MARKER not in os.environ
    assert os.listdir(tmp_path) == []  # noqa: PTH208


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("((9**9**9,), {})", "BinOp"),
        ("(([x for x in (1, 2)],), {})", "ListComp"),
        ("((lambda: 1,), {})", "Lambda"),
        ("((T.__class__,), {})", "unknown name T.__class__"),
        ("((f'{1}',), {})", "JoinedStr"),
        ("(((x := 1),), {})", "NamedExpr"),
        ("((*[1],), {})", "Starred"),
        ("((T(*[[1], f16]),), {})", "Starred"),
        ("((T([2], f16, **{}),), {})", "Starred"),
        ("((1 if True else 2,), {})", "IfExp"),
        ("((b'x',), {})", "bytes"),
        ("((...,), {})", "ellipsis"),
        ("((1+1j,), {})", "BinOp"),
        ("((1j,), {})", "complex"),
        ("((9e999,), {})", "out of range"),
        ("((1_000,), {})", "canonical"),
        ("((0x10,), {})", "canonical"),
        ("((-0,), {})", "canonical"),
        ("((+1,), {})", "UnaryOp"),
        ("((--1,), {})", "negative"),
        ("((-True,), {})", "negative"),
        ("((9223372036854775808,), {})", "64 bits"),
        ("((f7,), {})", "unknown name f7"),
        ("((torch.qint8,), {})", "unknown name torch.qint8"),
        ("((T([2], f1", "well formed"),
        ("", "well formed"),
        ("((T([2], f16)), {})", "must be"),
        ("((T([2], f16),),)", "must be"),
        ("((T([2], f16),), {1})", "must be"),
        ("((T([2], f16),), {'a': 1, 'a': 2})", "twice"),
        ("((T([2], f16),), {1: 2})", "quoted name"),
        ("((T([2], f16),), {**{}})", "quoted name"),
        ("((T([2], f16),), {'a b': 2})", "keyword name"),
        ("((T([2], f16),), {}), 3", "must be"),
        ("((T([2], f16),), {}) # why not", "behind"),
        ("(((T([2], f16),), {}))", "before or behind"),
        ("((T([-2], f16),), {})", "negative number in a shape"),
        ("((T([2], f16, stride=(-1,)),), {})", "negative number in a stride"),
        ("((T([2, 3], f16, stride=(1,)),), {})", "1 strides for 2"),
        ("((T([2], f16, stride=(1,), x=2),), {})", "a tensor must be"),
        ("((T([2], f16, (1,), stride=(1,)),), {})", "a tensor must be"),
        ("((T(shape=[2], dtype=f16),), {})", "a tensor must be"),
        ("((T(2, f16),), {})", "shape must be a list"),
        ("((T([2.0], f16),), {})", "shape must be a list"),
        ("((T([True], f16),), {})", "shape must be a list"),
        ("((T([2], 'f16'),), {})", "dtype must be a name"),
        ("((T([2], inf),), {})", "unknown name inf"),
        ("((ST([5, 3], f32, torch.sparse_coo, 1, 4),), {})", "a sparse tensor must be"),
        ("((ST([5, 3], f32, torch.sparse_coo, False, -4),), {})", "a sparse tensor must be"),
        ("((ST([5, 3], f32, False, 4),), {})", "a sparse tensor must be"),
        ("((device(type='cuda', index=-1),), {})", "a device must be"),
        ("((device('cuda', type='cuda'),), {})", "a device must be"),
        ("((device(3),), {})", "a device must be"),
        ("((getattr(1, 'x'),), {})", "not getattr"),
        ("(({'a': 1},), {})", "Dict"),
        ("(({1},), {})", "Set"),
        ("((1,), {})\0", "well formed"),
    ],
)
def test_refused(text: str, reason: str) -> None:
    with pytest.raises(ArgumentError, match=reason.replace("(", r"\(")):
        parse(text)


def test_caps_on_length_and_depth() -> None:
    with pytest.raises(ArgumentError, match="longer than"):
        parse("((" + "1, " * MAX_LENGTH + "), {})")
    deep = MAX_DEPTH - 1
    assert parse("(" + "(" * (deep - 1) + "1," + "),".join([""] * deep) + " {})")
    with pytest.raises(ArgumentError, match="deeper"):
        parse("((" + "[" * MAX_DEPTH + "]" * MAX_DEPTH + ",), {})")
    with pytest.raises(ArgumentError):
        parse("((" + "-" * 50_000 + "1,), {})")


def test_sizes_are_storage_spans() -> None:
    assert Tensor((2, 3), "f16").nbytes == 12
    assert Tensor((2, 3), "f32", (10, 1)).extent == 13
    assert Tensor((300, 400), "f16", (0, 0)).nbytes == 2
    assert Tensor((0, 4), "f32", (8, 1)).nbytes == 0
    assert Tensor((), "i64").nbytes == 8


def test_dtypes_are_torchs_own() -> None:
    import torch
    from torch.utils._dtype_abbrs import dtype_abbrs

    ours = {name: (info.torch_name, info.itemsize) for name, info in DTYPES.items()}
    theirs = {
        name: (str(dtype).removeprefix("torch."), dtype.itemsize)
        for dtype, name in dtype_abbrs.items()
    }
    assert ours == theirs
    assert torch.__version__


sizes = st.lists(st.integers(0, 2**40), max_size=4).map(tuple)
dtypes = st.sampled_from(sorted(DTYPES))


@st.composite
def dense_tensors(draw: st.DrawFn) -> Tensor:
    shape = draw(sizes)
    stride = draw(st.none() | st.tuples(*[st.integers(0, 2**40) for _ in shape]))
    return value_of(Tensor(shape, draw(dtypes), stride))


def value_of(tensor: Tensor) -> Tensor:
    """The tensor as the language spells it: a contiguous stride is not kept."""
    (read,) = parse(render(Arguments((tensor,)))).args
    assert isinstance(read, Tensor)
    return read


leaves = (
    dense_tensors()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.booleans()
    | st.none()
    | st.text(st.characters(codec="utf-8", exclude_characters="\r\n"))
    | dtypes.map(Dtype)
    | st.builds(Device, st.sampled_from(["cpu", "cuda"]), st.none() | st.integers(0, 7))
)
values = leaves | st.lists(leaves, max_size=3) | st.lists(leaves, max_size=3).map(tuple)


@given(st.lists(values, max_size=4), st.dictionaries(st.sampled_from(["dim", "dtype"]), values))
def test_rendered_text_reads_back_the_same(args: list[object], kwargs: dict[str, object]) -> None:
    arguments = Arguments(tuple(args), kwargs)  # type: ignore[arg-type]
    assert parse(render(arguments)) == arguments


plain_numbers = st.integers(-(2**63), 2**63 - 1).map(str) | st.decimals(
    -(10**12), 10**12, places=5, allow_nan=False
).map(str)
plain_items = (
    plain_numbers
    | st.sampled_from(["True", "None", "f16", "i64", "-0", "-0.0", "0.10", "1.", "1e5", "inf"])
    | st.builds("T({}, {})".format, st.lists(st.integers(-1, 2**63)), dtypes)
    | st.builds("T([{}], f16, stride=({},))".format, st.integers(0, 9), st.integers(0, 9))
    | st.builds("T([{}, {}], f16, stride=({}, {}))".format, *[st.integers(0, 3) for _ in range(4)])
    | st.floats(allow_nan=False).map(repr)
)
plain_values = plain_items | st.lists(plain_items).map(lambda items: f"[{', '.join(items)}]")


plain_keywords = st.lists(
    st.builds("{}: {}".format, st.sampled_from(["'dim'", "'a_b'", "'_b'", '"dim"']), plain_values),
    max_size=2,
)


@given(st.lists(plain_values, min_size=1), st.sampled_from([",", ""]), plain_keywords)
def test_the_quick_way_agrees_with_the_thorough_one(
    args: list[str], comma: str, keywords: list[str]
) -> None:
    text = f"(({', '.join(args)}{comma}), {{{', '.join(keywords)}}})"
    try:
        expected = render(parse(text))
    except ArgumentError:
        with pytest.raises(ArgumentError):
            canonical(text)
    else:
        assert canonical(text) == expected


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for attempt in (text, f"(({text},), {{}})"):
        try:
            parse(attempt)
        except ArgumentError:
            continue
