"""The folder that is published, and publishing it with the hub's own client to a stand-in."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from atenbench.atomic import replacing
from atenbench.errors import UserError
from atenbench.exclusions import Exclusion, read_exclusions
from atenbench.problem import PROBLEM
from atenbench.publish import publish
from atenbench.record import schema
from atenbench.release import (
    MANIFEST,
    REQUIRED,
    assemble,
    check_policy,
    checked_manifest,
    newest_version,
    policy_digest,
)
from hub import Hub, send_client_to, serving

REPOSITORY = Path(__file__).parent.parent
REPO = "owner/set"
POLICY = "0123456789abcdef"
CHANGELOG = f"# Changes\n\n## 1.0.0\n\nPolicy: `{POLICY}`\n\n## 0.9.0\n\nPolicy: `{'f' * 16}`\n"


def problems(path: Path, runtime: float | None) -> None:
    row = {
        "uuid": "x",
        "op_name": "aten.relu.default",
        "args": "((T([2], f16),), {})",
        "runnable": True,
        "included_in_benchmark": True,
        "why_excluded": [],
        "is_synthetic": False,
        "runtime_ms": runtime,
        "relative_runtime_to_kernel_launch": runtime,
        "is_overhead_dominated_op": False,
        "count": 1,
        "in_models": ["A/b"],
        "in_models_count": 1,
    }
    table = pa.Table.from_pylist([row], schema=schema(PROBLEM))
    with replacing(path) as part:
        pq.write_table(table.replace_schema_metadata({"device": "a device"}), part)


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """What a build leaves in ``results``: the sources of a data set."""
    results = tmp_path / "results"
    (results / "models/A").mkdir(parents=True)
    (results / "models/A/b.txt").write_text("Operator: aten.relu.default\n")
    (results / "models/.snakemake_timestamp").touch()
    for name in REQUIRED:
        (results / name).write_text(f"{name}\n")
    problems(results / "backend_bench_problems.parquet", 1.5)
    (results / "CHANGELOG.md").write_text(CHANGELOG)
    return results


def make(results: Path, policy: str = POLICY) -> Path:
    files = {name: results / name for name in REQUIRED} | {"traces": results / "models"}
    assemble(files, results / "dataset", policy)
    return results / "dataset"


def test_the_manifest_names_every_file_by_its_digest(built: Path) -> None:
    folder = make(built)
    manifest = checked_manifest(folder)
    assert sorted(manifest["files"]) == sorted([*REQUIRED, "traces/A/b.txt"])
    assert manifest["version"] == "1.0.0" and manifest["policy"] == POLICY
    assert (manifest["problems"], manifest["measured"], manifest["device"]) == (1, 1, "a device")
    first = (folder / MANIFEST).read_bytes()
    (built / "models/A/b.txt").unlink()
    (built / "models/A/c.txt").write_text("other\n")
    make(built)
    assert not (folder / "traces/A/b.txt").exists()
    (built / "models/A/c.txt").rename(built / "models/A/b.txt")
    (built / "models/A/b.txt").write_text("Operator: aten.relu.default\n")
    make(built)
    assert (folder / MANIFEST).read_bytes() == first


def test_a_build_that_is_incomplete_or_was_changed_is_refused(built: Path) -> None:
    folder = make(built)
    whole = built.parent / "whole"
    shutil.copytree(folder, whole)

    def fault(message: str) -> None:
        with pytest.raises(UserError, match=message):
            checked_manifest(folder)
        shutil.rmtree(folder)
        shutil.copytree(whole, folder)

    (folder / MANIFEST).unlink()
    fault("the build is not done")
    (folder / MANIFEST).write_text("[]")
    fault("is no manifest")
    (folder / "problem_details.parquet").unlink()
    fault("problem_details.parquet: is in the manifest and not in the folder")
    (folder / "traces/A/b.txt").write_text("edited")
    fault("traces/A/b.txt: was changed after it was made")
    (folder / "notes.txt").write_text("mine")
    fault("notes.txt: is not of this build")
    manifest = json.loads((folder / MANIFEST).read_text())
    del manifest["files"]["problem_details.parquet"]
    (folder / "problem_details.parquet").unlink()
    (folder / MANIFEST).write_text(json.dumps(manifest))
    fault("lacks problem_details.parquet; the build is not complete")
    checked_manifest(folder)


def test_a_build_that_went_on_or_failed_since_is_refused(built: Path) -> None:
    folder = make(built)
    problems(built / "backend_bench_problems.parquet", 2.5)
    with pytest.raises(UserError, match=r"backend_bench_problems.parquet: was made anew since"):
        checked_manifest(folder)
    (built / "backend_bench_problems.parquet").unlink()  # as Snakemake does when a rule fails
    with pytest.raises(UserError, match=r"is gone; a build has failed since"):
        checked_manifest(folder)


def test_a_failed_assembly_leaves_the_folder_as_it_was(built: Path) -> None:
    folder = make(built)
    before = sorted(folder.rglob("*"))
    (built / "problem_details.parquet").unlink()
    with pytest.raises(FileNotFoundError):
        make(built)
    assert sorted(folder.rglob("*")) == before
    checked = json.loads((folder / MANIFEST).read_text())
    assert checked["version"] == "1.0.0"
    assert [path.name for path in built.glob(".*")] == []


@pytest.mark.parametrize(
    ("changelog", "message"),
    [
        ("# Changes\n", "must be a version"),
        ("## Unreleased\n\nPolicy: `0123456789abcdef`\n## 1.0.0\n", "must be a version"),
        ("## 1.0.0\n\nNothing.\n\n## 0.9.0\n\nPolicy: `0123456789abcdef`\n", "name one policy"),
    ],
)
def test_a_changelog_without_a_version_and_its_policy_is_refused(
    tmp_path: Path, changelog: str, message: str
) -> None:
    (tmp_path / "CHANGELOG.md").write_text(changelog)
    with pytest.raises(UserError, match=message):
        newest_version(tmp_path / "CHANGELOG.md")


def test_a_policy_that_the_changelog_does_not_name_is_refused(built: Path) -> None:
    folder = make(built, policy="a" * 16)
    with pytest.raises(UserError, match=f"1.0.0 names the policy {POLICY}.*Policy: `{'a' * 16}`"):
        check_policy(checked_manifest(folder), folder / "CHANGELOG.md")


def test_the_policy_digest_changes_with_what_is_decided_and_with_nothing_else() -> None:
    one = Exclusion("aten.a.default", "cannot_run", "why", False)
    two = Exclusion("aten.b.default", "cannot_run", "why", False)
    digest = policy_digest([one, two], 1.3)
    because = Exclusion("aten.a.default", "cannot_run", "because", True)
    assert policy_digest([two, because], 1.3) == digest
    other = Exclusion("aten.a.default", "creation_or_manipulation", "why", False)
    changed = [policy_digest([one], 1.3), policy_digest([one, two], 1.4)]
    assert digest not in [*changed, policy_digest([other, two], 1.3)]


def test_the_changelog_names_the_policy_that_is_shipped() -> None:
    """Whoever changes the policy says so there, under a new version."""
    schemas = REPOSITORY / "workflow/schemas/exclusions.schema.yaml"
    shipped = read_exclusions(REPOSITORY / "config/exclusions.yaml", schemas)
    assert newest_version(REPOSITORY / "CHANGELOG.md").policy == policy_digest(shipped, 1.3)


# --- With the hub ---


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with serving() as hub:
        send_client_to(hub, str(tmp_path / "cache"), monkeypatch)
        hub.commit(REPO, {".gitattributes": b"*.parquet filter=lfs\n"})
        yield hub


def content(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def bring(folder: Path, *, dry_run: bool = False, agrees: bool = True) -> tuple[bool, str]:
    said: list[str] = []
    done = publish(folder, REPO, dry_run=dry_run, agrees=lambda: agrees, say=said.append)
    return done, "\n".join(said)


def test_a_release_is_uploaded_whole_after_what_would_change_is_shown(
    hub: Hub, built: Path
) -> None:
    folder = make(built)
    commits = hub.repos[REPO]
    for settings in ({"dry_run": True}, {"agrees": False}):
        done, said = bring(folder, **settings)
        assert not done and len(commits) == 1
        assert "Version 1.0.0" in said and "1 measured on a device" in said
        assert "  + backend_bench_problems.parquet (" in said and "Uploaded" not in said
    done, said = bring(folder)
    assert done and "Uploaded" in said
    assert commits[-1].files == content(folder) | {".gitattributes": b"*.parquet filter=lfs\n"}
    assert len(commits) == 2 and commits[-1].title == "Version 1.0.0"
    assert hub.tags[REPO] == {"v1.0.0": commits[-1].oid}
    # Both ways of sending a file were used.
    assert any("PUT /lfs/" in request for request in hub.requests)

    done, said = bring(folder)
    assert not done and "Nothing to change." in said and len(commits) == 2


def test_the_next_version_changes_adds_and_removes_what_differs_and_no_more(
    hub: Hub, built: Path
) -> None:
    bring(make(built))
    head = hub.repos[REPO][-1]
    hub.commit(REPO, head.files | {"notes.md": b"of somebody else"})
    problems(built / "backend_bench_problems.parquet", 2.5)
    (built / "models/A/b.txt").rename(built / "models/A/c.txt")
    folder = make(built)
    with pytest.raises(UserError, match=r"version 1.0.0 is already published.*CHANGELOG"):
        bring(folder)
    log = (built / "CHANGELOG.md").read_text()
    (built / "CHANGELOG.md").write_text(
        log.replace("## 1.0.0", f"## 1.0.1\n\nPolicy: `{POLICY}`\n\n## 1.0.0")
    )
    folder = make(built)
    done, said = bring(folder)
    assert done
    signs = {line.split()[1]: line.split()[0] for line in said.splitlines() if line[2] in "+~-"}
    assert signs == {
        "traces/A/c.txt": "+",
        "CHANGELOG.md": "~",
        "backend_bench_problems.parquet": "~",
        "manifest.json": "~",
        "traces/A/b.txt": "-",
    }
    assert "left alone, not of a release: .gitattributes, notes.md" in said
    newest = hub.repos[REPO][-1]
    assert newest.files.keys() - content(folder).keys() == {".gitattributes", "notes.md"}
    assert hub.tags[REPO]["v1.0.1"] == newest.oid


def test_nothing_is_uploaded_to_a_data_set_that_has_moved_on(hub: Hub, built: Path) -> None:
    folder = make(built)

    def someone_else_is_faster() -> bool:
        hub.commit(REPO, {"notes.md": b"of somebody else"})
        return True

    with pytest.raises(UserError, match=r"owner/set: .*412"):
        publish(folder, REPO, dry_run=False, agrees=someone_else_is_faster, say=lambda _: None)
    assert hub.repos[REPO][-1].files == {"notes.md": b"of somebody else"}
    assert REPO not in hub.tags


def test_a_refused_upload_is_told_and_leaves_the_data_set_as_it_was(hub: Hub, built: Path) -> None:
    hub.loses = "problem_details.parquet"
    with pytest.raises(UserError, match=r"owner/set: .*something is wrong with this file"):
        bring(make(built))
    assert len(hub.repos[REPO]) == 1 and REPO not in hub.tags


def test_a_data_set_that_is_not_there_and_a_bad_name_are_told(hub: Hub, built: Path) -> None:
    folder = make(built)
    for repo, message in (("owner/none", "create it with"), ("no/such/name", "no/such/name")):
        with pytest.raises(UserError, match=message):
            publish(folder, repo, dry_run=True, agrees=lambda: True, say=lambda _: None)


def test_the_command_publishes_and_refuses_without_a_traceback(hub: Hub, built: Path) -> None:
    folder = make(built)
    command = [sys.executable, "-m", "atenbench.publish", str(folder), REPO]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "src")}

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )

    done = run()
    assert done.returncode == 0, done.stderr
    assert done.stdout.index("+ manifest.json") < done.stdout.index("Uploaded: ")
    assert hub.tags[REPO]["v1.0.0"] == hub.repos[REPO][-1].oid
    (folder / "problem_details.parquet").unlink()
    refused = run()
    assert refused.returncode == 1
    assert "problem_details.parquet" in refused.stderr and "Traceback" not in refused.stderr
