"""Traces one entry of `config/models.yaml` into a file, in a process of its own.

    python -m atenbench.tracing MODELS_FILE SUITE/NAME.txt OUTPUT.txt

writes OUTPUT.txt and, beside it, OUTPUT.json: what the manifest keeps of the trace. Runs in the
tracing environment; nothing of the main job imports it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from atenbench.atomic import replacing
from atenbench.errors import UserError
from atenbench.logs import stage
from atenbench.models import Entry, read

logger = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command of this module's docstring."""
    parser = argparse.ArgumentParser(prog="atenbench.tracing", description=__doc__)
    parser.add_argument("models", type=Path, help="the models file")
    parser.add_argument("trace", help="which trace of it, SUITE/NAME[.MODE].txt")
    parser.add_argument("output", type=Path, help="where to write the trace")
    parser.add_argument("--log", type=Path, default=None, help="default: OUTPUT.log")
    given = parser.parse_args(arguments)
    with stage(given.log or given.output.with_suffix(".log")):
        trace_entry(read(given.models).entry(given.trace), given.output)


def trace_entry(entry: Entry, output: Path) -> None:
    """Trace an entry into ``output``, and its record into a file of that name ending in .json.

    Raises:
        UserError: the model cannot be built, or does not run on meta tensors.
    """
    # Here and not above: reading the models file must stay free of torch.
    from atenbench.capture import record
    from atenbench.known_values import KnownValues
    from atenbench.libraries import construct, kernels, versions
    from atenbench.steps import step

    known = KnownValues()
    model = construct(entry, known)
    with kernels(entry), _faults_named(entry):
        trace = record(step(entry, model, known), everything=entry.record == "all", known=known)
    if not trace.total:
        raise UserError(f"{entry.file}: the model called no operator")
    for operator, count in sorted(trace.unspellable.items()):
        logger.warning("%s: %s: %d calls left out: no spelling", entry.file, operator, count)
    with replacing(output) as temporary:
        temporary.write_text(trace.text(), encoding="utf-8")
    facts = {
        "digest": entry.digest,
        "entry": entry.declared,
        "libraries": versions(entry),
        "operators": trace.operators,
        "problems": trace.problems,
        "calls": trace.total,
    }
    with replacing(output.with_suffix(".json")) as temporary:
        temporary.write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n", encoding="utf-8")


@contextlib.contextmanager
def _faults_named(entry: Entry) -> Iterator[None]:
    """Turns what a model raises while it runs into a message that names the entry."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:600]
        raise UserError(f"{entry.file}: does not run on meta tensors: {reason}") from error


if __name__ == "__main__":
    main()
