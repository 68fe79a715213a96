"""The questions of docs/queries.md, each asked of a small set whose answers are known."""

import contextlib
import re
from pathlib import Path
from typing import Any

import duckdb
import pytest

from curated import CLONE, Curated

PAGE = (CLONE / "docs/queries.md").read_text(encoding="utf-8")
QUERIES = {
    int(number): sql
    for number, sql in re.findall(r"^## (\d+)\..*?\n\n```sql\n(.*?)```", PAGE, re.M | re.S)
}
MODEL, OTHER = "huggingface/DistillGPT2", "timm/b"
GELU, MM, VIEW, CAT, ADD = (
    *("aten.gelu.default", "aten.mm.default", "aten.view.default", "aten.cat.default"),
    "aten.add.Tensor",
)


@pytest.fixture(scope="module")
def set_of_five(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Times of 50, 40, 6 and 4 ms; a view at the threshold; an unmeasured one; one left out."""
    curated = Curated(tmp_path_factory.mktemp("set"))

    def add(op: str, args: str, count: int, models: list[str], **more: Any) -> None:
        many = {"in_models": models, "in_models_count": len(models)}
        curated.add(op, args, count=count, **many, **more)

    def took(ms: float, ratio: float, low: float, high: float) -> dict[str, float]:
        ratios = {"relative_runtime_to_kernel_launch": ratio, "ratio_low": low, "ratio_high": high}
        return {"runtime_ms": ms, **ratios}

    add(MM, "((1,), {})", 10, [MODEL], **took(5.0, 500, 490, 510), bytes_moved=50_000_000)
    add(MM, "((2,), {})", 2, [OTHER], **took(3.0, 300, 290, 310), bytes_moved=3_000_000)
    add(GELU, "((1,), {})", 40, [MODEL, OTHER], **took(1.0, 100, 99, 101), bytes_moved=2_000_000)
    add(VIEW, "((1,), {})", 400, [OTHER], **took(0.01, 1.29, 1.25, 1.35), bytes_moved=0)
    add(ADD, "((1,), {})", 500, [OTHER], status="skipped")
    add(CAT, "((1,), {})", 1, [OTHER], status="skipped")
    curated.export()
    return curated.folder


ANSWERS: dict[int, list[tuple[Any, ...]]] = {
    1: [
        (GELU, "((1,), {})", 40, 2, 1.0),
        (MM, "((1,), {})", 10, 1, 5.0),
        (MM, "((2,), {})", 2, 1, 3.0),
    ],
    2: [(MM, "((1,), {})", 10, 50.0, 50 / 90), (GELU, "((1,), {})", 40, 40.0, 40 / 90)],
    3: [(2, 4)],
    4: [(MM, 0.56, 0.56, 2), (GELU, 0.4, 0.4, 1), (VIEW, 0.04, 0.04, 1)],
    5: [
        (
            "BackendBench does not support correctness testing for tensor creation and "
            "manipulation ops yet",
            1,
            1,
        )
    ],
    6: [(GELU, "((1,), {})", 2, 40)],
    8: [(VIEW, "((1,), {})", 1.29, 1.25, 1.35)],
    9: [(MM, "((1,), {})", 0.5), (GELU, "((1,), {})", 0.4)],
    10: [("huggingface", 2, 1.0), ("timm", 5, 442 / 943)],
}  # fmt: skip


def asked(number: int, folder: Path) -> list[tuple[Any, ...]]:
    # The folder as a reader stands in it, whatever results lie where the tests are started.
    with contextlib.chdir(folder), duckdb.connect() as connection:
        return connection.execute(QUERIES[number]).fetchall()


def test_there_are_ten() -> None:
    assert sorted(QUERIES) == list(range(1, 11))


@pytest.mark.parametrize("number", ANSWERS)
def test_the_answer_is_known(number: int, set_of_five: Path) -> None:
    found = asked(number, set_of_five)
    assert [tuple(pytest.approx(value) for value in row) for row in ANSWERS[number]] == found


def test_what_a_better_kernel_could_gain(set_of_five: Path) -> None:
    found = asked(7, set_of_five)
    assert [(row[0], row[2]) for row in found] == [(GELU, 40), (MM, 6), (MM, 50)]
    gains = [row[3] for row in found]
    best = 10_000_000 - 0.02 * 8_000_000  # the 99 % quantile of 1, 2 and 10 MB/ms
    assert gains == [
        pytest.approx(40 * (1 - 2_000_000 / best)),
        pytest.approx(6 * (1 - 1_000_000 / best)),
        pytest.approx(50 * (1 - 10_000_000 / best)),
    ]
