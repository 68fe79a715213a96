"""config/models.yaml: what an entry says, its faults, and tracing one."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from atenbench.errors import UserError
from atenbench.models import read
from atenbench.tracing import trace_entry

REPOSITORY = Path(__file__).parents[1]
RESNET = (
    "{suite: timm, name: resnet18, library: timm, input: image, batch: 2, size: 64, dtype: f16, "
    "mode: train}"
)
NET = (
    "{suite: mine, name: net, library: python, model: 'mynet:make', input: custom, "
    "inputs: {x: 'T([4, 8], f16)'}, dtype: f16, mode: [train, eval]}"
)


def models_file(folder: Path, *entries: str) -> Path:
    path = folder / "models.yaml"
    path.write_text("models:\n" + "".join(f"  - {entry}\n" for entry in entries))
    return path


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mynet.py").write_text(
        textwrap.dedent(
            """
            import torch

            class Net(torch.nn.Module):
                def __init__(self, width):
                    super().__init__()
                    self.norm = torch.nn.BatchNorm1d(8)
                    self.out = torch.nn.Linear(8, width)

                def forward(self, x):
                    return self.out(self.norm(x)).relu()

            def make(width=3):
                return Net(width)

            def broken():
                return Needs()

            class Needs(torch.nn.Module):
                def forward(self, x):
                    return x if x.sum() > 0 else -x
            """
        )
    )
    monkeypatch.chdir(tmp_path)
    sys.modules.pop("mynet", None)
    return tmp_path


def test_an_entry_with_a_list_of_modes_makes_a_trace_for_each(tmp_path: Path) -> None:
    models = read(models_file(tmp_path, RESNET, NET))
    assert list(models.entries) == ["timm/resnet18.txt", "mine/net.train.txt", "mine/net.eval.txt"]
    assert models.entries["timm/resnet18.txt"].size == (64, 64)
    assert models.entries["timm/resnet18.txt"].model == "resnet18"


def test_the_digest_changes_with_what_is_declared_and_with_nothing_else(tmp_path: Path) -> None:
    first = read(models_file(tmp_path, RESNET, NET)).entries
    second = read(models_file(tmp_path, NET.replace("8]", "9]"), RESNET)).entries
    assert first["timm/resnet18.txt"].digest == second["timm/resnet18.txt"].digest
    assert first["mine/net.eval.txt"].digest != second["mine/net.eval.txt"].digest
    assert first["mine/net.eval.txt"].digest != first["mine/net.train.txt"].digest


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (RESNET.replace("batch", "batchh"), "timm/resnet18: unknown key 'batchh'"),
        (RESNET.replace("library: timm", "library: tim"), "library must be one of timm"),
        (RESNET.replace("batch: 2", "batch: two"), "batch must be a whole number"),
        (RESNET.replace("mode: train", "mode: trian"), "mode must be one of train, eval"),
        (RESNET.replace(", dtype: f16", ""), "timm/resnet18: key 'dtype' is missing"),
    ],
)  # fmt: skip
def test_a_fault_names_the_entry_and_the_key_and_leaves_the_others(
    tmp_path: Path, entry: str, message: str
) -> None:
    models = read(models_file(tmp_path, entry, NET))
    assert set(models.entries) == {"mine/net.train.txt", "mine/net.eval.txt"}
    with pytest.raises(UserError, match=message):
        models.entry("timm/resnet18.txt")


def test_two_entries_for_one_trace_are_a_fault(tmp_path: Path) -> None:
    models = read(models_file(tmp_path, RESNET, RESNET))
    assert not models.entries
    assert "two entries" in models.faults["timm/resnet18.txt"]


def test_a_key_beside_the_entries_is_a_fault_of_the_file(tmp_path: Path) -> None:
    path = models_file(tmp_path, RESNET)
    path.write_text(path.read_text() + "model: []\n")
    with pytest.raises(UserError, match="unknown key 'model'"):
        read(path)


def test_there_is_no_entry_for_the_trace(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no entry"):
        read(models_file(tmp_path, RESNET)).entry("timm/resnet19.txt")


def test_the_models_that_ship_are_sound() -> None:
    models = read(REPOSITORY / "config" / "models.yaml")
    assert not models.faults
    public = {"timm", "huggingface", "torchbench"}
    names = {(entry.suite, entry.name) for entry in models.entries.values()}
    assert sum(suite in public for suite, _ in names) >= 130
    today = {entry.model for entry in models.entries.values() if entry.suite not in public}
    assert len(today) >= 60


def test_a_model_of_the_users_own_is_traced(own_module: Path) -> None:
    entry = read(models_file(own_module, NET)).entry("mine/net.train.txt")
    trace_entry(entry, own_module / "out" / "net.train.txt")
    text = (own_module / "out" / "net.train.txt").read_text()
    assert "T([8], f32), T([8], f32), True, 1e-05" in text
    facts = json.loads((own_module / "out" / "net.train.json").read_text())
    assert facts["digest"] == entry.digest
    assert facts["entry"]["mode"] == "train"
    assert facts["operators"] == text.count("Operator: ")
    assert facts["problems"] == text.count("cnt: ")
    assert set(facts["libraries"]) == {"torch"}


def test_the_same_entry_gives_the_same_bytes(own_module: Path) -> None:
    entry = read(models_file(own_module, NET)).entry("mine/net.train.txt")
    for name in ("one.txt", "two.txt"):
        trace_entry(entry, own_module / name)
    assert (own_module / "one.txt").read_bytes() == (own_module / "two.txt").read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("mynet:make", "mynet:mak"), "no such callable; did you mean 'make'"),
        (("mynet:make", "nonet:make"), "no module 'nonet'"),
        (("mynet:make", "mynet"), "must be module:function"),
        (("mynet:make", "mynet:broken"), "does not run on meta tensors"),
        (("T([4, 8], f16)", "T([4, 8], f17)"), "inputs.x: unknown name f17"),
        (("inputs:", "config: {depth: 3}, inputs:"), "unexpected keyword argument 'depth'"),
    ],
)
def test_what_is_wrong_with_a_model_is_said(
    own_module: Path, change: tuple[str, str], message: str
) -> None:
    entry = read(models_file(own_module, NET.replace(*change))).entry("mine/net.train.txt")
    with pytest.raises(UserError, match=message):
        trace_entry(entry, own_module / "net.txt")
    assert not (own_module / "net.txt").exists()


def test_a_key_that_the_input_needs(own_module: Path) -> None:
    entry = NET.replace("input: custom", "input: tokens")
    with pytest.raises(UserError, match="sequence: needed where input is tokens"):
        trace_entry(read(models_file(own_module, entry)).entry("mine/net.eval.txt"), Path("x.txt"))


def test_the_command_says_the_fault_without_a_traceback(own_module: Path) -> None:
    path = models_file(own_module, NET.replace("mynet:make", "mynet:mak"))
    ended = subprocess.run(
        [sys.executable, "-m", "atenbench.tracing", str(path), "mine/net.eval.txt", "net.txt"],
        env={"PYTHONPATH": str(REPOSITORY / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert "did you mean 'make'" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_unknown_model_of_a_library(tmp_path: Path) -> None:
    pytest.importorskip("timm", reason="needs the tracing environment (make trace-env)")
    entry = read(models_file(tmp_path, RESNET.replace("resnet18,", "resnet181,"))).entry(
        "timm/resnet181.txt"
    )
    with pytest.raises(UserError, match=r"does not exist in timm .*close to it: resnet18"):
        trace_entry(entry, tmp_path / "x.txt")


def test_a_typo_in_a_configuration_is_no_other_model(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="needs the tracing environment (make trace-env)")
    entry = (
        "{suite: a, name: b, library: transformers, model: LlamaForCausalLM, input: tokens, "
        "sequence: 8, dtype: bf16, mode: eval, config: {num_hidden_layer: 2}}"
    )
    with pytest.raises(UserError, match="did you mean 'num_hidden_layers'"):
        trace_entry(read(models_file(tmp_path, entry)).entry("a/b.txt"), tmp_path / "x.txt")


@pytest.mark.parametrize("mode", ["train", "prefill", "decode"])
def test_a_language_model_in_each_mode(tmp_path: Path, mode: str) -> None:
    pytest.importorskip("transformers", reason="needs the tracing environment (make trace-env)")
    entry = (
        "{suite: a, name: b, library: transformers, model: LlamaForCausalLM, input: tokens, "
        f"batch: 2, sequence: 32, dtype: bf16, mode: {mode}, config: {{num_hidden_layers: 2}}}}"
    )
    trace_entry(read(models_file(tmp_path, entry)).entry("a/b.txt"), tmp_path / "x.txt")
    text = (tmp_path / "x.txt").read_text()
    assert ("nll_loss_backward" in text) is (mode == "train")
    keys = {"train": "T([2, 32, 32, 128]", "prefill": "T([2, 32, 32, 128]", "decode": "33, 128]"}
    assert keys[mode] in text
