"""Writes requirements/*.lock: every version that an installation of pyproject.toml's pins brings.

A lock pins no hash and no build of torch, so that pip takes a CPU build where one is at hand and
the CUDA build, with its own triton and CUDA libraries, elsewhere.
"""

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HEAD = "# Written by `make lock` from pyproject.toml; do not edit.\n"


def installed(requirements: list[str]) -> list[str]:
    """What `pip freeze` says after installing the requirements into an empty environment."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [f"{folder}/bin/python", "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--quiet", *requirements], check=True)
        frozen = subprocess.run([*pip, "freeze"], check=True, capture_output=True, text=True)
    # `torch==2.13.0+cpu` -> `torch==2.13.0`; its CUDA libraries are pip's to choose.
    lines = (line.partition("+")[0] for line in frozen.stdout.splitlines())
    return [line for line in lines if not line.startswith(("nvidia-", "cuda-", "triton=="))]


def main() -> None:
    """Install the pins, the pins with those of each extra, and each group; write down all."""
    document = tomllib.loads(Path("pyproject.toml").read_text())
    project = document["project"]
    run = installed(project["dependencies"])
    Path("requirements/run.lock").write_text(HEAD + "\n".join(run) + "\n")
    for name, extra in project["optional-dependencies"].items():
        both = installed(project["dependencies"] + extra)
        lines = ["-r run.lock", *(line for line in both if line not in run)]
        Path(f"requirements/{name}.lock").write_text(HEAD + "\n".join(lines) + "\n")
    for name, group in document["dependency-groups"].items():
        Path(f"requirements/{name}.lock").write_text(HEAD + "\n".join(installed(group)) + "\n")


if __name__ == "__main__":
    main()
