"""Configuration faults are named by key, with what is allowed there."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from atenbench.configuration import checked, read_yaml
from atenbench.errors import UserError

REPOSITORY = Path(__file__).parent.parent
SCHEMA = yaml.safe_load((REPOSITORY / "workflow/schemas/config.schema.yaml").read_text())


def test_the_shipped_configuration_is_valid_and_shows_every_default() -> None:
    shipped = yaml.safe_load((REPOSITORY / "config/config.yaml").read_text())
    assert checked(shipped, SCHEMA, "configuration") == checked(None, SCHEMA, "configuration")
    assert shipped.keys() == SCHEMA["properties"].keys()


def test_every_key_has_a_comment_above_it() -> None:
    lines = (REPOSITORY / "config/config.yaml").read_text().splitlines()
    keys = [number for number, line in enumerate(lines) if line[:1].isalpha()]
    assert len(keys) == len(SCHEMA["properties"])
    assert [lines[number] for number in keys if not lines[number - 1].startswith("#")] == []


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"overhead_treshold": 2}, r"unknown key 'overhead_treshold' \(did you mean 'overhead_thr"),
        ({"nothing": 2}, r"unknown key 'nothing'; allowed: .*device"),
        ({"device": "gpu"}, "device must be one of auto, cpu, cuda, off, not 'gpu'"),
        ({"overhead_threshold": "x"}, "overhead_threshold must be a number above 0, not 'x'"),
        ({"overhead_threshold": 0}, "overhead_threshold must be a number above 0, not 0"),
        ({"traces": [1]}, "traces must be text .* or a list, each item text"),
        ({"traces": []}, "traces must be"),
        ({"suites": {"timm": 3}}, "suites.timm must be text"),
        ({"suites": {"timm": "a/b"}}, "suites.timm must be text matching"),
        ({"on_bad_line": "ignore"}, "on_bad_line must be one of error, reject"),
        ([1], "the document must be a mapping"),
    ],
)
def test_faults(document: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        checked(document, SCHEMA, "configuration")


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(UserError) as caught:
        checked({"device": "gpu", "nothing": 1, "on_bad_line": 3}, SCHEMA, "configuration")
    assert len(str(caught.value).splitlines()) == 3


@pytest.mark.parametrize("text", ["device: off", "device: 'off'", "device: false"])
def test_off_is_a_word(text: str) -> None:
    assert checked(yaml.safe_load(text), SCHEMA, "configuration")["device"] == "off"


def test_missing_keys_of_nested_documents_are_named() -> None:
    schema = {"type": "object", "properties": {"a": {"required": ["b"]}}, "required": ["c"]}
    with pytest.raises(UserError, match=r"x: key 'c' is missing\nx: key 'b' is missing in a"):
        checked({"a": {}}, schema, "x")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: [1,\nb: 2", "f.yaml:2"),
        (b"a: 1\nb: 2\na: 3\n", "f.yaml:3: .*'a' is given twice"),
        (b"\xff", "UTF-8"),
        (b"a: \x00", "not YAML"),
    ],
)
def test_unreadable_yaml_names_file_and_line(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "f.yaml").write_bytes(content)
    with pytest.raises(UserError, match=message):
        read_yaml(tmp_path / "f.yaml")
    with pytest.raises(UserError, match="No such file"):
        read_yaml(tmp_path / "missing.yaml")
