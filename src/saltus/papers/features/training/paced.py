"""Descent on the expected DDPM loss whose step follows the curvature, looked at at given training times."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput
from saltus.descent._ensemble import run_many
from saltus.papers.features import model
from saltus.papers.features.law import ddpm

__all__ = ["descend_paced"]

PyTree = Any
GROWTH, PROMISE = 1.25, 0.5


def descend_paced(
    X: np.ndarray,
    omega: np.ndarray,
    W0: np.ndarray,
    *,
    times: Any,
    alpha: Any = ddpm.ALPHA_BETA[0],
    beta: Any = ddpm.ALPHA_BETA[1],
    prefactor: str = "sqrt_m",
    eta: float = 1e-3,
    trials: int = 20000,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Follow W <- W - eta grad L with a step of its own at every moment, until the steps add up to the last
    time.

    A step is taken if it lowers the loss by half of what the gradient promises (Armijo), which on a
    parabola means that it does not go beyond the bottom; the next is then 1.25 times as long. If not, it is
    halved and tried again. What fixed steps would need tens of thousands of iterations for, and oscillate
    where curvature rises, takes some hundreds of trials, each one evaluation of loss and gradient together.

    - `X` [run, P, D], `omega` [run, P], `W0` [run, m, D]: patches, weights and start; `alpha`, `beta`: one
      for all or one for each run.
    - `times`: training times looked at, in ascending order: the sum of the steps on the loss summed over
      coordinates.
    - `eta`: first step; `trials`: evaluations at most, after which the rest of the looks repeat the last
      state.

    Returns, runs first, at every time `W` [run, t, m, D], `loss` less its value at W = 0, `slope` (the norm
    of the gradient), `taken` and `tried` steps so far, and `reached`, the training time.
    """
    at = np.asarray(times, float)
    if at.ndim != 1 or not at.size or at[0] < 0 or (np.diff(at) <= 0).any() or not np.isfinite(at).all():
        raise BadInput("the times to look at must be one ascending list of numbers of at least 0")
    if not eta > 0 or trials < 1:
        raise BadInput("the first step must be above 0, and one trial or more allowed")
    runs, m = W0.shape[:2]
    a, b = (np.broadcast_to(np.asarray(v, float), (runs,)) for v in (alpha, beta))
    args = (X, omega, np.asarray(W0, float), a, b, np.asarray(at), np.asarray(eta, float))
    c = model.prefactor(m, prefactor)
    seen: dict[str, Any] = run_many(_program(c, trials), runs, block=1, args=args, progress=progress)
    return {"time": at, **seen}


@lru_cache(maxsize=16)
def _program(c: float, trials: int) -> Callable[..., PyTree]:
    def one(X: Any, omega: Any, W0: Any, alpha: Any, beta: Any, times: Any, eta: Any) -> PyTree:
        def both(W: jax.Array) -> tuple[jax.Array, jax.Array]:
            # One program: what the two have in common is computed once.
            return ddpm.change(W, X, omega, alpha, beta, c), ddpm.gradient(W, X, omega, alpha, beta, c)

        def attempt(end: jax.Array, state: PyTree) -> PyTree:
            W, L, g, t, rate, taken, tried = state
            left = end - t
            step = jnp.minimum(rate, left)
            new = W - step * g
            L_new, g_new = both(new)
            good = L_new <= L - PROMISE * step * (g**2).sum()
            W, L, g = (jnp.where(good, x, y) for x, y in ((new, W), (L_new, L), (g_new, g)))
            # Exactly the time asked for, not its rounded sum.
            t = jnp.where(good, jnp.where(step < left, t + step, end), t)
            # A step cut short by a look says nothing about how long the next may be.
            rate = jnp.where(good, jnp.where(step < rate, rate, GROWTH * rate), step / 2)
            return W, L, g, t, rate, taken + good, tried + 1

        def upto(state: PyTree, end: jax.Array) -> PyTree:
            def goes_on(state: PyTree) -> jax.Array:
                # Below 1e-12 of the first step only rounding is left to gain.
                return (state[3] < end) & (state[6] < trials) & (state[4] > 1e-12 * eta)

            state = jax.lax.while_loop(goes_on, lambda s: attempt(end, s), state)
            W, L, g, t, _, taken, tried = state
            seen = {"W": W, "loss": L, "slope": jnp.sqrt((g**2).sum()), "taken": taken, "tried": tried}
            return state, {**seen, "reached": t}

        L, g = both(W0)
        zero = jnp.zeros((), jnp.int64)
        return jax.lax.scan(upto, (W0, L, g, jnp.zeros(()), eta, zero, zero), times)[1]

    def block_fn(index: jax.Array, *args: Any) -> PyTree:
        mine = tuple(leaf[index] for leaf in args[:5])
        return jax.vmap(one, in_axes=(0, 0, 0, 0, 0, None, None))(*mine, *args[5:])

    return block_fn
