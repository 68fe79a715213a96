"""What a rule says: everything to its log file, what a person wants to know to the terminal too.

Snakemake does not show a script's log by itself, so a message that stays in the file is unread.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from atenbench.errors import UserError

logger = logging.getLogger(__name__)


@contextmanager
def stage(log: str | Path) -> Iterator[None]:
    """Run one rule's work: set up logging to ``log`` and the terminal, and end faults decently.

    A :class:`UserError`, a full disk or an unreadable file ends the process with status 1 and a
    message without a traceback; any other exception is ours and keeps its traceback.
    """
    _set_up(Path(log))
    try:
        yield
    except UserError as error:
        logger.error("%s", error)
        raise SystemExit(1) from None
    except OSError as error:
        logger.error("%s", _of_the_system(error))
        logger.debug("the traceback, for a bug report", exc_info=True)
        raise SystemExit(1) from None
    except Exception:
        logger.exception("this is a fault of atenbench; please report it with the lines below")
        raise SystemExit(1) from None


def _of_the_system(error: OSError) -> str:
    """An operating system's error as one line: which file, and what is wrong with it."""
    names = [str(name) for name in (error.filename, error.filename2) if name is not None]
    return f"{' -> '.join(names) or 'the system'}: {error.strerror or error}"


def _set_up(log: Path) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    to_file = logging.FileHandler(log, mode="w", encoding="utf-8")
    to_file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    to_file.setLevel(logging.DEBUG)
    to_terminal = logging.StreamHandler(sys.stderr)
    to_terminal.setFormatter(logging.Formatter(f"[{log.stem}] %(message)s"))
    to_terminal.setLevel(logging.INFO)
    root = logging.getLogger()
    root.handlers[:] = [to_file, to_terminal]
    root.setLevel(logging.INFO)
    logging.getLogger("atenbench").setLevel(logging.DEBUG)
    logging.captureWarnings(True)
