# What the files beside this one share: the checked configuration, paths of the clone, the traces.
import contextlib
import functools
import sys
from collections.abc import Iterator

CLONE = Path(workflow.basedir).resolve()
# Snakemake hands sys.path on to the scripts, so that they import the library from the clone.
sys.path.insert(0, str(CLONE / "src"))

from atenbench.configuration import checked, read_yaml
from atenbench.errors import UserError
from atenbench.imports import Package
from atenbench.sources import (
    Sources,
    files_digest,
    local_name,
    release_files,
    told_apart,
)
from atenbench.trace import TraceFile, digest, find_traces


def repository(path: str | Path) -> str:
    """A file of the clone, wherever the outputs go.

    Relative where they go into the clone: to move the clone is then no reason to run again.
    """
    found = CLONE / path
    return str(found.relative_to(CLONE) if Path.cwd() == CLONE else found)


def resolve(path: str) -> str:
    """A path from the configuration: in the working directory if it is there, else the clone's."""
    if Path(path).exists():
        return path
    if not (CLONE / path).exists():
        sys.exit(
            f"configuration: {path}: not found, neither in {Path.cwd()} nor in {CLONE}"
        )
    return repository(path)


# Functions, since Snakemake knows the number of cores only when jobs are to run: `--unlock`,
# `--report` and the like need no `--cores`.
def all_cores(wildcards) -> int:
    return workflow.cores


def cores_per_gpu(wildcards) -> int:
    """Timing suffers from any work beside it; only jobs on different GPUs may run side by side."""
    return max(workflow.cores // config["gpus"], 1)


PACKAGE = Package(CLONE / "src/atenbench")


@functools.cache
def library(module: str) -> list[str]:
    """The sources of a module of the library and of all that it imports from the library.

    Rules take them as inputs, so that an edited module reruns what depends on it and nothing else.
    A YAML or TOML file beside a module, and of its name, is a part of it.
    """
    code = PACKAGE.sources(module)
    beside = [path.with_suffix(end) for path in code for end in (".yaml", ".toml")]
    data = [path for path in beside if path.exists()]
    return sorted(map(repository, code + data))


@contextlib.contextmanager
def user_errors(about: str = "") -> Iterator[None]:
    """A fault of the user's ends the run with its message alone; Snakemake would show a traceback."""
    try:
        yield
    except UserError as error:
        sys.exit(f"{about}{error}")


with user_errors():
    CONFIG_SCHEMA = read_yaml(CLONE / "workflow/schemas/config.schema.yaml")
    config = checked(config, CONFIG_SCHEMA, "configuration")


@functools.cache
def sources() -> Sources:
    named = (
        config["traces"] if isinstance(config["traces"], list) else [config["traces"]]
    )
    with user_errors("configuration: traces: "):
        return told_apart(named)


def trace_folders() -> list[str]:
    return [resolve(folder) for folder in sources().folders]


def published_files() -> list[str]:
    """Files of published problems, those of a server where the rule fetch puts them."""
    downloads = [f"results/downloads/{local_name(url)}" for url in sources().remote]
    return [resolve(file) for file in sources().files] + downloads


def remote_url(name: str) -> str:
    """What the rule fetch puts into the downloads under this name."""
    named = sources().remote + [config["previous_release"] or ""]
    return {local_name(url): url for url in named}[name]


def previous_release() -> list[str]:
    """The files of the earlier release that is named; the first holds its problems."""
    named = config["previous_release"]
    with user_errors("configuration: previous_release: "):
        if named is None:
            raise UserError(
                "name an earlier release to compare with: its folder, or its file of problems"
            )
        if told_apart([named]).remote:
            return [f"results/downloads/{local_name(named)}"]
        return [str(file) for file in release_files(Path(resolve(named)))]


@functools.cache
def traces() -> list[TraceFile]:
    """Looked for only when ingest is asked for: tracing the first model must be possible."""
    with user_errors("configuration: traces: "):
        return find_traces(map(Path, trace_folders()))


@functools.cache
def traces_digest() -> str:
    with user_errors("configuration: traces: "):
        return digest(traces()) + files_digest(map(resolve, sources().files))


SHARDS = [f"{shard}-of-{config['shards']}" for shard in range(1, config["shards"] + 1)]


def measurement_tables() -> list[str]:
    """What measuring gives, one table for each shard."""
    return [f"results/measurements/{shard}.parquet" for shard in SHARDS]


def calls_tables() -> list[str]:
    """What models call, and what was made up if that is wanted."""
    made_up = ["results/synthetic_calls.parquet"] if config["synthetic"] else []
    return ["results/calls.parquet"] + made_up
