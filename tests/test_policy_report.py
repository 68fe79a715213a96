"""The report on where our flags differ from the reference's rules."""

from pathlib import Path

import pytest

from atenbench.operators import UnknownOperator, resolve
from atenbench.policy_report import write_policy_report
from atenbench.reference_policy import reference_policy
from curated import POLICY, POLICY_SCHEMA, SQL, SYNTHETIC, Curated


class Report:
    """The report's tables, a line as a list of cells by its operator."""

    def __init__(self, text: str) -> None:
        self.text = text
        differs, _, inherited = text.partition("## Listed, although")
        self.differs, self.inherited = self.lines(differs), self.lines(inherited)

    @staticmethod
    def lines(text: str) -> dict[str, list[str]]:
        cells = [line.strip("|").split("|") for line in text.splitlines() if "| `" in f"{line} "]
        rows = [[cell.strip() for cell in line] for line in cells if line[0].startswith(" `")]
        assert len({row[0] for row in rows}) == len(rows)
        return {row[0].strip("`"): row[1:] for row in rows}


@pytest.fixture
def curated(tmp_path: Path) -> Curated:
    return Curated(tmp_path)


def report(curated: Curated, policy: Path = POLICY) -> Report:
    curated.tag(policy=policy)
    file = curated.folder / "report.md"
    write_policy_report(
        {**curated.tables(), "tags": str(curated.folder / "tags.parquet")},
        str(policy),
        str(POLICY_SCHEMA),
        str(SQL / "policy_differences.sql"),
        str(file),
    )
    return Report(file.read_text())


def add_pairs(curated: Curated, op_name: str, pairs: int, **fields) -> None:
    for index in range(pairs):
        curated.add(op_name, f"((T([{index + 1}], f16),), {{}})", **fields)


def test_the_known_differences(curated: Curated) -> None:
    add_pairs(curated, "aten.gelu_backward.default", 3)
    add_pairs(curated, "aten.leaky_relu_backward.default", 2)
    add_pairs(curated, "aten.bernoulli_.float", 4, is_random=True)
    add_pairs(curated, "aten.gather.default", 5)
    add_pairs(curated, "aten.index.Tensor", 1)
    add_pairs(curated, "aten.masked_fill_.Scalar", 2)
    add_pairs(curated, "aten.clone.default", 6)
    found = report(curated)
    creation, cannot = "creation or manipulation", "cannot be run on BackendBench yet"
    assert {name: row[:4] for name, row in found.differs.items()} == {
        # operator: problems, reason, included and runnable by the reference → here
        "aten.gelu_backward.default": ["3", creation, "0 → 3", "3 → 3"],
        "aten.leaky_relu_backward.default": ["2", creation, "0 → 2", "2 → 2"],
        "aten.bernoulli_.float": ["4", "random", "4 → 0", "4 → 4"],
        "aten.gather.default": ["5", cannot, "5 → 0", "5 → 0"],
        "aten.index.Tensor": ["1", cannot, "1 → 0", "1 → 0"],
        "aten.masked_fill_.Scalar": ["2", creation, "2 → 0", "2 → 2"],
        "aten.clone.default": ["6", creation, "6 → 0", "6 → 6"],
    }
    why = {name: row[4] for name, row in found.differs.items()}
    assert "`elu_backward.default` is a part of this one" in why["aten.gelu_backward.default"]
    assert "`nondeterministic_seeded`" in why["aten.bernoulli_.float"]
    assert "`gather.dimname_outindex.Tensor`" in why["aten.index.Tensor"]
    assert "computes nothing" in why["aten.clone.default"]


def test_where_both_sides_agree_nothing_is_said(curated: Curated) -> None:
    add_pairs(curated, "aten.relu.default", 3)
    add_pairs(curated, "aten.new_zeros.default", 3)
    add_pairs(curated, "aten.embedding.default", 2)
    add_pairs(curated, "aten.bernoulli.default", 2, is_random=True)
    add_pairs(curated, "aten.add.Tensor", 2, reader_understands=False)
    add_pairs(curated, "aten.mm.default", 2, meta_status="failed", meta_reason="crashed")
    found = report(curated)
    assert found.differs == {}
    assert "None." in found.text


def test_a_made_up_problem_stays_runnable(curated: Curated) -> None:
    add_pairs(curated, "aten.relu.default", 2, **SYNTHETIC)
    add_pairs(curated, "aten.relu.default", 1, meta_status="failed")
    del curated.cases[0], curated.inspected[0]
    found = report(curated)
    assert found.differs["aten.relu.default"][:4] == ["1", "synthetic", "0 → 0", "0 → 1"]


def test_only_the_problems_at_issue_are_counted(curated: Curated) -> None:
    """Attention with a dropout of 0 is not random, with another it is."""
    add_pairs(curated, "aten.native_dropout.default", 2, is_random=True)
    curated.add("aten.native_dropout.default", "((), {})")
    assert report(curated).differs["aten.native_dropout.default"][0] == "2"


def test_a_policy_of_ones_own(curated: Curated, tmp_path: Path) -> None:
    add_pairs(curated, "aten.mm.default", 1)
    add_pairs(curated, "aten.new_zeros.default", 1)
    policy = tmp_path / "mine.yaml"
    policy.write_text(
        "exclusions: [{reason: cannot_run, why: too dear, operators: [aten.mm.default]}]"
    )
    found = report(curated, policy)
    assert found.differs["aten.mm.default"][2:4] == ["1 → 0", "1 → 0"]
    assert "too dear" in found.differs["aten.mm.default"][4]
    assert found.differs["aten.new_zeros.default"][2:4] == ["0 → 1", "1 → 1"]
    assert "`new_zeros.default`, and this policy does not" in found.text
    assert found.inherited == {} and "`mine.yaml`" in found.text


def test_inherited_entries_are_named_with_their_problems(curated: Curated) -> None:
    add_pairs(curated, "aten.elu_backward.default", 4)
    found = report(curated)
    assert found.inherited["aten.elu_backward.default"][0] == "4"
    assert "creates nothing" in found.inherited["aten.elu_backward.default"][2]
    assert found.inherited["aten.elu_backward.grad_input"][0] == "0"
    assert "aten.elu_backward.default" not in found.differs


def test_the_reference_lists_six_entries_glued_of_two() -> None:
    entries = reference_policy().to_pylist()
    glued = [entry for entry in entries if len(entry["meant"]) == 2]
    assert len(glued) == 6
    for entry in entries:
        assert entry["entry"] == "".join(name.removeprefix("aten.") for name in entry["meant"])
    names = {name for entry in entries for name in entry["meant"]}
    gone = {name for name in names if not known(name)}
    # Named tensors have overloads that only scripts can call; the rest went with older versions.
    assert gone == {
        *("aten.cat.names", "aten.cat.names_out", "aten.gather.dimname"),
        *("aten.gather.dimname_out", "aten.col2im_backward.default"),
        *("aten.col2im_backward.grad_input", "aten.im2col_backward.default"),
        "aten.im2col_backward.grad_input",
    }


def known(op_name: str) -> bool:
    try:
        resolve(op_name)
    except UnknownOperator:
        return False
    return True
