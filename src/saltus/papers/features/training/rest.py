"""From where training ends to the stationary point ahead: L-BFGS on the expected DDPM loss, in one
program."""

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

__all__ = ["come_to_rest"]

PyTree = Any
MEMORY = 12  # pairs of steps and changes of the gradient
ENOUGH = 1e-4  # Armijo's constant


def come_to_rest(
    X: np.ndarray,
    omega: np.ndarray,
    W: np.ndarray,
    *,
    alpha: Any = ddpm.ALPHA_BETA[0],
    beta: Any = ddpm.ALPHA_BETA[1],
    prefactor: str = "sqrt_m",
    slope: float = 1e-6,
    trials: int = 2000,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Go on from `W` downhill until the gradient vanishes (Nocedal and Wright, Algorithm 7.5).

    Every step lowers the loss (Armijo, by halving); a pair without positive curvature is left out.

    - `X` [run, P, D], `omega` [run, P], `W` [run, m, D]; `alpha`, `beta`: one for all or one for each run.
    - `slope`: the norm of the gradient asked for; `trials`: evaluations at most.

    Returns, runs first, `W`, `loss` less its value at W = 0, `slope` as it came out (larger than asked for
    where trials ran out or only rounding was left) and `tried`.
    """
    if not slope > 0 or trials < 1:
        raise BadInput("the slope asked for must be above 0, and one trial or more allowed")
    runs, m, D = W.shape
    a, b = (np.broadcast_to(np.asarray(v, float), (runs,)) for v in (alpha, beta))
    args = (X, omega, np.asarray(W, float), a, b, np.asarray(slope, float), np.asarray(trials))
    found = run_many(_program(model.prefactor(m, prefactor)), runs, block=1, args=args, progress=progress)
    return {**found, "W": found["W"].reshape(runs, m, D)}


@lru_cache(maxsize=16)
def _program(c: float) -> Callable[..., PyTree]:
    def one(X: Any, omega: Any, W: Any, alpha: Any, beta: Any, slope: Any, trials: Any) -> PyTree:
        def both(w: jax.Array) -> tuple[jax.Array, jax.Array]:
            V = w.reshape(W.shape)
            g = ddpm.gradient(V, X, omega, alpha, beta, c)
            return ddpm.change(V, X, omega, alpha, beta, c), g.ravel()

        def goes_on(state: PyTree) -> jax.Array:
            return ~state["stuck"] & (state["tried"] < trials) & (jnp.sqrt(state["g"] @ state["g"]) > slope)

        def step(state: PyTree) -> PyTree:
            w, L, g = state["w"], state["L"], state["g"]
            p = -_inverse_times(g, state)
            # Without a history a step as long as the gradient could leap out of the valley.
            p = jnp.where(state["kept"] > 0, p, p * jnp.minimum(1.0, 1e-3 / jnp.sqrt(g @ g)))
            along = p @ g
            tried = state["tried"]

            def short(found: PyTree) -> jax.Array:
                size, L_new, _, n = found
                return ~(L_new <= L + ENOUGH * size * along) & (size > 1e-14) & (n < tried + 60)

            def halve(found: PyTree) -> PyTree:
                size = found[0] / 2
                return (size, *both(w + size * p), found[3] + 1)

            first = (jnp.ones(()), *both(w + p), tried + 1)
            size, L_new, g_new, tried = jax.lax.while_loop(short, halve, first)
            good = L_new < L
            s, y = size * p, g_new - g
            curved = good & (s @ y > 1e-12 * jnp.sqrt((s @ s) * (y @ y)))
            at = state["kept"] % MEMORY
            put = lambda held, new: held.at[at].set(jnp.where(curved, new, held[at]))  # noqa: E731
            return {
                "w": jnp.where(good, w + s, w),
                "L": jnp.where(good, L_new, L),
                "g": jnp.where(good, g_new, g),
                "S": put(state["S"], s),
                "Y": put(state["Y"], y),
                "rho": put(state["rho"], 1 / (s @ y)),
                # Where the history leads nowhere, once more from plain descent.
                "kept": jnp.where(good, state["kept"] + curved, 0),
                "stuck": ~good & (state["kept"] == 0),
                "tried": tried,
            }

        w = W.ravel()
        L, g = both(w)
        history = jnp.zeros((MEMORY, w.size))
        zero = jnp.zeros((), jnp.int64)
        state = {
            "w": w, "L": L, "g": g, "S": history, "Y": history, "rho": jnp.zeros(MEMORY),
            "kept": zero, "stuck": jnp.zeros((), bool), "tried": zero + 1,
        }  # fmt: skip
        end = jax.lax.while_loop(goes_on, step, state)
        size = jnp.sqrt(end["g"] @ end["g"])
        return {"W": end["w"], "loss": end["L"], "slope": size, "tried": end["tried"]}

    def block_fn(index: jax.Array, *args: Any) -> PyTree:
        # One run to a block: no other run's line search is waited for.
        n = index[0]
        return jax.tree.map(lambda leaf: leaf[None], one(*(leaf[n] for leaf in args[:5]), *args[5:]))

    return block_fn


def _inverse_times(g: jax.Array, state: PyTree) -> jax.Array:
    """The approximate inverse Hessian times g: two loops over the pairs kept, newest first and back."""
    S, Y, rho, kept = state["S"], state["Y"], state["rho"], state["kept"]
    held = jnp.minimum(kept, MEMORY)

    def down(i: jax.Array, carry: PyTree) -> PyTree:
        q, parts = carry
        k = (kept - 1 - i) % MEMORY
        part = rho[k] * (S[k] @ q)
        return q - part * Y[k], parts.at[k].set(part)

    q, parts = jax.lax.fori_loop(0, held, down, (g, jnp.zeros(MEMORY)))
    last = (kept - 1) % MEMORY
    scale = jnp.where(kept > 0, 1 / jnp.maximum(rho[last] * (Y[last] @ Y[last]), 1e-300), 1.0)

    def up(i: jax.Array, r: jax.Array) -> jax.Array:
        k = (kept - held + i) % MEMORY
        return r + (parts[k] - rho[k] * (Y[k] @ r)) * S[k]

    return jax.lax.fori_loop(0, held, up, scale * q)
