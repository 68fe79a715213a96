"""Publishes the folder of a release as a data set on the Hugging Face hub.

    python -m atenbench.publish FOLDER OWNER/NAME [--dry-run]

Shows what would change there, asks where someone can answer, and uploads in one commit that is
tagged with the version. A version that is published stays as it is. Files that no release put there
are left alone.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from httpx2 import HTTPError
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
from huggingface_hub.errors import (
    HFValidationError,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
)
from huggingface_hub.hf_api import RepoFile

from atenbench.errors import UserError
from atenbench.release import MANIFEST, check_policy, checked_manifest


@dataclass(frozen=True, slots=True)
class Plan:
    """What publishing a folder would do to a data set whose newest commit is ``head``."""

    head: str
    version: str
    added: list[str]
    changed: list[str]
    removed: list[str]
    unchanged: list[str]
    foreign: list[str]

    @property
    def is_empty(self) -> bool:
        """Whether the data set is already what the folder holds."""
        return not (self.added or self.changed or self.removed)


def publish(
    folder: Path,
    repo: str,
    *,
    dry_run: bool,
    agrees: Callable[[], bool],
    say: Callable[[str], None],
) -> bool:
    """Bring the data set ``repo`` to what the folder holds; whether anything was uploaded.

    What would change is said before ``agrees`` is asked; nothing is uploaded without its consent.

    Raises:
        UserError: the build is not complete or has failed, its policy is not in the changelog, the
            version is already published with other content, or the hub refuses.
    """
    manifest = checked_manifest(folder)
    check_policy(manifest, folder / "CHANGELOG.md")
    api = HfApi()
    try:
        plan = make_plan(api, folder, repo, manifest)
        say(shown(plan, manifest, folder, repo))
        if plan.is_empty or dry_run or not agrees():
            return False
        say(f"Uploaded: {_upload(api, folder, repo, plan)}")
        return True
    except RepositoryNotFoundError:
        raise UserError(
            f"{repo}: no such data set, or not yours to see; log in with `hf auth login`, and "
            f"create it with `hf repos create {repo} --repo-type dataset`"
        ) from None
    except (HTTPError, HFValidationError, OSError) as error:
        words = " ".join(str(error).split())
        raise UserError(f"{repo}: {words[:500] or type(error).__name__}") from None


def make_plan(api: HfApi, folder: Path, repo: str, manifest: Mapping[str, Any]) -> Plan:
    """Compare the folder with the newest commit of the data set.

    Raises:
        UserError: the version is already published with other content.
    """
    head = api.dataset_info(repo).sha
    assert head is not None
    entries = api.list_repo_tree(repo, repo_type="dataset", revision=head, recursive=True)
    there = {entry.path: entry for entry in entries if isinstance(entry, RepoFile)}
    local = {name: folder / name for name in [*manifest["files"], MANIFEST]}
    earlier = _published_manifest(api, repo, head)
    plan = Plan(
        head=head,
        version=manifest["version"],
        added=sorted(local.keys() - there.keys()),
        changed=sorted(n for n in local.keys() & there.keys() if _differs(local[n], there[n])),
        removed=sorted((earlier.get("files", {}).keys() & there.keys()) - local.keys()),
        unchanged=sorted(
            n for n in local.keys() & there.keys() if not _differs(local[n], there[n])
        ),
        foreign=sorted(there.keys() - local.keys() - earlier.get("files", {}).keys()),
    )
    tags = {tag.name for tag in api.list_repo_refs(repo, repo_type="dataset").tags}
    if _tag(plan.version) in tags and not plan.is_empty:
        raise UserError(
            f"{repo}: version {plan.version} is already published, and this build differs from it; "
            "give it a version of its own in CHANGELOG.md"
        )
    return plan


def shown(plan: Plan, manifest: Mapping[str, Any], folder: Path, repo: str) -> str:
    """The plan, for people."""
    measured = f"{manifest['measured']:,} measured on {manifest['device']}"
    lines = [
        f"Version {plan.version} for {repo} (now at {plan.head[:8]}): {manifest['problems']:,} "
        f"problems, {manifest['included']:,} in the benchmark, "
        f"{measured if manifest['measured'] else 'none measured'}"
    ]
    for sign, names in (("+", plan.added), ("~", plan.changed), ("-", plan.removed)):
        for name in names:
            size = f" ({(folder / name).stat().st_size:,} bytes)" if sign != "-" else ""
            lines.append(f"  {sign} {name}{size}")
    lines.append(f"  = {len(plan.unchanged)} files as they are there")
    if plan.foreign:
        lines.append(f"  left alone, not of a release: {', '.join(plan.foreign)}")
    if plan.is_empty:
        lines.append("Nothing to change.")
    return "\n".join(lines)


def _upload(api: HfApi, folder: Path, repo: str, plan: Plan) -> str:
    """One commit on top of what the plan was made for, and its tag; the commit's address."""
    operations: list[CommitOperationAdd | CommitOperationDelete] = [
        CommitOperationAdd(path_in_repo=name, path_or_fileobj=folder / name)
        for name in plan.added + plan.changed
    ]
    operations += [CommitOperationDelete(path_in_repo=name) for name in plan.removed]
    done = api.create_commit(
        repo,
        operations,
        commit_message=f"Version {plan.version}",
        repo_type="dataset",
        parent_commit=plan.head,
    )
    api.create_tag(repo, tag=_tag(plan.version), revision=done.oid, repo_type="dataset")
    return str(done.commit_url)


def _tag(version: str) -> str:
    return f"v{version}"


def _published_manifest(api: HfApi, repo: str, head: str) -> dict[str, Any]:
    """The manifest of the release that is there; empty where there is none."""
    try:
        path = api.hf_hub_download(repo, MANIFEST, repo_type="dataset", revision=head)
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except (RemoteEntryNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _differs(local: Path, there: RepoFile) -> bool:
    """Whether a file and its namesake on the hub differ, without fetching it."""
    content = local.read_bytes()
    if there.lfs is not None:
        return hashlib.sha256(content).hexdigest() != there.lfs.sha256
    return hashlib.sha1(b"blob %d\0%s" % (len(content), content)).hexdigest() != there.blob_id


def _asked() -> bool:
    """A yes from the terminal; where there is none, the command itself was the yes."""
    return not sys.stdin.isatty() or input("Upload? [y/N] ").strip().lower() in ("y", "yes")


def main(arguments: Sequence[str] | None = None) -> None:
    """The command of this module's docstring."""
    parser = argparse.ArgumentParser(prog="atenbench.publish", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("repo")
    parser.add_argument("--dry-run", action="store_true", help="only show what would change")
    given = parser.parse_args(arguments)
    try:
        publish(given.folder, given.repo, dry_run=given.dry_run, agrees=_asked, say=print)
    except UserError as error:
        raise SystemExit(f"{error}") from None


if __name__ == "__main__":
    main()
