"""The policy files: read strictly, and true of this torch."""

from pathlib import Path

import pytest

from atenbench.errors import UserError
from atenbench.exclusions import Exclusion, exclusions_table, read_exclusions
from atenbench.operators import resolve
from curated import CLONE, POLICY, POLICY_SCHEMA

POLICIES = sorted((CLONE / "config").glob("exclusions*.yaml"))


def variants(packets: str, *overloads: str) -> set[str]:
    return {f"aten.{packet}.{overload}" for packet in packets.split() for overload in overloads}


CREATION = (
    variants("cat clone new_empty new_empty_strided new_full new_ones", "default", "out")
    | variants("new_zeros nonzero repeat", "default", "out")
    | variants("elu_backward", "default", "grad_input")
    | variants("masked_fill_", "Scalar", "Tensor")
    | variants("copy_ split_with_sizes unsqueeze_", "default")
    | variants("split", "Tensor")
)
CANNOT_RUN = (
    variants("embedding gather nll_loss native_layer_norm_backward", "default", "out")
    | variants("_fft_c2c _cudnn_rnn _cudnn_rnn_backward", "default", "out")
    | variants("index", "Tensor", "Tensor_out")
    | variants("scatter", "src", "src_out", "reduce", "reduce_out")
    | variants("scatter", "value", "value_out", "value_reduce", "value_reduce_out")
    | variants("upsample_nearest2d_backward upsample_bilinear2d_backward", "default", "grad_input")
)


def read(text: str, folder: Path) -> list[Exclusion]:
    file = folder / "policy.yaml"
    file.write_text(text)
    return read_exclusions(file, POLICY_SCHEMA)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_every_entry_is_an_overload_of_this_torch(policy: Path) -> None:
    exclusions = read_exclusions(policy, POLICY_SCHEMA)
    assert exclusions
    for exclusion in exclusions:
        resolve(exclusion.op_name)  # raises where there is none


def test_the_published_policy_is_what_the_reference_meant() -> None:
    found: dict[str, set[str]] = {}
    for exclusion in read_exclusions(POLICY, POLICY_SCHEMA):
        found.setdefault(exclusion.reason, set()).add(exclusion.op_name)
    assert found == {"creation_or_manipulation": CREATION, "cannot_run": CANNOT_RUN}


def test_inherited_entries_are_marked() -> None:
    inherited = {
        entry.op_name for entry in read_exclusions(POLICY, POLICY_SCHEMA) if entry.inherited
    }
    assert "aten.elu_backward.default" in inherited
    assert "aten.gather.default" not in inherited


def test_the_open_policy_excludes_no_operator_for_its_indices() -> None:
    entries = read_exclusions(POLICY.with_name("exclusions.open.yaml"), POLICY_SCHEMA)
    assert {entry.reason for entry in entries} == {"creation_or_manipulation"}
    assert not any(entry.inherited for entry in entries)
    for entry in entries:
        schema = resolve(entry.op_name)._schema
        tensors = [
            argument
            for argument in schema.arguments
            if "Tensor" in str(argument.type) and not argument.is_out
        ]
        # What it starts from lends its shape and dtype only.
        assert len(tensors) <= 1, entry.op_name


def test_what_an_entry_says_reaches_the_relation(tmp_path: Path) -> None:
    text = """
exclusions:
  - reason: cannot_run
    why: too odd
    inherited: true
    operators: [aten.mm.default, mine.op_2.out]
"""
    assert exclusions_table(read(text, tmp_path)).to_pylist() == [
        {"op_name": name, "reason": "cannot_run", "why": "too odd", "inherited": True}
        for name in ("aten.mm.default", "mine.op_2.out")
    ]


def test_a_policy_may_exclude_nothing(tmp_path: Path) -> None:
    assert exclusions_table(read("exclusions: []", tmp_path)).num_rows == 0


ENTRY = "exclusions: [{{reason: cannot_run, why: so, operators: [aten.mm.default]{}}}]"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ENTRY.format(", inherit: true"), r"unknown key 'inherit' in exclusions\.0.*'inherited'"),
        (ENTRY.format(", inherited: 1"), r"exclusions\.0\.inherited must be true or false"),
        (ENTRY.replace("cannot_run", "random").format(""), r"one of cannot_run, creation_or_man"),
        (ENTRY.replace("aten.mm.default", "aten.mm").format(""), r"operators\.0 .* not 'aten\.mm'"),
        (ENTRY.replace("aten.mm.default", '"aten.mm.*"').format(""), r"operators\.0 .*mm\.\*"),
        (ENTRY.replace("why: so, ", "").format(""), r"key 'why' is missing in exclusions\.0"),
        (ENTRY.replace("so", "''").format(""), r"exclusions\.0\.why must be text"),
        ("exclusion: []", r"unknown key 'exclusion'"),
        ("", r"key 'exclusions' is missing"),
        ("exclusions: [", r"policy\.yaml:\d+: not YAML"),
        (
            "exclusions:\n"
            "  - {reason: cannot_run, why: a, operators: [aten.mm.default]}\n"
            "  - {reason: creation_or_manipulation, why: b, operators: [aten.mm.default]}\n",
            r"aten\.mm\.default is named twice",
        ),
    ],
)
def test_a_fault_is_named_with_its_place(tmp_path: Path, text, message) -> None:
    with pytest.raises(UserError, match=message) as caught:
        read(text, tmp_path)
    assert "policy.yaml" in str(caught.value)
