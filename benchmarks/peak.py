"""The machine's matrix products per second: large ones, and of the size these networks have."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

SMALL = (64, 64, 128)  # a layer of width 64 on a batch of 128
DTYPES = ("float32", "float64")


def best(call: Callable[[], Any], repeats: int = 5) -> float:
    """Seconds of the fastest call, after one that is not counted."""
    call()
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def sizes(device: str, quick: bool) -> tuple[int, int]:
    """Rows of the large product, and how many small ones are done at once."""
    if quick:
        return 512, 32
    return (8192, 4096) if device == "gpu" else (2048, 64)


def of_jax(device: str, quick: bool) -> dict[str, float]:
    """With the precision JAX has here: float64 only where it is switched on."""
    import jax
    import jax.numpy as jnp

    dtypes = DTYPES if jnp.ones(()).dtype == "float64" else DTYPES[:1]
    large, many = sizes(device, quick)
    found = {}
    product = jax.jit(jnp.matmul)
    for dtype in dtypes:
        a = jnp.asarray(np.random.default_rng(0).normal(size=(large, large)), dtype)
        found[f"large {dtype}"] = 2 * large**3 / best(partial(_wait, product, a, a))
        found[f"small {dtype}"] = _jax_small(jax, jnp, dtype, many)
    return found


def _wait(call: Callable[..., Any], *given: Any) -> None:
    call(*given).block_until_ready()


def _jax_small(jax: Any, jnp: Any, dtype: str, many: int) -> float:
    m, k, n = SMALL
    w, x = jnp.ones((many, m, k), dtype) / k, jnp.ones((many, k, n), dtype)

    @jax.jit
    def chain(w: Any, x: Any) -> Any:
        return jax.lax.fori_loop(0, 50, lambda _, x: w @ x, x)

    return many * 50 * 2 * m * k * n / best(partial(_wait, chain, w, x))


def of_torch(device: str, quick: bool) -> dict[str, float]:
    import torch

    cuda = device == "gpu"
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    large, many = sizes(device, quick)
    m, k, n = SMALL
    found = {}
    for dtype in DTYPES:
        kind, where = getattr(torch, dtype), "cuda" if cuda else "cpu"
        a = torch.randn(large, large, dtype=kind, device=where)
        out = torch.empty_like(a)
        w, x = (
            torch.ones(many, m, k, dtype=kind, device=where) / k,
            torch.ones(many, k, n, dtype=kind, device=where),
        )

        def whole(a: Any = a, out: Any = out) -> None:
            torch.mm(a, a, out=out)
            if cuda:
                torch.cuda.synchronize()

        def chain(w: Any = w, x: Any = x) -> None:
            for _ in range(50):
                x = torch.bmm(w, x)
            if cuda:
                torch.cuda.synchronize()

        found[f"large {dtype}"] = 2 * large**3 / best(whole)
        found[f"small {dtype}"] = many * 50 * 2 * m * k * n / best(chain)
    return found


def of_numpy(device: str, quick: bool) -> dict[str, float]:
    """The host's, whatever the device."""
    large = 512 if quick else 2048
    found = {}
    for dtype in DTYPES:
        a = np.random.default_rng(0).normal(size=(large, large)).astype(dtype)
        found[f"large {dtype}"] = 2 * large**3 / best(partial(np.matmul, a, a))
    return found
