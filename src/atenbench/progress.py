"""How far a long step is: a bar on a terminal, a line now and then in a log."""

from __future__ import annotations

import logging
import sys
import time
from types import TracebackType

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_LINES = 30.0


class Progress:
    """A context manager that counts ``step`` calls up to ``total`` and shows rate and time left."""

    def __init__(self, total: int, what: str) -> None:
        self.total = total
        self.what = what
        self.done = 0
        self._started = self._said = time.monotonic()
        self._bar = _bar(total, what) if sys.stderr.isatty() else None

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def step(self) -> None:
        """One more is done."""
        self.done += 1
        if self._bar is not None:
            self._bar.update()
        elif time.monotonic() - self._said > SECONDS_BETWEEN_LINES:
            self._said = time.monotonic()
            logger.info("%s", self.line(self._said - self._started))

    def line(self, elapsed: float) -> str:
        """What there is to say after so many seconds."""
        rate = self.done / max(elapsed, 1e-9)
        left = (self.total - self.done) / max(rate, 1e-9)
        return f"{self.what}: {self.done:,} of {self.total:,}, {rate:.1f}/s, {left:,.0f} s left"


def _bar(total: int, what: str):  # type: ignore[no-untyped-def]
    from tqdm import tqdm

    return tqdm(total=total, desc=what, unit="", dynamic_ncols=True, smoothing=0.05)
