"""What CUDA calls where the meta device would call something else.

PyTorch's composite operators ask for the device before they choose: on CUDA attention goes to a
fused kernel, dropout to `native_dropout`, a half-precision softmax with a float result to one
call. On meta tensors they take the generic branch. Each function here makes CUDA's choice for
one composite, and :func:`overridden` puts them in place for meta tensors alone.

Attention follows PyTorch's own order on CUDA (flash, memory-efficient, math) unless
:func:`attention_backend` names another. cuDNN is taken as it is for convolutions, where the
operator is the same, and not for recurrent layers and batch norm, where its operators carry
buffers whose size only a device knows; there the calls are those of CUDA without cuDNN.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import torch

aten = torch.ops.aten

ATTENTION_BACKENDS = ("auto", "flash", "efficient", "cudnn", "math")
"""What :func:`attention_backend` takes; ``auto`` is the order of PyTorch on CUDA."""

_backend: ContextVar[str] = ContextVar("attention_backend", default="auto")

_dropping: ContextVar[bool] = ContextVar("dropping", default=True)

_HALF = (torch.float16, torch.bfloat16)
_FLASH_HEAD_DIM = 256
_CUDNN_HEAD_DIM = 128
_EFFICIENT_MASK_ALIGNMENT = 8


@contextlib.contextmanager
def attention_backend(name: str) -> Iterator[None]:
    """Which kernel `scaled_dot_product_attention` calls; one that cannot take a call is passed by.

    Raises:
        ValueError: no such backend.
    """
    if name not in ATTENTION_BACKENDS:
        raise ValueError(f"no attention backend {name!r}: {', '.join(ATTENTION_BACKENDS)}")
    token = _backend.set(name)
    try:
        yield
    finally:
        _backend.reset(token)


@contextlib.contextmanager
def dropping(wanted: bool) -> Iterator[None]:
    """Whether dropout drops; where it does not, every probability counts as 0."""
    token = _dropping.set(wanted)
    try:
        yield
    finally:
        _dropping.reset(token)


@contextlib.contextmanager
def overridden() -> Iterator[None]:
    """Within it, meta tensors take CUDA's branches; other devices are untouched."""
    with torch.library._scoped_library("aten", "IMPL") as library, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that it was told to override a kernel
        for func, call in COMPOSITES.items():
            library.impl(func, call, "AutogradMeta")
        yield


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """`scaled_dot_product_attention` as CUDA dispatches it."""
    dropout_p = dropout_p if _dropping.get() else 0.0
    fits = {
        "flash": _flash_takes(query, key, value, attn_mask, is_causal, enable_gqa),
        "efficient": _efficient_takes(query, key, value),
        "cudnn": _cudnn_takes(query, key, value),
    }
    wanted = _backend.get()
    order = ("flash", "efficient") if wanted == "auto" else (wanted,)
    chosen = next((name for name in order if fits.get(name)), "math")
    if chosen == "flash":
        return _flash(query, key, value, dropout_p, is_causal, scale)
    mask = _additive_mask(attn_mask, query.dtype)
    if chosen == "math":
        output: torch.Tensor = aten._scaled_dot_product_attention_math(
            query, key, value, mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )[0]
        return output
    return _masked_kernel(chosen, query, key, value, mask, dropout_p, is_causal, scale)


def _flash(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
) -> torch.Tensor:
    head_dim = query.size(-1)
    if head_dim % 8:  # the kernel wants 16-byte rows
        padding = [0, 8 - head_dim % 8]
        query, key, value = (torch.nn.functional.pad(item, padding) for item in (query, key, value))
    output: torch.Tensor = aten._scaled_dot_product_flash_attention(
        query,
        key,
        value,
        dropout_p,
        is_causal,
        scale=1 / math.sqrt(head_dim) if scale is None else scale,
    )[0]
    return output[..., :head_dim] if head_dim % 8 else output


def _masked_kernel(
    chosen: str,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
) -> torch.Tensor:
    needs_statistics = torch.is_grad_enabled() and any(
        item.requires_grad for item in (query, key, value)
    )
    kernel = aten._scaled_dot_product_cudnn_attention
    if chosen == "efficient":
        kernel = aten._scaled_dot_product_efficient_attention
        if mask is not None:
            mask = _aligned_mask(mask, query, key)
    output: torch.Tensor = kernel(
        query, key, value, mask, needs_statistics, dropout_p, is_causal, scale=scale
    )[0]
    return output


def _flash_takes(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    is_causal: bool,
    enable_gqa: bool,
) -> bool:
    return (
        mask is None
        and _rows_in_memory(query, key, value)
        and query.dtype in _HALF
        and query.size(-1) == key.size(-1) == value.size(-1) <= _FLASH_HEAD_DIM
        and (not is_causal or query.size(-2) == key.size(-2))
        and (enable_gqa or query.size(1) == key.size(1))
    )


def _efficient_takes(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> bool:
    alignment = 8 if query.dtype in _HALF else 4
    return (
        _rows_in_memory(query, key, value)
        and query.dtype in (*_HALF, torch.float32)
        and query.size(1) == key.size(1) == value.size(1)
        and query.size(-1) % alignment == 0
        and value.size(-1) % alignment == 0
    )


def _cudnn_takes(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> bool:
    return (
        _rows_in_memory(query, key, value)
        and query.dtype in _HALF
        and query.size(-1) <= _CUDNN_HEAD_DIM
        and value.size(-1) <= _CUDNN_HEAD_DIM
        and query.size(-1) % 8 == 0
        and value.size(-1) % 8 == 0
        and key.size(-2) > 1
    )


def _rows_in_memory(*tensors: torch.Tensor) -> bool:
    return all(item.dim() == 4 and item.stride(-1) == 1 and item.size(-2) for item in tensors)


def _additive_mask(mask: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor | None:
    """A boolean mask as what the kernels add to the scores."""
    if mask is None or mask.dtype is not torch.bool:
        return mask
    hidden = torch.scalar_tensor(-math.inf, dtype=dtype, device=mask.device)
    return torch.where(mask, 0.0, hidden)


def _aligned_mask(mask: torch.Tensor, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """The kernel reads rows of the mask in vectors: each must start at a multiple of 8."""
    rows_start_aligned = mask.stride(-1) == 1 and all(
        step % _EFFICIENT_MASK_ALIGNMENT == 0 for step in mask.stride()[:-1]
    )
    if not rows_start_aligned:
        length = mask.size(-1)
        padding = _EFFICIENT_MASK_ALIGNMENT - length % _EFFICIENT_MASK_ALIGNMENT
        mask = torch.nn.functional.pad(mask, [0, padding])[..., :length]
    return mask.expand(query.size(0), query.size(1), query.size(2), key.size(2))


def dropout(input: torch.Tensor, p: float, train: bool) -> torch.Tensor:
    """`dropout`: one fused call on CUDA, unless it keeps all or nothing."""
    p = p if _dropping.get() else 0.0
    if train and 0 < p < 1 and input.numel():
        output: torch.Tensor = aten.native_dropout(input, p, train)[0]
        return output
    composite: torch.Tensor = aten.dropout.default.decompose(input, p, train)
    return composite


def dropout_(input: torch.Tensor, p: float, train: bool) -> torch.Tensor:
    """`dropout_`: never fused."""
    composite: torch.Tensor = aten.dropout_.default.decompose(
        input, p if _dropping.get() else 0.0, train
    )
    return composite


def feature_dropout(input: torch.Tensor, p: float, train: bool) -> torch.Tensor:
    """`feature_dropout` (of whole channels): never fused."""
    composite: torch.Tensor = aten.feature_dropout.default.decompose(
        input, p if _dropping.get() else 0.0, train
    )
    return composite


def softmax(input: torch.Tensor, dim: int, dtype: torch.dtype | None = None) -> torch.Tensor:
    """`softmax`: CUDA widens half precision to float within the kernel."""
    return _widening(aten._softmax.default, input, dim, dtype)


def log_softmax(input: torch.Tensor, dim: int, dtype: torch.dtype | None = None) -> torch.Tensor:
    """`log_softmax`: CUDA widens half precision to float within the kernel."""
    return _widening(aten._log_softmax.default, input, dim, dtype)


def _widening(
    kernel: torch._ops.OpOverload, input: torch.Tensor, dim: int, dtype: torch.dtype | None
) -> torch.Tensor:
    widens = input.dtype is torch.float16 and dtype is torch.float32
    converted = input if dtype is None or widens else input.to(dtype)
    output: torch.Tensor = kernel(converted, dim, widens)
    return output


COMPOSITES: dict[torch._ops.OpOverload, Callable[..., Any]] = {
    aten.scaled_dot_product_attention.default: attention,
    aten.dropout.default: dropout,
    aten.dropout_.default: dropout_,
    aten.feature_dropout.default: feature_dropout,
    aten.softmax.int: softmax,
    aten.log_softmax.int: log_softmax,
}
"""Composite → the function that makes CUDA's choice."""
