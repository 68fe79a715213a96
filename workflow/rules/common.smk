# What every rule file uses: the checked configuration and the paths of the clone.
import functools
import modulefinder
import sys

CLONE = Path(workflow.basedir)
# Snakemake hands sys.path on to the scripts, so that they import the library from the clone.
sys.path.insert(0, str(CLONE / "src"))

from atenbench.configuration import checked, read_yaml
from atenbench.errors import UserError


def repository(path: str) -> str:
    """A file of the clone, wherever the outputs go."""
    return str(CLONE / path)


def resolve(path: str) -> str:
    """A path from the configuration: in the working directory if it is there, else the clone's."""
    return path if Path(path).exists() else repository(path)


@functools.cache
def library(module: str) -> list[str]:
    """The sources of a module of the library and of all that it imports from the library.

    Rules take them as inputs, so that an edited module reruns what depends on it and nothing else.
    """
    source = CLONE / "src"
    finder = modulefinder.ModuleFinder(path=[str(source)])
    finder.run_script(str(source.joinpath(*module.split(".")).with_suffix(".py")))
    return sorted(found.__file__ for found in finder.modules.values() if found.__file__)


def settings() -> dict:
    """The configuration, checked and with its defaults."""
    try:
        schema = read_yaml(CLONE / "workflow/schemas/config.schema.yaml")
        return checked(config, schema, "configuration")
    except UserError as error:
        sys.exit(f"{error}")


config = settings()
