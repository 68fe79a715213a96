"""The manifest of the traces: what is stale, and how a trace takes an old one's place."""

import json
from pathlib import Path

import pytest
import yaml

from atenbench import manifest
from atenbench.errors import UserError
from atenbench.models import Models, read

REPOSITORY = Path(__file__).parents[1]
ENTRIES = """
models:
  - {suite: a, name: one, library: timm, input: image, size: 8, dtype: f16, mode: train}
  - {suite: b, name: two, library: timm, input: image, size: 8, dtype: f16, mode: [eval, train]}
"""


def models(folder: Path, text: str = ENTRIES) -> Models:
    (folder / "models.yaml").write_text(text)
    return read(folder / "models.yaml")


def stage(folder: Path, file: str, digest: str) -> Path:
    staged = folder / "staged" / file
    staged.parent.mkdir(parents=True, exist_ok=True)
    staged.write_text("Operator: aten.relu.default\ncnt: 1, ((T([2], f16),), {})\n")
    staged.with_suffix(".json").write_text(json.dumps({"digest": digest}))
    return staged


def test_a_trace_is_stale_when_missing_or_of_another_entry(tmp_path: Path) -> None:
    declared, traces = models(tmp_path), tmp_path / "traces"
    assert manifest.stale(declared, traces) == ["a/one.txt", "b/two.eval.txt", "b/two.train.txt"]
    for file, entry in declared.entries.items():
        manifest.keep(stage(tmp_path, file, entry.digest), traces, file)
    assert manifest.stale(declared, traces) == []
    edited = models(tmp_path, ENTRIES.replace("name: one, ", "name: one, batch: 2, "))
    assert manifest.stale(edited, traces) == ["a/one.txt"]
    (traces / "b" / "two.eval.txt").unlink()
    assert manifest.stale(declared, traces) == ["b/two.eval.txt"]


def test_the_manifest_is_in_order_and_forgets_what_is_gone(tmp_path: Path) -> None:
    traces = tmp_path / "traces"
    for file in ("b/two.txt", "a/one.txt", "c/three.txt"):
        manifest.keep(stage(tmp_path, file, file), traces, file)
    (traces / "c" / "three.txt").unlink()
    manifest.keep(stage(tmp_path, "a/one.txt", "new"), traces, "a/one.txt")
    assert list(manifest.read(traces).items()) == [
        ("a/one.txt", {"digest": "new"}),
        ("b/two.txt", {"digest": "b/two.txt"}),
    ]


def test_without_a_staged_trace_the_old_one_stays(tmp_path: Path) -> None:
    traces = tmp_path / "traces"
    manifest.keep(stage(tmp_path, "a/one.txt", "old"), traces, "a/one.txt")
    with pytest.raises(UserError, match="no trace to keep"):
        manifest.keep(tmp_path / "staged" / "a" / "other.txt", traces, "a/one.txt")
    assert (traces / "a" / "one.txt").exists()
    assert manifest.read(traces)["a/one.txt"] == {"digest": "old"}


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_damaged_manifest_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / manifest.NAME).write_text(text)
    with pytest.raises(UserError, match="restore it or delete it"):
        manifest.read(tmp_path)


def test_the_files_of_the_tracing_environment_agree() -> None:
    conda = yaml.safe_load((REPOSITORY / "workflow" / "envs" / "trace.yaml").read_text())
    (pins,) = [item["pip"] for item in conda["dependencies"] if isinstance(item, dict)]
    lock = (REPOSITORY / "requirements" / "trace.lock").read_text().lower().splitlines()
    assert set(pins) <= set(lock)


def test_the_tracked_traces_and_the_manifest_agree() -> None:
    traces = REPOSITORY / "resources" / "traces"
    records = manifest.read(traces)
    files = {str(path.relative_to(traces)) for path in traces.glob("*/*.txt")}
    assert set(records) == files
    for file, record in records.items():
        text = (traces / file).read_text(encoding="utf-8")
        assert record["operators"] == text.count("Operator: "), file
        assert record["problems"] == text.count("cnt: "), file
        assert record["libraries"].keys() >= {"torch"}


def test_no_tracked_trace_is_stale() -> None:
    declared = read(REPOSITORY / "config" / "models.yaml")
    assert manifest.stale(declared, REPOSITORY / "resources" / "traces") == []
