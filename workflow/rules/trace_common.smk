# What the tracing rules ask: which traces are missing, or made from another entry than today's.
from collections.abc import Callable

from atenbench import manifest, models

TRACES = "resources/traces"
STAGED = "results/tracing"


@functools.cache
def stale_traces() -> frozenset[str]:
    with user_errors():
        found = models.read(Path(resolve(config["models"])))
        for fault in found.faults.values():
            logger.warning(fault)
        return frozenset(manifest.stale(found, Path(TRACES)))


def traces_are_wanted() -> bool:
    """Whether this invocation is to trace: a trace is a target, or its job was sent elsewhere."""
    asked = workflow.dag_settings
    jobs = {job.rulename for job in asked.target_jobs}
    targets = [target for target in asked.targets if target.startswith(TRACES)]
    return bool(targets or "traces" in asked.targets or jobs & {"trace", "keep_trace"})


def staged(ending: str) -> Callable:
    """What keep_trace takes; nothing that any rule makes where no trace is asked for.

    To the main job a trace is what lies there. Snakemake would make anew what it knows how to make
    from a file that is missing, as staged ones are; what it cannot make, it takes as it is.
    """

    def path(wildcards) -> str:
        asked_for = "" if traces_are_wanted() else " (not asked for)"
        return f"{STAGED}/{wildcards.file}{ending}{asked_for}"

    return path


def models_file(wildcards):
    """New to the traces whose entries have changed in it, and old to all others."""
    models_file = resolve(config["models"])
    return (
        models_file
        if f"{wildcards.file}.txt" in stale_traces()
        else ancient(models_file)
    )


def trace_python(wildcards) -> str:
    """The tracing environment's: of the working directory, of the clone, or a command."""
    python = config["trace_python"]
    places = [Path(python), CLONE / python]
    return next((str(place) for place in places if place.exists()), python)
