"""Steps of one run per second for gradient descent on a 3 x 3 symmetric model: this engine beside its peers.

    python benchmarks/tiny_flows.py [--runs 16384] [--steps 2000] [--repeats 5] [--only NAME ...]

One JSON line per variant on stdout, after one with the environment. Each time is the best of several
repeats, compilation apart; on a machine that is doing something else, all of them are too long. Needs
JAX and numpy; the PyTorch peers are skipped, with a message, where it is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

try:
    import saltus._jax  # noqa: F401
except ImportError:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from saltus._jax import jax, jnp, workers
from saltus.papers.sim import symmetric

MU = np.array([1.0, 1.5, 2.2])
A = 0.05**2 + MU**2 / 3
ETA = 0.01
FLOPS = 114  # multiplications and additions in one step: 30 for W, 12 for M, 54 for M U, 18 to apply it


def best(call: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Seconds of the first call and of the fastest one after it."""
    began = time.perf_counter()
    call()
    first, times = time.perf_counter() - began, []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return first, min(times)


def engine(runs: int, steps: int, **more: Any) -> Callable[[], Any]:
    return lambda: symmetric.evolve(A, MU, runs, eta=ETA, steps=steps, **more)


def plain_vmap(runs: int, steps: int) -> Callable[[], Any]:
    rate, eye = jnp.asarray(ETA * (A[:, None] + A) / 2), jnp.eye(3)

    def one(u: Any) -> Any:
        return jax.lax.fori_loop(0, steps, lambda _, u: u - (rate * (u @ u.T - eye)) @ u, u)

    many, start = jax.jit(jax.vmap(one)), jnp.asarray(symmetric.starts(runs, 3))
    return lambda: jax.block_until_ready(many(start))


def torch_loop(runs: int, steps: int, device: str) -> Callable[[], Any]:
    """A tight eager loop: one run when runs is 1, else all of them as one batch."""
    import torch

    start = torch.tensor(symmetric.starts(runs, 3), device=device)
    start = start[0] if runs == 1 else start
    rate = torch.tensor(ETA * (A[:, None] + A) / 2, device=device)
    eye = torch.eye(3, dtype=torch.float64, device=device)

    def call() -> None:
        u = start
        with torch.no_grad():
            for _ in range(steps):
                u = u - (rate * (u @ u.mT - eye)) @ u
        float(u.sum())  # waits for the device

    return call


def variants(runs: int, steps: int) -> Iterator[tuple[str, int, int, Callable[[], Callable[[], Any]]]]:
    """Name, runs, steps and how to prepare the call."""
    device = "cuda" if jax.default_backend() == "gpu" else "cpu"
    few = max(steps // 20, 10)
    yield "engine", runs, steps, lambda: engine(runs, steps, watch=())
    yield "engine, watched", runs, steps, lambda: engine(runs, steps)
    yield "engine, loop", runs, steps, lambda: engine(runs, steps, watch=(), engine="loop")
    one = workers()[:1]
    yield "engine, one device", runs, steps, lambda: engine(runs, steps, watch=(), devices=one)
    yield "engine, flow (RK4)", runs, steps, lambda: engine(runs, steps, how="flow", watch=())
    yield "engine, recursion on W", runs, steps, lambda: engine(runs, steps, how="recursion", watch=())
    yield "plain vmap", runs, few, lambda: plain_vmap(runs, few)
    yield "PyTorch eager, one run", 1, few, lambda: torch_loop(1, few, device)
    yield "PyTorch eager, batched", runs, few, lambda: torch_loop(runs, few, device)


def environment() -> dict[str, Any]:
    cpu = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as lines:
            cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), cpu)
    try:
        torch = version("torch")
    except ImportError:
        torch = None
    return {
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)),
        "load": round(os.getloadavg()[0], 2),
        "devices": [str(d) for d in workers()],
        "kind": workers()[0].device_kind,
        "python": platform.python_version(),
        "jax": version("jax"),
        "numpy": version("numpy"),
        "torch": torch,
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
    }


def main() -> None:
    on_gpu = jax.default_backend() == "gpu"
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--runs", type=int, default=2**20 if on_gpu else 2**14)
    options.add_argument("--steps", type=int, default=10_000 if on_gpu else 2_000)
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--only", nargs="*", help="names of variants")
    asked = options.parse_args()
    print(json.dumps({"environment": environment()}), flush=True)
    for name, runs, steps, prepare in variants(asked.runs, asked.steps):
        if asked.only and name not in asked.only:
            continue
        try:
            first, seconds = best(prepare(), asked.repeats)
        except ImportError as missing:
            print(f"{name}: skipped, {missing}", file=sys.stderr)
            continue
        rate = runs * steps / seconds
        line = {
            "variant": name,
            "runs": runs,
            "steps": steps,
            "seconds": round(seconds, 5),
            "first_seconds": round(first, 3),
            "run_steps_per_second": float(f"{rate:.4g}"),
            "ns_per_run_step": float(f"{1e9 / rate:.4g}"),
        }
        if name.startswith("engine") and "flow" not in name and "recursion" not in name:
            line["gflops"] = float(f"{rate * FLOPS / 1e9:.4g}")
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
