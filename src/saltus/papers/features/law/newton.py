"""Newton's method and the curvature of the loss on all weights at once, in coordinates of the span."""

from __future__ import annotations

from typing import Any

import numpy as np

from saltus._jax import jax, jnp
from saltus.papers.features.law import ddpm
from saltus.papers.features.model import prefactor

__all__ = ["curvatures", "polish"]

Array = Any


@jax.jit
def _slope_and_bend(W: jax.Array, X: Array, omega: Array, alpha: Array, beta: Array, c: Array) -> Any:
    def slope(flat: jax.Array) -> jax.Array:
        return ddpm.gradient(flat.reshape(W.shape), X, omega, alpha, beta, c).ravel()

    return slope(W.ravel()), jax.jacfwd(slope)(W.ravel())


def polish(
    W: Array, X: Array, omega: Array, alpha: float, beta: float, c: float | None = None, steps: int = 20
) -> np.ndarray:
    """The stationary point next to `W` [m, D], to the last digits.

    Minima come in families, since rotating what lies outside the patches changes nothing: the flat directions
    are left alone. Steps are halved until the gradient is smaller.
    """
    c = prefactor(len(W)) if c is None else c
    W = np.asarray(W, float)
    for _ in range(steps):
        g, bend = (np.asarray(v) for v in _slope_and_bend(jnp.asarray(W), X, omega, alpha, beta, c))
        if np.linalg.norm(g) < 1e-12 * np.abs(bend).max() * np.linalg.norm(W):
            return W
        rates, axes = np.linalg.eigh((bend + bend.T) / 2)
        firm = np.abs(rates) > 1e-9 * np.abs(rates).max()
        move = -(axes[:, firm] @ ((axes[:, firm].T @ g) / rates[firm])).reshape(W.shape)
        for halving in range(12):
            ahead = W + move / 2**halving
            there = ddpm.gradient(ahead, X, jnp.asarray(omega), alpha, beta, c)
            if float(jnp.linalg.norm(there)) < np.linalg.norm(g):
                W = ahead
                break
        else:
            return W
    return W


def curvatures(
    W: Array, X: Array, omega: Array, alpha: float, beta: float, c: float | None = None
) -> np.ndarray:
    """All eigenvalues of the second derivative by `W` [m, D], ascending [m D]."""
    c = prefactor(len(W)) if c is None else c
    _, bend = _slope_and_bend(jnp.asarray(W), X, omega, alpha, beta, c)
    return np.linalg.eigvalsh(np.asarray((bend + bend.T) / 2))
