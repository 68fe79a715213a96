"""One set of versions: pyproject.toml, the locks, environment.yml and the Makefile agree."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
GROUPS = PYPROJECT["dependency-groups"]

CONDA_NAMES = {"python-duckdb": "duckdb", "snakemake-minimal": "snakemake"}
"""Packages that conda-forge and bioconda call by another name than PyPI does."""


def pins(requirements: list[str]) -> dict[str, str]:
    """Canonical name to version; every requirement must be pinned with ``==``."""
    found = {}
    for text in requirements:
        requirement = Requirement(text)
        (specifier,) = requirement.specifier
        assert specifier.operator == "==", text
        found[canonicalize_name(requirement.name)] = specifier.version
    return found


def lock(name: str) -> dict[str, str]:
    lines = (REPOSITORY / f"requirements/{name}.lock").read_text().splitlines()
    return pins([line for line in lines if line and not line.startswith(("#", "-r "))])


def test_the_run_lock_holds_the_projects_pins() -> None:
    assert pins(PROJECT["dependencies"]).items() <= lock("run").items()


@pytest.mark.parametrize("extra", PROJECT["optional-dependencies"])
def test_the_lock_of_an_extra_adds_to_the_run_lock_and_changes_nothing(extra: str) -> None:
    run, added = lock("run"), lock(extra)
    assert "-r run.lock" in (REPOSITORY / f"requirements/{extra}.lock").read_text().splitlines()
    assert run.keys().isdisjoint(added)
    assert pins(PROJECT["optional-dependencies"][extra]).items() <= added.items()


def test_the_locks_agree() -> None:
    """They can be installed into one environment."""
    slurm, test = lock("slurm"), lock("test")
    assert {name: slurm[name] for name in slurm.keys() & test.keys()} == {
        name: test[name] for name in slurm.keys() & test.keys()
    }


@pytest.mark.parametrize("group", GROUPS)
def test_the_lock_of_a_group_and_its_conda_environment_hold_its_pins(group: str) -> None:
    assert pins(GROUPS[group]).items() <= lock(group).items()
    conda = yaml.safe_load((REPOSITORY / f"workflow/envs/{group}.yaml").read_text())
    (from_pip,) = [entry for entry in conda["dependencies"] if isinstance(entry, dict)]
    assert pins(from_pip["pip"]) == pins(GROUPS[group])


def test_no_hash_and_no_build_of_torch_is_pinned() -> None:
    text = (REPOSITORY / "requirements/run.lock").read_text()
    assert "torch==2.13.0\n" in text and "--hash" not in text
    assert not re.search(r"^(nvidia|triton)", text, flags=re.MULTILINE)


def test_the_conda_environment_has_the_same_pins() -> None:
    environment = yaml.safe_load((REPOSITORY / "environment.yml").read_text())
    (from_pip,) = [entry for entry in environment["dependencies"] if isinstance(entry, dict)]
    versions = pins(from_pip["pip"])
    for entry in environment["dependencies"]:
        if isinstance(entry, str) and entry != "pip":
            name, version = entry.split(" =")
            versions[canonicalize_name(CONDA_NAMES.get(name, name))] = version
    assert versions.pop("python") == "3.11"
    assert versions == pins(PROJECT["dependencies"])


def test_make_help_lists_the_two_commands() -> None:
    make = subprocess.run(["make", "help"], cwd=REPOSITORY, capture_output=True, text=True)
    assert make.returncode == 0, make.stderr
    assert {"run", "test", "env"} <= {line.split(" - ")[0] for line in make.stdout.splitlines()}


@pytest.mark.parametrize("script", ["lock.py", "unlock.py"])
def test_the_makefile_calls_scripts_that_exist(script: str) -> None:
    assert f"workflow/{script}" in (REPOSITORY / "Makefile").read_text()
    assert (REPOSITORY / "workflow" / script).is_file()
