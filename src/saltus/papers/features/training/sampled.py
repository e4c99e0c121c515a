"""Training of the denoiser on drawn noises, as published: what the expected loss replaces."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from saltus._jax import jax, jnp
from saltus.papers.features import model
from saltus.papers.features.law import ddpm
from saltus.papers.features.training.engine import whole

__all__ = ["train_sampled"]


def train_sampled(
    X: np.ndarray,
    members: np.ndarray,
    W0: np.ndarray,
    *,
    eta: float,
    at: Any,
    alpha: float,
    beta: float,
    noises: int,
    seed: int,
    prefactor: str = "sqrt_m",
    look: Callable[..., Any] = whole,
) -> dict[str, Any]:
    """Gradient descent of one run on `noises` new draws for both patches of every point, at every step.

    - `X` [P, D], `W0` [m, D] in coordinates of their span: noise outside of it changes no expectation, and
      what little it lets the weights drift there is left out; `members` [n, P]: patches of every point.
    - `at`: steps looked at; `look(W, problem)` as for `train_denoiser`.

    Returns `step` [t] and what `look` returned [t, ...].
    """
    steps = np.asarray(at)
    float32 = [np.asarray(v, np.float32) for v in (X, W0)]
    # Both patches of every point, each with noises of its own: [2 n, D], all of weight 1 / n.
    points = np.concatenate([np.flatnonzero(row) for row in np.asarray(members)])
    problem = {
        "X": float32[0],
        "omega": np.asarray(members, np.float32).mean(0),
        "alpha": np.float32(alpha),
        "beta": np.float32(beta),
        "c": np.float32(model.prefactor(len(W0), prefactor)),
    }
    key = jax.random.key(np.uint32(seed), impl="unsafe_rbg")
    gaps = np.diff(steps, prepend=0)
    seen = _program(noises, look)(key, problem, float32[0][points], float32[1], np.float32(eta), gaps)
    return {"step": steps, **{k: np.asarray(v) for k, v in seen.items()}}


@lru_cache(maxsize=32)
def _program(noises: int, look: Any) -> Any:
    def one(key: Any, p: Any, points: Any, W: Any, eta: Any, gaps: Any) -> Any:
        omega = jnp.full(len(points), 2 / len(points), W.dtype)

        def step(_: Any, state: Any) -> Any:
            W, k = state
            here = jax.random.fold_in(key, k)
            _, g = ddpm.monte_carlo(here, W, points, omega, p["alpha"], p["beta"], p["c"], noises)
            return W - eta * g, k + 1

        def upto(state: Any, gap: Any) -> Any:
            state = jax.lax.fori_loop(0, gap, step, state)
            return state, look(state[0], p)

        return jax.lax.scan(upto, (W, 0), gaps)[1]

    return jax.jit(one)
