"""The machine and the software of a measurement, without names of hosts or people."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("saltus", "jax", "jaxlib", "numpy", "torch", "xarray", "zarr", "matplotlib", "optax", "diffrax")
FLAGS = ("XLA_FLAGS", "JAX_PLATFORMS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def environment(device: str) -> dict[str, Any]:
    """Everything that could explain a number."""
    return {
        "cpu": cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.platform(),
        "gpu": gpu() if device == "gpu" else None,
        "python": platform.python_version(),
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
        "flags": {name: os.environ[name] for name in FLAGS if name in os.environ},
        "commit": commit(),
    }


def load() -> list[float]:
    """Average number of busy processes over 1, 5 and 15 minutes."""
    return [round(x, 2) for x in os.getloadavg()]


def cpu() -> str:
    """Model, and what tells apart processors that report no more than a brand."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    found = dict(re.findall(r"^([\w ]+?)\s*: (.*)$", text, re.M))
    wide = " avx512" if "avx512f" in found.get("flags", "") else ""
    name = found.get("model name", platform.machine())
    return f"{name} (family {found.get('cpu family', '?')} model {found.get('model', '?')}{wide})"


def gpu() -> str | None:
    """Name, driver and memory."""
    try:
        done = subprocess.run(
            ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=20,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def commit() -> str | None:
    """Commit of this tree, with `+` when it has local changes."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, timeout=10)
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        head = git("rev-parse", "--short=12", "HEAD")
        return (head + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")) or None
    except (OSError, subprocess.SubprocessError):
        return None


def slug(device: str) -> str:
    """A short name of the machine for a file."""
    if device == "gpu":
        words = (gpu() or "gpu").split(",")[0]
    else:
        words = f"{cpu().split('(')[0].strip()} {len(os.sched_getaffinity(0))} cores"
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
