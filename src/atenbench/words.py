"""Numbers in words."""

from __future__ import annotations


def percent(part: float) -> str:
    """A share in words: as many digits as help."""
    if part in (0, 1) or part >= 0.1:
        return f"{part:.0%}".replace("%", " %")
    return f"{part:.1%}".replace("%", " %") if part >= 0.001 else "under 0.1 %"


def many(count: int, one: str, more: str | None = None) -> str:
    """``1 problem``, ``8,533 problems``."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"
