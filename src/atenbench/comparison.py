"""The ways of timing that ours is compared with, as their authors wrote them: inputs and all.

Used by the benchmark and by the GPU check, never by the pipeline.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OpOverload
from torch.testing import make_tensor

from atenbench.arguments import Arguments, SparseTensor, Tensor, parse
from atenbench.input_rules import Domain, TensorInput, tensor_inputs
from atenbench.inputs import Call, structured_values
from atenbench.operators import resolve
from atenbench.tensors import call_arguments, torch_dtype

CPU = torch.device("cpu")


def fresh_call(op: OpOverload, arguments: Arguments, device: torch.device = CPU) -> Call:
    """New random tensors for one problem, as the reference makes them (``make_tensor``, [0, 1)).

    Only integers are as our rules want them: with the reference's own the operator would raise.
    """
    inputs = iter(tensor_inputs(op, arguments))
    return call_arguments(arguments, lambda tensor: _fresh(tensor, next(inputs), device), device)


def _fresh(tensor: Tensor | SparseTensor, given: TensorInput, device: torch.device) -> torch.Tensor:
    if isinstance(tensor, SparseTensor):
        raise NotImplementedError("no fresh sparse tensors")
    dtype, low, high = torch_dtype(tensor.dtype), 0.0, 1.0
    if not (dtype.is_floating_point or dtype.is_complex):
        low, high = 0, 10
    if given.domain is not None:
        if given.domain.kind in ("sorted", "offsets", "rows", "mask"):
            return _structured(tensor.shape, given.domain).to(device, dtype)
        low, high = given.domain.low, given.domain.high
    if dtype is torch.bool:
        return make_tensor(tensor.shape, dtype=dtype, device=device)
    if tensor.stride is None:
        return make_tensor(tensor.shape, dtype=dtype, device=device, low=low, high=high)
    flat = make_tensor((tensor.extent,), dtype=dtype, device=device, low=low, high=high)
    return flat.as_strided(tensor.shape, tensor.stride)


def _structured(shape: tuple[int, ...], domain: Domain) -> torch.Tensor:
    return structured_values(shape, domain, torch.Generator().manual_seed(0))


def cpu_bench(op: OpOverload, call: Call) -> float:
    """BackendBench's CPU loop (``eval.py``): 10 warm-up runs, mean of 100 runs. Seconds."""
    args, kwargs = call
    for _ in range(10):
        op(*args, **kwargs)
    start = time.perf_counter()
    for _ in range(100):
        op(*args, **kwargs)
    return (time.perf_counter() - start) / 100


def do_bench_on_cpu(op: OpOverload, call: Call, warmup: float = 0.025, rep: float = 0.1) -> float:
    """``triton.testing.do_bench`` with a CPU's clock and without its flush. Mean seconds.

    An estimate from 5 calls, then about 25 ms of warm-up calls and 100 ms of timed ones. (A flush
    of the cache in each sample would make it slower, and measure the interpreter's misses.)
    """
    args, kwargs = call
    op(*args, **kwargs)
    start = time.perf_counter()
    for _ in range(5):
        op(*args, **kwargs)
    estimate = (time.perf_counter() - start) / 5
    for _ in range(max(1, int(warmup / estimate))):
        op(*args, **kwargs)
    times = []
    for _ in range(max(1, int(rep / estimate))):
        start = time.perf_counter()
        op(*args, **kwargs)
        times.append(time.perf_counter() - start)
    return statistics.fmean(times)


def literal_do_bench(op: OpOverload, call: Call) -> float:
    """Triton's own ``do_bench(warmup=25, rep=100)``, as BackendBench calls it. Mean seconds."""
    from triton.testing import do_bench

    args, kwargs = call
    milliseconds: Any = do_bench(lambda: op(*args, **kwargs), warmup=25, rep=100)
    return float(milliseconds) / 1e3


@dataclass(frozen=True, slots=True)
class ReferenceTrial:
    """One problem the reference's way: fresh tensors, a timing loop, a garbage collection.

    Attributes:
        loop: times an operator's call; seconds.
    """

    loop: Callable[[OpOverload, Call], float]

    def __call__(self, problem: tuple[str, str]) -> float:
        """Seconds of a problem, given as operator and arguments."""
        op_name, args = problem
        op = resolve(op_name)
        seconds = self.loop(op, fresh_call(op, parse(args)))
        gc.collect()
        return seconds
