"""The card of the data set: what the hub's own library loads by it, and what it says."""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from atenbench import query
from atenbench.changes import CHANGES
from atenbench.dataset_card import card, write_card
from atenbench.mapping import MAPPING
from atenbench.problem import PROBLEM
from atenbench.record import schema
from atenbench.summary import summarized
from curated import SQL
from looked_at import HOSTILE_NAME, small_set


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder as it is uploaded, as far as the card speaks of it."""
    folder = tmp_path_factory.mktemp("set")
    tables = small_set(folder)
    target = folder / "dataset"
    target.mkdir()
    shutil.copy(tables["problems"], target)
    query.write(
        SQL / "mapping.sql",
        target / "operator_input_models_mapping.parquet",
        {"cases": str(folder / "cases.parquet")},
        schema=schema(MAPPING),
    )
    given = {name: tables[name] for name in ("problems", "calls", "rejects")}
    write_card(SQL / "summary.sql", given, 1.3, target / "README.md")
    return target


def test_the_hubs_library_loads_both_configurations(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    datasets.disable_progress_bars()
    cache = str(tmp_path)
    problems = datasets.load_dataset(str(dataset), cache_dir=cache)
    assert list(problems) == ["benchmark"]
    assert problems["benchmark"].column_names == [field.name for field in PROBLEM]
    assert problems["benchmark"].num_rows == 7
    mapping = datasets.load_dataset(str(dataset), "ops_traces_models", cache_dir=cache)
    assert list(mapping) == ["operator_input_models"]
    assert mapping["operator_input_models"].column_names == [field.name for field in MAPPING]
    assert mapping["operator_input_models"].num_rows == 8
    assert datasets.get_dataset_config_names(str(dataset)) == ["torchbench", "ops_traces_models"]
    assert datasets.get_dataset_default_config_name(str(dataset)) == "torchbench"


def test_the_head_is_yaml(dataset: Path) -> None:
    head = yaml.safe_load((dataset / "README.md").read_text().split("---\n")[1])
    assert [config["config_name"] for config in head["configs"]] == [
        "torchbench",
        "ops_traces_models",
    ]
    assert head["size_categories"] == ["n<1K"]


def test_it_says_what_the_tables_hold(dataset: Path) -> None:
    text = (dataset / "README.md").read_text()
    for line in (
        "| problems | 7 |",
        "| in the benchmark | 4 |",
        "| measured | 6 |",
        "| TIMM | 2 | 6 |",
        "| HuggingFace | 1 | 2 |",
        "| Synthetic ops are not supported in the official benchmark yet | 1 |",
        "Measured on cpu of some kind.",
    ):
        assert line in text
    for field in (*PROBLEM, *MAPPING):
        assert f"| `{field.name}` |" in text


def test_it_names_the_differences_from_an_earlier_release(tmp_path: Path) -> None:
    tables = small_set(tmp_path)
    given = {name: tables[name] for name in ("problems", "calls", "rejects")}
    row = {"kind": "added", "op_name": "aten.abs.default", "args": "((), {})"}
    table = pa.Table.from_pylist([row], schema=CHANGES)
    pq.write_table(table, tmp_path / "changes.parquet")
    changes = ("v1 <b>", tmp_path / "changes.parquet")
    write_card(SQL / "summary.sql", given, 1.3, tmp_path / "README.md", changes)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    section = text.partition("## Changes since v1 \\<b\\>\n")[2].partition("## Fields")[0]
    cells = [cell.strip() for cell in section.splitlines()[3].strip("|").split("|")]
    assert cells == ["Added", "1", "1"]


def test_names_of_traces_stay_text(tmp_path: Path) -> None:
    tables = small_set(tmp_path)
    given = {name: tables[name] for name in ("problems", "calls", "rejects")}
    summary = summarized(SQL / "summary.sql", given)
    summary["by_suite"] = {f"`|{HOSTILE_NAME}": {"models": 1, "problems": 1}}
    text = card(summary, {"device": "off"}, 1.3)
    assert HOSTILE_NAME not in text
    (line,) = [line for line in text.splitlines() if "img src" in line]
    assert line.startswith("| \\`\\|\\<img src=x") and line.endswith("\\> | 1 | 1 |")
    assert "Nothing was measured." in text
