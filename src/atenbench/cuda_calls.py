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
    if not train or p == 0 or not input.numel():
        return input
    if p == 1:
        return input * torch.zeros((), dtype=input.dtype, device=input.device)
    output: torch.Tensor = aten.native_dropout(input, p, train)[0]
    return output


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


class _FusedRmsNorm(torch.autograd.Function):
    """`_fused_rms_norm` has derivatives on CUDA only; elsewhere it comes apart unseen."""

    @staticmethod
    def forward(ctx: Any, input: torch.Tensor, *rest: Any) -> Any:
        shape, weight, eps = rest
        with torch._C._AutoDispatchBelowAutograd():
            output, scale = aten._fused_rms_norm(input, shape, weight, eps)
        ctx.save_for_backward(input, weight, scale)
        ctx.shape = shape
        ctx.mark_non_differentiable(scale)
        return output, scale

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        input, weight, scale = ctx.saved_tensors
        wanted = [ctx.needs_input_grad[0], weight is not None and ctx.needs_input_grad[2]]
        into_input, into_weight = aten._fused_rms_norm_backward(
            grads[0], input, ctx.shape, scale, weight, wanted
        )
        return into_input, None, into_weight if wanted[1] else None, None


def mish_backward(grad_output: torch.Tensor, input: torch.Tensor) -> Any:
    """`mish_backward`: one kernel on CUDA."""
    with torch._C._AutoDispatchBelowAutograd():
        return aten.mish_backward(grad_output, input)


def fused_rms_norm(
    input: torch.Tensor, normalized_shape: list[int], weight: torch.Tensor | None, eps: float | None
) -> Any:
    """`_fused_rms_norm`: one kernel forward and one backward on CUDA."""
    if not torch.is_grad_enabled():
        with torch._C._AutoDispatchBelowAutograd():
            return aten._fused_rms_norm(input, normalized_shape, weight, eps)
    return _FusedRmsNorm.apply(input, normalized_shape, weight, eps)  # type: ignore[no-untyped-call]


COMPOSITES: dict[torch._ops.OpOverload, Callable[..., Any]] = {
    aten.scaled_dot_product_attention.default: attention,
    aten.dropout.default: dropout,
    aten.softmax.int: softmax,
    aten.log_softmax.int: log_softmax,
    aten._fused_rms_norm.default: fused_rms_norm,
    aten.mish_backward.default: mish_backward,
}
"""Composite → the function that makes CUDA's choice."""

ONE_KERNEL = frozenset({aten._fused_rms_norm.default, aten.mish_backward.default})
"""Composites elsewhere that are one kernel on CUDA; the mode records them as they are."""


def as_cuda_returns(func: torch._ops.OpOverload, args: tuple[Any, ...], result: Any) -> Any:
    """The result of an operator with the dtypes and strides that CUDA's kernel gives it."""
    correct = _RESULTS.get(func)
    return result if correct is None else correct(args, result)


def _convolution(args: tuple[Any, ...], result: torch.Tensor) -> torch.Tensor:
    """cuDNN answers in channels-last where the input or the weight is."""
    if result.dim() == 4 and (_is_channels_last(args[0]) or _is_channels_last(args[1])):
        return result.contiguous(memory_format=torch.channels_last)
    return result


def _is_channels_last(tensor: torch.Tensor) -> bool:
    """Whether the strides fall in the order N, H, W, C; what could be either is N, C, H, W."""
    if tensor.stride(1) == 0:
        return False
    smallest = 0
    for dimension in (1, 3, 2, 0):
        size, step = tensor.size(dimension), tensor.stride(dimension)
        if size == 0 or step < smallest or (dimension == 0 and smallest == tensor.stride(1)):
            return False
        smallest = step * size
    return True


def _weight_norm(args: tuple[Any, ...], result: Any) -> Any:
    """The norms of half-precision weights are kept in float."""
    weight, norms = result
    return weight, norms.float()


_RESULTS: dict[torch._ops.OpOverload, Callable[[tuple[Any, ...], Any], Any]] = {
    aten.convolution.default: _convolution,
    aten._weight_norm_interface.default: _weight_norm,
}
