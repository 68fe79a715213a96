"""A Triton kernel that does nothing: what the launch of any kernel costs. Needs Triton."""

from __future__ import annotations

import triton


@triton.jit  # type: ignore[untyped-decorator]
def _nothing() -> None:
    pass


def launch() -> None:
    """Launch it once on the current device."""
    _nothing[(1,)]()
