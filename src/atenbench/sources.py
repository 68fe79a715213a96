"""What the configuration key ``traces`` may name, told apart by how it is written.

A folder of traces; a published file of this format, ``.parquet`` or ``.json``; or such a file on a
server, ``hf://datasets/…`` or ``https://…``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from atenbench.errors import UserError

REMOTE = ("hf://", "https://", "http://")
PUBLISHED = (".parquet", ".json")
PROBLEMS, DETAILS = "backend_bench_problems.parquet", "problem_details.parquet"


@dataclass(frozen=True, slots=True)
class Sources:
    """What goes in, each kind in the order in which it was named."""

    folders: list[str]
    files: list[str]
    remote: list[str]


def told_apart(names: Iterable[str]) -> Sources:
    """The named sources by kind.

    Raises:
        UserError: something is named twice, or a server's file is neither parquet nor JSON.
    """
    sources = Sources([], [], [])
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise UserError(f"{name} is named twice; its calls would count twice")
        seen.add(name)
        if name.startswith(REMOTE):
            if not file_name(name).endswith(PUBLISHED):
                raise UserError(f"{name}: must end in .parquet or .json")
            sources.remote.append(name)
        elif name.endswith(PUBLISHED):
            sources.files.append(name)
        else:
            sources.folders.append(name)
    return sources


def release_files(release: Path) -> list[Path]:
    """The problems of a local release, and behind them the details of its measurements if known.

    A release is a folder such as ``results/dataset``, or a file of problems.

    Raises:
        UserError: it is not there, or the folder holds no problems.
    """
    problems = release / PROBLEMS if release.is_dir() else release
    if not release.exists():
        raise UserError(f"{release}: no such file or folder")
    if not problems.exists():
        raise UserError(f"{release}: no {PROBLEMS} in it")
    details = problems.with_name(DETAILS)
    return [problems, details] if details.exists() else [problems]


def file_name(url: str) -> str:
    """The last part of a URL's path."""
    return PurePosixPath(urlsplit(url).path).name


def local_name(url: str) -> str:
    """Where a file of a server is kept, ``{key}/{file name}``: another URL, another place."""
    return f"{hashlib.sha256(url.encode()).hexdigest()[:16]}/{file_name(url)}"


def files_digest(paths: Iterable[str]) -> str:
    """A SHA-256 over the contents of files, to notice every change of one; empty without any.

    Raises:
        UserError: a file cannot be read.
    """
    digests = []
    for path in paths:
        try:
            with Path(path).open("rb") as content:
                digests.append(hashlib.file_digest(content, "sha256").hexdigest())
        except OSError as error:
            raise UserError(f"{path}: {error.strerror}") from None
    return hashlib.sha256("\n".join(digests).encode()).hexdigest() if digests else ""
