"""The comparison of our traces with public ones: benchmarks/fidelity.py."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

REPOSITORY = Path(__file__).parents[1]
RELU, NEG = "Operator: aten.relu.default\n", "Operator: aten.neg.default\n"


@pytest.fixture
def fidelity(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "fidelity", REPOSITORY / "benchmarks" / "fidelity.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "fidelity", module)  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def trace(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_pairs_are_compared_with_their_counts(fidelity: ModuleType, tmp_path: Path) -> None:
    one, two, three = (f"((T([{n}], f16),), {{}})\n" for n in (1, 2, 3))
    trace(tmp_path / "public", "a/m.txt", f"{RELU}cnt: 1, {one}cnt: 2, {two}{NEG}cnt: 1, {one}")
    trace(tmp_path / "ours", "a/m.txt", f"{RELU}cnt: 1, {one}cnt: 3, {two}cnt: 1, {three}")
    public, ours = (fidelity.read(tmp_path / name)["a/m.txt"] for name in ("public", "ours"))
    match = fidelity.compare("a/m.txt", public, ours)
    assert (match.public, match.found, match.equal, match.extra) == (3, 2, 1, 1)
    assert match.share == pytest.approx(1 / 3)
    assert match.missing_by_operator == {"aten.relu.default": 1, "aten.neg.default": 1}
    assert match.extra_by_operator == {"aten.relu.default": 1}
    assert "| a/m | 3 | 2 | 1 | 33.3% | 1 | 33.3% |" in fidelity.table([match])
    assert "| aten.neg.default | 1 | 0 |" in fidelity.details(match)


def test_names_of_older_torch_versions_are_todays(fidelity: ModuleType, tmp_path: Path) -> None:
    arguments = "((T([2], f16), [0], True), {})"
    trace(tmp_path, "a/m.txt", f"Operator: aten.sum.SymInt\ncnt: 1, {arguments}\n")
    assert fidelity.read(tmp_path)["a/m.txt"] == {("aten.sum.dim_IntList", arguments): 1}
