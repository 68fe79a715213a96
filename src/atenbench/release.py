"""The folder that is published: the tables, whole and of one build, with a manifest of digests.

Its version is that of the topmost section of ``CHANGELOG.md``, which also names, by a digest, the
policy (exclusions and threshold) that the version was made under: a changed policy without an entry
there is noticed before anything is published.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from atenbench.atomic import replacing_folder
from atenbench.errors import UserError
from atenbench.exclusions import Exclusion
from atenbench.problem import PROBLEM
from atenbench.record import schema

logger = logging.getLogger(__name__)

MANIFEST = "manifest.json"
PROBLEMS = "backend_bench_problems.parquet"
TABLES = (
    PROBLEMS,
    "backend_bench_problems.json",
    "operator_input_models_mapping.parquet",
    "operator_input_models_mapping.json",
    "problem_details.parquet",
)
REQUIRED = (*TABLES, "README.md", "CHANGELOG.md")

_VERSION = re.compile(r"## (\d+\.\d+\.\d+)\b.*")
_POLICY = re.compile(r"Policy: `([0-9a-f]{16})`")


@dataclass(frozen=True, slots=True)
class Version:
    """A section of the changelog: its number and the policy that it names."""

    number: str
    policy: str


def newest_version(changelog: Path) -> Version:
    """The topmost version of a changelog.

    Raises:
        UserError: its first section is no version, or names no policy.
    """
    try:
        lines = changelog.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UserError(f"{changelog}: {error.strerror}") from None
    headings = [number for number, line in enumerate(lines) if line.startswith("## ")]
    match = _VERSION.fullmatch(lines[headings[0]]) if headings else None
    if not match:
        raise UserError(f"{changelog}: the first section must be a version: ## 1.0.0 …")
    section = lines[headings[0] : headings[1] if len(headings) > 1 else len(lines)]
    policies = [found[1] for line in section if (found := _POLICY.search(line))]
    if len(policies) != 1:
        raise UserError(f"{changelog}: version {match[1]} must name one policy: Policy: `DIGEST`")
    return Version(match[1], policies[0])


def policy_digest(exclusions: Iterable[Exclusion], overhead_threshold: float) -> str:
    """16 hexadecimal digits that change with what the policy decides, and with nothing else."""
    decided = sorted((item.op_name, item.reason) for item in exclusions)
    text = json.dumps([decided, float(overhead_threshold)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def assemble(files: Mapping[str, Path], folder: Path, policy: str) -> None:
    """Fill the folder with copies of files and folders under the given names, and a manifest.

    Raises:
        UserError: the changelog among them has no version on top.
    """
    version = newest_version(files["CHANGELOG.md"])
    with replacing_folder(folder) as part:
        for name, source in files.items():
            target = part / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                # Snakemake marks a folder that it made with a hidden file.
                shutil.copytree(source, target, ignore=shutil.ignore_patterns(".*"))
            else:
                shutil.copyfile(source, target)
        write_manifest(part, version.number, policy)
    logger.info("%s: version %s", folder, version.number)


def write_manifest(folder: Path, version: str, policy: str) -> None:
    """Write ``manifest.json``: what the folder holds, and each file's SHA-256 and size."""
    listed = {
        str(path.relative_to(folder)): {"sha256": sha256(path), "bytes": path.stat().st_size}
        for path in _files(folder)
    }
    manifest = {
        "version": version,
        "policy": policy,
        **_contents(folder / PROBLEMS),
        "files": listed,
    }
    text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8")


def checked_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a folder that is complete, unchanged, and what the last build made.

    The tables must lie beside the folder as they are in it: where a rule has failed since, or made
    one anew, the folder is of an earlier build.

    Raises:
        UserError: all that is wrong with it, a line each.
    """
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        listed = manifest["files"]
    except OSError as error:
        raise UserError(f"{folder / MANIFEST}: {error.strerror}; the build is not done") from None
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{folder / MANIFEST}: is no manifest; delete {folder}, and make") from None
    faults = [*_faults_of_files(folder, listed), *_faults_of_build(folder, listed)]
    if not faults:
        faults = list(_faults_of_table(folder / PROBLEMS, manifest))
    if faults:
        raise UserError("\n".join(faults))
    return manifest


def check_policy(manifest: Mapping[str, Any], changelog: Path) -> None:
    """See that the changelog names the policy that the folder was made under.

    Raises:
        UserError: it names another, and what to write there.
    """
    version = newest_version(changelog)
    if version.policy != manifest["policy"]:
        raise UserError(
            f"{changelog}: version {version.number} names the policy {version.policy}, but this "
            f"build was made under {manifest['policy']}: add a version that says what changed, "
            f"with the line: Policy: `{manifest['policy']}`"
        )


def sha256(path: Path) -> str:
    """The SHA-256 of a file's content, in hex."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _files(folder: Path) -> list[Path]:
    """Every file of the folder but the manifest, sorted."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in paths if path != folder / MANIFEST)


def _contents(problems: Path) -> dict[str, Any]:
    """What the table of problems says of itself."""
    metadata = pq.read_schema(problems).metadata or {}
    runtimes = pq.read_table(problems, columns=["runtime_ms", "included_in_benchmark"])
    included = pc.sum(runtimes.column("included_in_benchmark")).as_py()
    return {
        "device": metadata.get(b"device", b"").decode(),
        "problems": runtimes.num_rows,
        "included": included or 0,
        "measured": runtimes.num_rows - runtimes.column("runtime_ms").null_count,
    }


def _faults_of_files(folder: Path, listed: Mapping[str, Any]) -> Iterator[str]:
    there = {str(path.relative_to(folder)): path for path in _files(folder)}
    for name in sorted(set(REQUIRED) - listed.keys()):
        yield f"{folder}: lacks {name}; the build is not complete"
    for name in sorted(there.keys() - listed.keys()):
        yield f"{folder / name}: is not of this build; remove it"
    for name in sorted(listed):
        if name not in there:
            yield f"{folder / name}: is in the manifest and not in the folder"
        elif sha256(there[name]) != listed[name]["sha256"]:
            yield f"{folder / name}: was changed after it was made"


def _faults_of_build(folder: Path, listed: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(listed.keys() & set(TABLES)):
        made = folder.parent / name
        if not made.exists():
            yield f"{made}: is gone; a build has failed since, or the folder was moved"
        elif sha256(made) != listed[name]["sha256"]:
            yield f"{made}: was made anew since; make the data set again"


def _faults_of_table(problems: Path, manifest: Mapping[str, Any]) -> Iterator[str]:
    try:
        found = pq.ParquetFile(problems)
    except (OSError, pa.ArrowException) as error:
        yield f"{problems}: cannot be read: {error}"
        return
    with found:
        if not found.schema_arrow.equals(schema(PROBLEM)):
            yield f"{problems}: its columns are not those of a published file"
        rows = found.metadata.num_rows
        if rows == 0 or rows != manifest["problems"]:
            yield f"{problems}: {rows} problems, {manifest['problems']} in the manifest"
