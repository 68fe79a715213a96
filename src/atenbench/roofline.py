"""What a device does at best, measured on the spot: bytes and, for each dtype, FLOPs a second.

Method: the fastest of several copies and sums of a buffer far larger than any cache, and the
fastest of several products of ever larger square matrices. They are roofs for the eye, not the
values of a data sheet: the best that plain torch calls reach on this device with the threads that
problems are given. A device is measured once; what is known of it is kept beside the measurements.
"""

from __future__ import annotations

import hashlib
import json
import logging
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from atenbench.atomic import replacing
from atenbench.errors import UserError
from atenbench.store import Store, holding_one

logger = logging.getLogger(__name__)

NOTHING: dict[str, Any] = {"device": None, "bytes_per_s": None, "flops_per_s": {}}
"""What is known where no device is asked."""

_DTYPES = ("f32", "f16", "bf16")
_BYTES = 2**28
_SIZES = (256, 512, 1024, 2048, 4096, 8192)
_LONG_ENOUGH = {"cpu": 0.020, "cuda": 0.002}
"""Seconds of a product: with larger matrices the rate would hardly rise any more."""
_TURNS = 5


def write_roofline(output: Path, store_folder: Path, wanted: str) -> None:
    """Write the roofs of the device that ``wanted`` (``auto``, ``cpu``, ``cuda``, ``off``) means.

    Raises:
        UserError: there is no such device.
    """
    roofs = NOTHING if wanted == "off" else _known_or_measured(store_folder, wanted)
    with replacing(output) as part:
        part.write_text(json.dumps(roofs, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _known_or_measured(store_folder: Path, wanted: str) -> dict[str, Any]:
    import torch

    from atenbench.devices import choose
    from atenbench.machine import fingerprint

    found = choose(wanted)
    if not found:
        raise UserError("device: cuda is wanted but torch finds none; set it to auto, cpu or off")
    name = found[0]
    about = {"device": fingerprint(name), "torch": torch.__version__}
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]
    with holding_one(store_folder, [f"{socket.gethostname()}-{name.replace(':', '-')}"]):
        store = Store(store_folder)
        roofs = store.kept(f"roofline-{digest}")
        if roofs is None:
            roofs = about | measured(name)
            store.keep(f"roofline-{digest}", roofs)
    logger.info("%s", _summary(roofs))
    return roofs


def measured(name: str) -> dict[str, Any]:
    """``bytes_per_s`` and, for each dtype that the device multiplies, ``flops_per_s``."""
    import torch

    from atenbench.devices import open_device
    from atenbench.tensors import torch_dtype

    device = open_device(name)

    def fastest(op: Callable[..., Any], *args: Any) -> float:
        return min(device.call(op, (args, {}))[1] for _ in range(_TURNS))

    source, target = (device.allocate(_BYTES).fill_(0).view(torch.float32) for _ in range(2))
    copied = 2 * _BYTES / fastest(target.copy_, source)
    read = _BYTES / fastest(torch.sum, source)  # a write may cost a read of what was there
    del source, target
    flops_per_s: dict[str, float] = {}
    for dtype in _DTYPES:
        for size in _SIZES:
            factor = torch.ones(size, size, dtype=torch_dtype(dtype), device=device.device)
            seconds = fastest(torch.mm, factor, factor)
            flops_per_s[dtype] = max(flops_per_s.get(dtype, 0), 2 * size**3 / seconds)
            if seconds > _LONG_ENOUGH[device.device.type]:
                break
    return {"bytes_per_s": max(copied, read), "flops_per_s": flops_per_s}


def _summary(roofs: dict[str, Any]) -> str:
    rates = [
        f"{rate / 1e9:,.0f} GFLOP/s in {dtype}" for dtype, rate in roofs["flops_per_s"].items()
    ]
    return ", ".join([f"at best {roofs['bytes_per_s'] / 1e9:,.1f} GB/s", *rates])
