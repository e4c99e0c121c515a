"""Training of the denoiser on the expected loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from saltus._jax import jax
from saltus.papers.features import model
from saltus.papers.features.law import ddpm
from saltus.papers.features.training.engine import descend, whole

__all__ = ["train_denoiser"]


def _gradient(W: jax.Array, p: dict[str, jax.Array]) -> jax.Array:
    return ddpm.gradient(W, p["X"], p["omega"], p["alpha"], p["beta"], p["c"])


def _change(W: jax.Array, p: dict[str, jax.Array]) -> jax.Array:
    return ddpm.change(W, p["X"], p["omega"], p["alpha"], p["beta"], p["c"])


def train_denoiser(
    X: np.ndarray,
    omega: np.ndarray,
    W0: np.ndarray,
    *,
    eta: Any,
    at: Any,
    alpha: Any = ddpm.ALPHA_BETA[0],
    beta: Any = ddpm.ALPHA_BETA[1],
    prefactor: str = "sqrt_m",
    look: Callable[..., Any] = whole,
    backtrack: bool = False,
    block: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Gradient descent on the expected DDPM loss, summed over coordinates; many runs at a time.

    - `X` [run, P, D], `omega` [run, P], `W0` [run, m, D]: patches, weights and start, in coordinates of their
      span (`world.into_span`) or in R^d.
    - `eta`: step on the summed loss (`ddpm.effective`); `alpha`, `beta`, `eta`: one for all, or for each run.
    - `at`: steps looked at; `look(W, problem)` is what is kept of each, by default W; `problem` has `X`,
      `omega`, `alpha`, `beta` and `c`.
    - `backtrack`: halve steps that do not lower the loss (see `engine.descend`), with `eta` as the largest.

    Returns `step` [t] and by default `W` [run, t, m, D].
    """
    runs, m = len(W0), W0.shape[-2]

    def each(value: Any) -> np.ndarray:
        return np.broadcast_to(np.asarray(value, np.asarray(W0).dtype), (runs,))

    c = each(model.prefactor(m, prefactor))
    problem = {"X": X, "omega": omega, "alpha": each(alpha), "beta": each(beta), "c": c}
    chosen = _change if backtrack else None
    return descend(_gradient, problem, W0, eta, at, look=look, loss=chosen, block=block, progress=progress)
