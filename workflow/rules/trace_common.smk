# What the tracing rules ask: which traces are missing, or made from another entry than today's.
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


def is_stale(file: str) -> bool:
    """Whether a trace is to be made; the main job reads traces as they are, whatever their entry."""
    wanted = any(
        target == "traces" or target.startswith(TRACES)
        for target in workflow.dag_settings.targets
    )
    return wanted and file in stale_traces()


def models_file(wildcards):
    """New to the traces whose entries have changed in it, and old to all others."""
    models_file = resolve(config["models"])
    return models_file if is_stale(f"{wildcards.file}.txt") else ancient(models_file)


def trace_python(wildcards) -> str:
    """The tracing environment's: of the working directory, of the clone, or a command."""
    python = config["trace_python"]
    places = [Path(python), CLONE / python]
    return next((str(place) for place in places if place.exists()), python)
