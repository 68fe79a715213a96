"""Reads `config/models.yaml`: which models to trace, from what, with which input and how.

One entry makes one trace, or one for each of a list of modes. A fault in an entry is reported
with the entry and the key, and concerns that entry alone: the others can still be traced.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from atenbench.configuration import Schema, checked, read_yaml
from atenbench.errors import UserError

SCHEMA = Path(__file__).parents[2] / "workflow" / "schemas" / "models.schema.yaml"
"""The schema that ships with the pipeline."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One trace to make: a model, its input and one mode."""

    suite: str
    name: str
    library: str
    model: str
    input: str
    dtype: str
    mode: str
    file: str
    """The trace's file under the traces folder, ``{suite}/{name}[.{mode}].txt``."""
    config: Mapping[str, Any]
    inputs: Mapping[str, Any]
    batch: int
    sequence: int | None
    size: tuple[int, int] | None
    labels: str | None
    attention: str
    training: bool
    record: str
    declared: Mapping[str, Any]
    """The entry as written, with its one mode: what the manifest keeps."""

    @property
    def digest(self) -> str:
        """Changes when, and only when, what is declared for this trace changes."""
        text = json.dumps(self.declared, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Models:
    """What `config/models.yaml` says: the sound entries by trace file, the faults by trace file."""

    entries: Mapping[str, Entry]
    faults: Mapping[str, str]

    def entry(self, file: str) -> Entry:
        """The entry of a trace file.

        Raises:
            UserError: there is none, or it is at fault.
        """
        if file in self.faults:
            raise UserError(self.faults[file])
        if file not in self.entries:
            raise UserError(f"{file}: no entry in the models file makes this trace")
        return self.entries[file]


def read(path: Path, schema: Path = SCHEMA) -> Models:
    """Read and check a models file.

    Raises:
        UserError: the file cannot be read at all; faults of single entries are kept by entry.
    """
    rules = read_yaml(schema)
    # First without the entries' own rules: a fault in one of them concerns that one alone.
    whole = {**rules, "properties": {**rules["properties"], "models": {"type": "array"}}}
    document = checked(_read(path), whole, str(path))
    return _collect(path, document["models"], rules["properties"]["models"]["items"])


def _read(path: Path) -> Any:
    """The file's content; unlike the configuration's reader, this one knows `<<`."""
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not YAML: {' '.join(str(error).split())}") from None


def _collect(path: Path, declared: Iterable[Any], rules: Schema) -> Models:
    entries: dict[str, Entry] = {}
    faults: dict[str, str] = {}
    for number, item in enumerate(declared, start=1):
        name = f"{path}: {_label(item, number)}"
        try:
            sound = checked(item, rules, name)
        except UserError as error:
            faults |= dict.fromkeys(_files(item) or [f"entry {number}"], str(error))
            continue
        for entry in _expand(sound, item):
            if entry.file in entries:
                faults[entry.file] = f"{name}: name: two entries make {entry.file}"
            entries[entry.file] = entry
    return Models({file: entries[file] for file in entries if file not in faults}, faults)


def _label(item: Any, number: int) -> str:
    if isinstance(item, dict) and "suite" in item and "name" in item:
        return f"{item['suite']}/{item['name']}"
    return f"entry {number}"


def _files(item: Any) -> list[str]:
    """The trace files that an entry means to make, as far as it says so."""
    if not isinstance(item, dict) or "suite" not in item or "name" not in item:
        return []
    stem, mode = f"{item['suite']}/{item['name']}", item.get("mode")
    if isinstance(mode, list):
        return [f"{stem}.{one}.txt" for one in mode]
    return [f"{stem}.txt"]


def _expand(item: Mapping[str, Any], declared: Mapping[str, Any]) -> Iterable[Entry]:
    """The entries of an item with its defaults, one for each of its modes."""
    modes = item["mode"]
    for mode in [modes] if isinstance(modes, str) else modes:
        suffix = "" if isinstance(modes, str) else f".{mode}"
        size = item.get("size")
        yield Entry(
            suite=item["suite"],
            name=item["name"],
            library=item["library"],
            model=item.get("model", item["name"]),
            input=item["input"],
            dtype=item["dtype"],
            mode=mode,
            file=f"{item['suite']}/{item['name']}{suffix}.txt",
            config=item["config"],
            inputs=item["inputs"],
            batch=item["batch"],
            sequence=item.get("sequence"),
            size=(size, size) if isinstance(size, int) else tuple(size) if size else None,
            labels=item.get("labels"),
            attention=item["attention"],
            training=item["training"],
            record=item["record"],
            declared={**declared, "mode": mode},
        )
