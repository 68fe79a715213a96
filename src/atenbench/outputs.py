"""What an operator's first output gives away: a copy of an input, or one value throughout.

Such an output lets a kernel pass that computes nothing. Looked at in 4,096 random cells, or in all
of them where there are fewer: enough to tell, at a cost that does not depend on the size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

CELLS = 4_096


def facts(result: Any, inputs: Sequence[torch.Tensor | None]) -> dict[str, bool | None]:
    """``output_equals_input`` and ``output_constant``; None where there is no dense output.

    Args:
        result: what the operator returned.
        inputs: its tensors as they were before the call; the first of the output's shape and dtype
            is the one that is compared.
    """
    output = _first_tensor(result)
    if output is None or output.layout is not torch.strided or output.numel() == 0:
        return {"output_equals_input": None, "output_constant": None}
    cells = _cells(output)
    sample = output[cells]
    given = next((tensor for tensor in inputs if _alike(tensor, output)), None)
    return {
        "output_equals_input": given is not None and _same(sample, given[cells]),
        "output_constant": output.numel() > 1 and _same(sample, sample[:1]),
    }


def _first_tensor(result: Any) -> torch.Tensor | None:
    if isinstance(result, torch.Tensor):
        return result
    if isinstance(result, list | tuple):
        return next((item for item in result if isinstance(item, torch.Tensor)), None)
    return None


def _alike(tensor: torch.Tensor | None, output: torch.Tensor) -> bool:
    return tensor is not None and tensor.shape == output.shape and tensor.dtype == output.dtype


def _cells(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Index tensors of the cells to look at, one for each dimension."""
    if tensor.numel() <= CELLS:
        flat = torch.arange(tensor.numel())
    else:
        generator = torch.Generator().manual_seed(0)
        flat = torch.randint(tensor.numel(), (CELLS,), generator=generator)
    return tuple(index.to(tensor.device) for index in torch.unravel_index(flat, tensor.shape))


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether all cells are equal; two NaN count as equal."""
    return bool(((one == other) | ((one != one) & (other != other))).all())
