"""What a runtime depends on beside its operator: device, versions, threads, allocator."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import torch


def fingerprint(name: str) -> str:
    """What a runtime depends on of the device: measurements of equal fingerprints are comparable.

    A CPU's model, its instruction set as torch uses it and its threads in use (one); a GPU's name
    and driver.
    """
    if name == "cpu":
        capability = torch.backends.cpu.get_cpu_capability()
        return f"cpu {cpu_model()} {capability} {platform.machine()} 1 thread"
    properties = torch.cuda.get_device_properties(torch.device(name))
    memory = round(properties.total_memory / 2**30)
    return f"cuda {properties.name} {memory} GiB, CUDA {torch.version.cuda}, driver {driver()}"


def cpu_model() -> str:
    """The CPU's name, family, model and stepping, as the kernel tells them."""
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    told = dict(line.split(":", 1) for line in lines if ":" in line)
    values = {key.strip(): value.strip() for key, value in told.items()}
    known = [values.get(key, "") for key in ("model name", "cpu family", "model", "stepping")]
    return " ".join(value for value in known if value) or platform.machine()


def driver() -> str | None:
    """The version of the NVIDIA driver's kernel module, None where there is none."""
    try:
        return Path("/sys/module/nvidia/version").read_text().strip()
    except OSError:
        return None


def surroundings(name: str) -> dict[str, Any]:
    """What is recorded once for a run: versions, threads, allocator, load (see measure.RECORD)."""
    return {
        "device": fingerprint(name),
        "torch_version": torch.__version__,
        "triton_version": _version("triton"),
        "driver_version": driver(),
        "threads": torch.get_num_threads(),
        "cpu_affinity": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "allocator": allocator_settings(),
        "flush_denormal": _flushes_denormals(),
    }


def allocator_settings() -> str:
    """The C library's and torch's allocator settings that are in force, as ``NAME=value`` words."""
    wanted = ("MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD", "PYTORCH_CUDA_ALLOC_CONF")
    found = {name: value for name, value in os.environ.items() if name.startswith(wanted)}
    return " ".join(f"{name}={value}" for name, value in sorted(found.items()))


def steal_seconds() -> float | None:
    """Time that other guests of the host have taken from all cores since boot (Linux)."""
    try:
        with Path("/proc/stat").open() as lines:
            return int(lines.readline().split()[8]) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return None


def virtual_bytes() -> int:
    """The address space that this process has mapped; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _flushes_denormals() -> bool:
    """Whether the smallest numbers are taken for 0 (FTZ/DAZ), which changes some kernels' time."""
    tiny = torch.tensor(1e-42, dtype=torch.float32)
    return bool((tiny * 1.0) == 0)


_GPU_QUERY = {
    "gpu_clock_mhz": ("clocks.sm", int),
    "gpu_memory_clock_mhz": ("clocks.mem", int),
    "gpu_temperature_c": ("temperature.gpu", int),
    "gpu_power_w": ("power.draw", float),
    "gpu_throttle": ("clocks_throttle_reasons.active", str),
}


def gpu_readings(name: str) -> dict[str, Any]:
    """Clocks, temperature, power and reasons for throttling of ``cuda:N``; empty where unknown."""
    try:
        uuid = torch.cuda.get_device_properties(torch.device(name)).uuid
        fields = ",".join(field for field, _ in _GPU_QUERY.values())
        command = ["nvidia-smi", f"--id=GPU-{uuid}", f"--query-gpu={fields}"]
        said = subprocess.run(
            [*command, "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError, RuntimeError, AttributeError):
        return {}
    return parse_gpu_readings(said)


def parse_gpu_readings(said: str) -> dict[str, Any]:
    """One line of ``nvidia-smi`` values; what a GPU does not tell (``[N/A]``) is left out."""
    readings: dict[str, Any] = {}
    for (name, (_, kind)), word in zip(_GPU_QUERY.items(), said.strip().split(","), strict=False):
        try:
            readings[name] = kind(word.strip())
        except ValueError:
            continue
    return readings
