"""Facts and policy → flags and reasons."""

import math
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from atenbench.errors import UserError
from atenbench.tag import TAGS
from curated import POLICY, SYNTHETIC, Curated

CANNOT_RUN = "We cannot run this op on backendbench yet"
RANDOM = "BackendBench does not support correctness testing for random ops yet"
CREATION = (
    "BackendBench does not support correctness testing for tensor creation and manipulation ops yet"
)
MADE_UP = "Synthetic ops are not supported in the official benchmark yet"
FAILED = "Failed to run: "
FLAGS = ("runs", "runnable", "included_in_benchmark")


@pytest.fixture
def curated(tmp_path: Path) -> Curated:
    return Curated(tmp_path)


def only(curated: Curated, **how) -> tuple[tuple[bool, bool, bool], list[str]]:
    """Whether the one problem runs, is runnable and is included, and the reasons against it."""
    (row,) = curated.tag(**how).values()
    return tuple(row[flag] for flag in FLAGS), row["why_excluded"]


POLICY_CASES = {
    "aten.elu_backward.default": [CREATION],  # B01: this one, and no other
    "aten.gelu_backward.default": [],
    "aten.leaky_relu_backward.default": [],
    "aten.gather.default": [CANNOT_RUN],  # B02: the six glued pairs of names
    "aten.index.Tensor": [CANNOT_RUN],
    "aten.index.Tensor_out": [CANNOT_RUN],
    "aten.nll_loss.default": [CANNOT_RUN],
    "aten.nll_loss.out": [CANNOT_RUN],
    "aten.scatter.value_reduce_out": [CANNOT_RUN],
    "aten.clone.default": [CREATION],
    "aten.masked_fill_.Scalar": [CREATION],
    "aten.masked_fill_.Tensor": [CREATION],
    "aten.masked_fill.Scalar": [],
    "aten.new_zeros.default": [CREATION],  # B04
    "aten.fill_.Scalar": [],
    "aten.scatter_add.default": [],
    "aten.split.Tensor": [CREATION],
    "aten.embedding_dense_backward.default": [],
}


def test_the_default_policy_by_exact_names(curated: Curated) -> None:
    names = {curated.add(op_name): op_name for op_name in POLICY_CASES}
    tags = curated.tag()
    assert {names[uuid]: tags[uuid]["why_excluded"] for uuid in tags} == POLICY_CASES
    for row in tags.values():
        reasons = row["why_excluded"]
        flags = (True, CANNOT_RUN not in reasons, not reasons)
        assert tuple(row[flag] for flag in FLAGS) == flags


def test_random_goes_by_the_tag(curated: Curated) -> None:
    """B03."""
    curated.add("aten.bernoulli_.float", is_random=True)
    assert only(curated) == ((True, True, False), [RANDOM])


def test_random_operators_with_a_dropout_of_zero_are_in(curated: Curated) -> None:
    curated.add("aten._scaled_dot_product_flash_attention.default", is_random=False)
    assert only(curated) == ((True, True, True), [])


def test_a_made_up_problem_is_runnable_and_left_out(curated: Curated) -> None:
    """B18: policy does not change a fact."""
    curated.add(**SYNTHETIC)
    assert only(curated) == ((True, True, False), [MADE_UP])


def test_arguments_that_the_reader_does_not_know(curated: Curated) -> None:
    """P18: a fixed reason; it runs all the same."""
    curated.add(reader_understands=False)
    assert only(curated) == ((True, False, False), [CANNOT_RUN])


def test_a_sparse_input_that_is_not_supported(curated: Curated) -> None:
    """B15."""
    curated.add(
        "aten.relu.default",
        "((ST([5, 3], f32, torch.sparse_coo, False, 4),), {})",
        reader_understands=False,
        meta_status="failed",
        meta_reason="unsupported input",
    )
    assert only(curated) == (
        (False, False, False),
        [CANNOT_RUN, FAILED + "unsupported input"],
    )


def test_what_failed_without_a_device(curated: Curated) -> None:
    """B13, P36: the fixed reason, without the error's text."""
    reasons = {}
    for index, reason in enumerate(
        ("operator not in this torch", "shapes do not fit", "timed out", "crashed")
    ):
        uuid = curated.add(
            f"aten.op{index}.default",
            meta_status="failed",
            meta_reason=reason,
            meta_error="torch 2.13: long story 0x7f",
        )
        reasons[uuid] = [FAILED + reason]
    tags = curated.tag()
    assert {uuid: row["why_excluded"] for uuid, row in tags.items()} == reasons
    assert not any(row[flag] for row in tags.values() for flag in FLAGS)


def test_a_failure_without_a_reason_is_still_one(curated: Curated) -> None:
    curated.add(meta_status="failed")
    assert only(curated) == ((False, False, False), [FAILED + "raised an error"])


STATUSES = {
    "ok": None,
    "skipped": None,
    "timeout": None,
    "unsupported": None,
    "crashed": "crashed",
    "oom": "out of memory",
    "too_large": "too large",
    "error": "raised an error",
}


@pytest.mark.parametrize("meta_status", ["ok", "undecided"])
def test_what_the_device_says(curated: Curated, meta_status) -> None:
    """B09, P36: the device's own words stay in the details."""
    uuids = {
        status: curated.add(
            f"aten.{status}.default",
            meta_status=meta_status,
            status=status,
            reason="own words",
            error="RuntimeError 7",
        )
        for status in STATUSES
    }
    tags = curated.tag()
    for status, failure in STATUSES.items():
        row = tags[uuids[status]]
        assert row["status"] == status
        assert row["why_excluded"] == ([] if failure is None else [FAILED + failure])
        assert [row[flag] for flag in FLAGS] == [failure is None] * 3


def test_a_status_that_nobody_knows_is_an_error(curated: Curated) -> None:
    curated.add(status="fine")
    with pytest.raises(Exception, match="unknown status fine"):
        curated.tag()
    assert not (curated.folder / "tags.parquet").exists()


def test_the_status_of_what_was_not_measured(curated: Curated) -> None:
    failed = curated.add("aten.a.default", meta_status="failed", meta_reason="crashed")
    undecided = curated.add("aten.b.default", meta_status="undecided")
    fine = curated.add("aten.c.default")
    tags = curated.tag()
    assert {uuid: tags[uuid]["status"] for uuid in tags} == {
        failed: "invalid",
        undecided: "off",
        fine: "off",
    }
    assert tags[undecided]["runnable"] and tags[fine]["runnable"]


def test_all_reasons_in_their_order(curated: Curated) -> None:
    first = {"is_random": True, "reader_understands": False, "status": "oom", **SYNTHETIC}
    curated.add("aten.clone.default", **first)
    reasons = [CANNOT_RUN, RANDOM, CREATION, MADE_UP, FAILED + "out of memory"]
    assert only(curated) == ((False, False, False), reasons)


def test_overhead_is_strictly_below_the_threshold(curated: Curated) -> None:
    """B20, P34: and such a problem stays in the benchmark."""
    expected = {}
    for index, (relative, dominated) in enumerate(
        (
            (1.2999, True),
            (1.3, False),
            (1.3001, False),
            (0.0, True),
            (None, False),
            (math.nan, False),
            (math.inf, False),
            (-math.inf, False),
        )
    ):
        measured = {"runtime_ms": 1.0, "relative_runtime_to_kernel_launch": relative}
        expected[curated.add(f"aten.op{index}.default", **measured)] = dominated
    tags = curated.tag()
    assert {uuid: row["is_overhead_dominated_op"] for uuid, row in tags.items()} == expected
    assert all(row["included_in_benchmark"] for row in tags.values())


def test_the_threshold_is_a_parameter(curated: Curated) -> None:
    curated.add(relative_runtime_to_kernel_launch=1.35)
    (row,) = curated.tag(threshold=1.4).values()
    assert row["is_overhead_dominated_op"]


def test_what_was_not_measured_is_not_dominated(curated: Curated) -> None:
    curated.add()
    (row,) = curated.tag().values()
    assert row["is_overhead_dominated_op"] is False


def test_the_open_policy(curated: Curated) -> None:
    policy = POLICY.with_name("exclusions.open.yaml")
    included = [
        curated.add(name)
        for name in ("aten.gather.default", "aten.index.Tensor", "aten.clone.default")
    ]
    out = [curated.add("aten.new_empty.default"), curated.add("aten.new_zeros.default")]
    out += [curated.add("aten.bernoulli_.float", is_random=True)]
    tags = curated.tag(policy=policy)
    assert all(tags[uuid]["included_in_benchmark"] and tags[uuid]["runnable"] for uuid in included)
    assert not any(tags[uuid]["included_in_benchmark"] for uuid in out)
    assert all(tags[uuid]["runnable"] for uuid in out)


def test_no_problems_keep_the_types(curated: Curated) -> None:
    assert curated.tag() == {}
    assert pq.read_schema(curated.folder / "tags.parquet").equals(TAGS)


def test_a_problem_that_was_not_inspected_is_never_waved_through(curated: Curated) -> None:
    curated.add("aten.a.default")
    curated.add("aten.b.default")
    del curated.inspected[0]
    with pytest.raises(ValueError, match="null"):
        curated.tag()


def test_a_problem_that_was_measured_twice_is_refused(curated: Curated) -> None:
    curated.add("aten.a.default", status="ok")
    curated.measured *= 2
    with pytest.raises(ValueError, match="expected were 1"):
        curated.tag()


def test_a_bad_policy_names_file_and_key(curated: Curated) -> None:
    curated.add()
    policy = curated.folder / "mine.yaml"
    policy.write_text("exclusions:\n  - {reason: slow, why: it is, operators: [aten.mm.default]}\n")
    with pytest.raises(UserError, match=r"mine\.yaml: exclusions\.0\.reason .*cannot_run"):
        curated.tag(policy=policy)
