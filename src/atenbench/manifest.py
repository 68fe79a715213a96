"""The manifest of the tracked traces: for each file what made it, with what, and how much it holds.

`resources/traces/manifest.json` maps a trace file (`timm/resnet18.txt`) to its entry and the
entry's digest, the library versions, dtype, mode, and the numbers of operators, problems and
calls. A trace whose file is missing, or whose digest is not that of its entry now, is stale.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock

from atenbench.atomic import replacing
from atenbench.errors import UserError
from atenbench.models import Models

NAME = "manifest.json"


def read(traces: Path) -> dict[str, Any]:
    """The manifest of a traces folder, by trace file; empty where there is none.

    Raises:
        UserError: the file is no manifest.
    """
    path = traces / NAME
    if not path.exists():
        return {}
    try:
        records = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path}: not JSON: {error}; restore it or delete it") from None
    if not isinstance(records, dict):
        raise UserError(f"{path}: must map trace files to records; restore it or delete it")
    return records


def stale(models: Models, traces: Path) -> list[str]:
    """The trace files of sound entries that are missing or were made from another entry."""
    records = read(traces)
    return [
        file
        for file, entry in models.entries.items()
        if not (traces / file).exists() or records.get(file, {}).get("digest") != entry.digest
    ]


def keep(staged: Path, traces: Path, file: str) -> None:
    """Put a staged trace and its record in place of the old ones.

    Raises:
        UserError: nothing is staged.
    """
    record = staged.with_suffix(".json")
    if not staged.exists() or not record.exists():
        raise UserError(f"{staged}: no trace to keep; delete {traces / file} to have it made again")
    facts = json.loads(record.read_text(encoding="utf-8"))
    with replacing(traces / file) as temporary:
        shutil.copyfile(staged, temporary)
    # Several traces may end at the same time, and all of them write this one file.
    with FileLock(str(staged.parents[1] / "manifest.lock")):
        write(traces, read(traces) | {file: facts})


def write(traces: Path, records: Mapping[str, Any]) -> None:
    """Write the manifest: records in the order of their files, and none whose file is gone."""
    kept = {file: records[file] for file in sorted(records) if (traces / file).exists()}
    with replacing(traces / NAME) as temporary:
        temporary.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
