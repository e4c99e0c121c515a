"""The same in plain JAX: one compiled loop over all runs, in R^d."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from peers.features_numpy import ALPHA, BETA

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_default_matmul_precision", "highest")


def gradient(W: Any, X: Any, omega: Any) -> Any:
    a, b, c, w = ALPHA, BETA, len(W) ** -0.5, omega[:, None]
    G, A = W @ W.T, X @ W.T
    s, total = jnp.diag(G), omega.sum()
    U, AA = a**2 * A**2 + b**2 * s, (w * A).T @ A
    K = (w * U).T @ U + 4 * a**2 * b**2 * AA * G + 2 * total * b**4 * G**2
    D = c**2 * (K + G * (4 * a**2 * b**2 * AA + 4 * total * b**4 * G))
    V = 2 * c**2 * w * (U @ G)
    dA = 2 * a**2 * V * A + 8 * c**2 * a**2 * b**2 * w * (A @ G**2) - 4 * a * b * c * w * s
    ds = b**2 * V.sum(0) - 4 * a * b * c * (w * A).sum(0)
    return 2 * (D + jnp.diag(ds)) @ W + dA.T @ X


def prepare(
    given: dict[str, Any], eta: float, steps: int, device: str, dtype: str, **options: Any
) -> Callable[[], Any]:
    X, omega, start = (jnp.asarray(given[k].astype(dtype)) for k in ("X", "omega", "W"))

    @jax.jit
    @jax.vmap
    def train(x: Any, weight: Any, W: Any) -> Any:
        return x @ jax.lax.fori_loop(0, steps, lambda _, W: W - eta * gradient(W, x, weight), W).T

    return lambda: np.asarray(train(X, omega, start))
