"""The pipeline as a user starts it: a clone, a folder of traces, the `snakemake` command."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

REPOSITORY = Path(__file__).parent.parent
PARTS = ("CHANGELOG.md", "Snakefile", "config", "environment.yml", "profiles", "src", "workflow")
PROBLEMS = "results/backend_bench_problems.parquet"

SMALL = """Operator: aten.add.Tensor
cnt: 3, ((T([8, 16], f32), T([8, 16], f32)), {})
cnt: 1, ((T([8, 16], f32, stride=(1, 8)), T([], f32)), {})
Operator: aten.relu_.default
cnt: 2, ((T([4, 4], f32),), {})
Operator: aten.embedding.default
cnt: 1, ((T([10, 4], f32), T([2, 3], i64)), {})
Operator: aten.upsample_nearest2d_backward.vec
cnt: 1, ((T([1, 2, 4, 4], f32), None, [1, 2, 2, 2], [2.0, 2.0]), {})
"""
OTHER = """Operator: aten.add.Tensor
cnt: 4, ((T([8, 16], f32), T([8, 16], f32)), {})
Operator: aten.mm.default
cnt: 1, ((T([4, 8], f32), T([8, 2], f32)), {})
"""


SNAKEMAKE = (sys.executable, "-m", "snakemake", "--cores", "2")


class Project:
    """A clone with traces of its own, and outputs in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *options: str, **settings: Any) -> subprocess.CompletedProcess[str]:
        """`snakemake` with these options, and these settings as `--config`."""
        command = [*SNAKEMAKE, *options]
        if settings:
            command += ["--config", *(f"{key}={value}" for key, value in settings.items())]
        if "--" not in options:
            command += ["--", "curate"]  # what is looked at has a test of its own
        return subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, env=self.environment()
        )

    def environment(self) -> dict[str, str]:
        # The tests' own import path must not stand in for the one that the Snakefile sets.
        return {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

    def must_run(self, *options: str, **settings: Any) -> str:
        done = self.run(*options, **settings)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def planned(self, **settings: Any) -> set[str]:
        """The rules that would run."""
        output = self.must_run("-n", **settings)
        jobs = re.findall(r"^(\w+)\s+\d+$", output, flags=re.MULTILINE)
        return set(jobs) - {"curate", "total"}

    def rows(self, table: str = PROBLEMS) -> list[dict[str, Any]]:
        return pq.read_table(self.folder / table).to_pylist()

    def trace(self, name: str) -> Path:
        return self.folder / "resources/traces" / name


def make_project(folder: Path) -> Project:
    project = Project(folder)
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for part in PARTS:
        source, target = REPOSITORY / part, project.folder / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=ignored)
        else:
            shutil.copy2(source, target)
    for name, text in {"timm/small.txt": SMALL, "mine/other.train.txt": OTHER}.items():
        project.trace(name).parent.mkdir(parents=True, exist_ok=True)
        project.trace(name).write_text(text)
    return project


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project after one run of the main job, for tests that only look or plan."""
    project = make_project(tmp_path_factory.mktemp("finished"))
    project.must_run()
    return project


@pytest.fixture
def project(finished: Project, tmp_path: Path) -> Project:
    """A copy of the finished project, for tests that change it."""
    shutil.copytree(finished.folder, tmp_path / "copy", symlinks=True)
    return Project(tmp_path / "copy")


def test_the_main_job_makes_every_output(finished: Project) -> None:
    rows = {(row["op_name"], row["args"]): row for row in finished.rows()}
    assert len(rows) == 6
    add = rows["aten.add.Tensor", "((T([8, 16], f32), T([8, 16], f32)), {})"]
    assert (add["count"], add["in_models"]) == (7, ["TIMM/small", "mine/other"])
    assert add["included_in_benchmark"] and add["runtime_ms"] > 0
    (gone,) = [row for row in rows.values() if "upsample" in row["op_name"]]
    assert gone["why_excluded"] == ["Failed to run: operator not in this torch"]
    details = {row["uuid"]: row for row in finished.rows("results/problem_details.parquet")}
    assert details.keys() == {row["uuid"] for row in rows.values()}
    assert {row["status"] for row in details.values()} == {"ok", "invalid"}
    as_json = (finished.folder / PROBLEMS).with_suffix(".json").read_text()
    assert json.loads(as_json) == finished.rows()
    assert (finished.folder / "results/policy_differences.md").stat().st_size > 0
    assert (finished.folder / "results/operator_input_models_mapping.json").exists()


def test_a_second_run_has_nothing_to_do(finished: Project) -> None:
    assert finished.planned() == set()
    assert "Nothing to be done" in finished.must_run()


AFTER_INGEST = {
    "ingest",
    "aggregate",
    "mapping",
    "inspect",
    "shard",
    "measure",
    "tag",
    "export",
}


def test_an_edited_trace_with_an_old_time_reruns(project: Project) -> None:
    trace = project.trace("timm/small.txt")
    trace.write_text(SMALL.replace("cnt: 3", "cnt: 30"))
    os.utime(trace, (0, 0))
    assert project.planned() >= AFTER_INGEST
    project.must_run()
    assert max(row["count"] for row in project.rows()) == 34


def test_times_alone_rerun_nothing(project: Project) -> None:
    for path in (project.trace("timm/small.txt"), project.folder / "src/atenbench/trace.py"):
        os.utime(path)
    assert project.planned() == set()


@pytest.mark.parametrize("change", ["policy", "threshold", "timing", "sql"])
def test_a_change_reruns_what_depends_on_it_and_nothing_else(project: Project, change: str) -> None:
    settings: dict[str, Any] = {}
    if change == "policy":
        settings["exclusions"] = "config/exclusions.open.yaml"
        expected = {"tag", "export", "policy_differences"}
    elif change == "threshold":
        settings["overhead_threshold"] = 1.5
        expected = {"tag", "export"}
    elif change == "timing":
        edit(project.folder / "src/atenbench/timing.py", "\n# an edited library module\n")
        expected = {"measure", "worth", "tag", "export"}
    else:
        edit(project.folder / "workflow/sql/problems.sql", "\n-- an edited query\n")
        expected = {"export"}
    planned = project.planned(**settings)
    assert expected <= planned <= expected | {"policy_differences", "shard"}
    measured = project.rows("results/problem_details.parquet")
    project.must_run(**settings)
    again = project.rows("results/problem_details.parquet")
    assert [row["measured_at"] for row in again] == [row["measured_at"] for row in measured]


def edit(path: Path, more: str) -> None:
    path.write_text(path.read_text() + more)


def test_a_new_trace_costs_its_own_problems(project: Project) -> None:
    before = {row["uuid"]: row for row in project.rows("results/problem_details.parquet")}
    new = "Operator: aten.abs.default\ncnt: 1, ((T([3, 5], f32),), {})\n"
    project.trace("mine/new.txt").write_text(OTHER + new)
    project.must_run()
    after = {row["uuid"]: row for row in project.rows("results/problem_details.parquet")}
    (added,) = after.keys() - before.keys()
    assert after[added]["op_name"] == "aten.abs.default" and after[added]["status"] == "ok"
    assert all(after[uuid]["measured_at"] == before[uuid]["measured_at"] for uuid in before)


def test_a_removed_trace_takes_its_problems_with_it(project: Project) -> None:
    project.trace("mine/other.train.txt").unlink()
    project.must_run(device="off")
    assert {row["op_name"] for row in project.rows()}.isdisjoint({"aten.mm.default"})
    assert all(row["runtime_ms"] is None for row in project.rows())
    assert all(row["is_overhead_dominated_op"] is False for row in project.rows())


def test_each_rule_can_be_forced_by_name(finished: Project) -> None:
    for rule in AFTER_INGEST:
        output = finished.must_run("-n", "--forcerun", rule)
        assert re.search(rf"^{rule}\s+1$", output, flags=re.MULTILINE)


def test_bad_lines_are_all_told_and_nothing_is_lost(project: Project) -> None:
    before = (project.folder / PROBLEMS).read_bytes()
    bad = project.trace("mine/bad.txt")
    bad.write_text("Operator: aten.abs.default\ncnt: 1, ((T([2], f1\ncnt: x\n")
    failed = project.run()
    assert failed.returncode == 1
    for line in (2, 3):
        assert f"mine/bad.txt:{line}: " in failed.stderr
    assert "on_bad_line: reject" in failed.stderr
    assert "Traceback" not in failed.stdout + failed.stderr
    assert (project.folder / PROBLEMS).read_bytes() == before
    output = project.must_run(on_bad_line="reject")
    assert "2 trace lines could not be read" in output
    assert len(project.rows("results/rejects.parquet")) == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"overhead_treshold": 2}, "unknown key 'overhead_treshold'"),
        ({"device": "gpu"}, "device must be one of auto, cpu, cuda, off"),
        ({"traces": "nowhere"}, "nowhere: not found"),
        ({"exclusions": "nowhere.yaml"}, "nowhere.yaml: not found"),
    ],
)
def test_faults_of_the_configuration_are_plain(
    finished: Project, settings: dict[str, Any], message: str
) -> None:
    failed = finished.run("-n", **settings)
    assert failed.returncode != 0
    assert re.search(message, failed.stdout + failed.stderr)
    assert "Traceback" not in failed.stdout + failed.stderr


def test_two_spellings_of_a_folder_of_traces(finished: Project, tmp_path: Path) -> None:
    """`traces` may be a list, and one of them may be the clone's or anywhere else."""
    elsewhere = tmp_path / "more/mine/third.txt"
    elsewhere.parent.mkdir(parents=True)
    elsewhere.write_text(OTHER)
    folders = json.dumps(["resources/traces", str(tmp_path / "more")])
    assert "ingest" in finished.planned(traces=folders)


def test_outputs_elsewhere_take_the_clones_configuration_and_traces(
    project: Project, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    options = ("-s", str(project.folder / "Snakefile"), "--directory", str(elsewhere))
    project.must_run(*options, device="off")
    rows = pq.read_table(elsewhere / PROBLEMS).to_pylist()
    assert {row["uuid"] for row in rows} == {row["uuid"] for row in project.rows()}
    own = elsewhere / "resources/traces/mine/own.txt"
    own.parent.mkdir(parents=True)
    own.write_text(OTHER)
    (elsewhere / "config").mkdir()
    (elsewhere / "config/config.yaml").write_text("device: off\n")
    project.must_run(*options)
    rows = pq.read_table(elsewhere / PROBLEMS).to_pylist()
    assert {model for row in rows for model in row["in_models"]} == {"mine/own"}


def test_a_killed_runs_lock_is_taken_off_when_nobody_holds_it(project: Project) -> None:
    edit(project.trace("timm/small.txt"), OTHER)
    locks = project.folder / ".snakemake/locks"
    silent: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    running = subprocess.Popen(
        SNAKEMAKE,
        cwd=project.folder,
        env=project.environment(),
        start_new_session=True,
        **silent,
    )
    wait_until(lambda: any(locks.glob("*")))
    assert unlock(project).returncode == 1
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    assert any(locks.glob("*"))
    wait_until(lambda: unlock(project).returncode == 0)
    assert not any(locks.glob("*"))
    project.must_run()


def unlock(project: Project) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "workflow/unlock.py"]
    return subprocess.run(command, cwd=project.folder, capture_output=True, text=True)


def wait_until(condition: Any, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
