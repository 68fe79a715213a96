"""What a rule made last time, kept so that it does again only what is new.

Snakemake deletes a rule's outputs before the rule runs, so they are kept under a second name, as
hard links that cost nothing. What is kept carries a key in its metadata: the code and the settings
that it came from. It can be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from atenbench.atomic import replacing
from atenbench.errors import UserError

KEY = "atenbench.key"


def key_of(sources: Sequence[str], *settings: object) -> str:
    """The key of what these source files make with these settings (which JSON can tell)."""
    digests = [file_digest(Path(source)) for source in sources]
    content = json.dumps([digests, *settings, sys.version]).encode()
    return hashlib.sha256(content).hexdigest()


def file_digest(path: Path) -> str:
    """The SHA-256 of a file's content.

    Raises:
        UserError: the file cannot be read.
    """
    try:
        with path.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None


def keep(written: Path, kept: Path) -> None:
    """Keep a written file, whole, in place of the one that was kept before."""
    with replacing(kept) as part:
        try:
            os.link(written, part)
        except OSError:  # another file system, or one without links
            shutil.copyfile(written, part)


def kept_table(kept: Path, key: str) -> pa.Table | None:
    """The rows of a kept file, if there is one, whole and of this key."""
    try:
        table = pq.read_table(kept)
    except (OSError, pa.ArrowException):
        return None
    is_ours = (table.schema.metadata or {}).get(KEY.encode()) == key.encode()
    return table if is_ours else None
