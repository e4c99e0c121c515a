"""Plain gradient descent in one compiled loop, looked at at chosen steps, over many runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput
from saltus.descent._ensemble import run_many

__all__ = ["descend", "whole"]

PyTree = Any
# Runs computed together: enough to share the overhead of a step, few enough to stay in the cache.
BLOCK = 8


def whole(W: jax.Array, problem: PyTree) -> dict[str, jax.Array]:
    """What is looked at unless told otherwise: the weights themselves."""
    return {"W": W}


def descend(
    gradient: Callable[[jax.Array, PyTree], jax.Array],
    problem: PyTree,
    W0: np.ndarray,
    eta: Any,
    at: Any,
    *,
    look: Callable[[jax.Array, PyTree], PyTree] = whole,
    loss: Callable[[jax.Array, PyTree], jax.Array] | None = None,
    block: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Follow W <- W - eta gradient(W, problem) and look at the steps `at`.

    - `gradient(W, problem)`, `look(W, problem)`: functions of one run; pass the same function objects again
      and nothing is compiled again.
    - `problem`: arrays with the run axis first; `W0` [run, ...]; `eta`: a number, or one for each run [run].
    - `at`: steps in ascending order, 0 being before training; the last one ends it.
    - `loss(W, problem)`: with it every step is halved until it lowers the loss by half of what the gradient
      promises (Armijo), starting from twice the last one and never above `eta`. Without it steps are `eta`.
    - `block`: runs computed together.

    Returns `step` [t] and what `look` returned, runs first: [run, t, ...].
    """
    steps = np.asarray(at)
    if steps.ndim != 1 or not steps.size or steps[0] < 0 or (np.diff(steps) <= 0).any():
        raise BadInput("the steps to look at must be one ascending list of numbers of at least 0")
    W0 = np.asarray(W0)
    W0 = W0 if np.issubdtype(W0.dtype, np.floating) else W0.astype(float)
    runs = len(W0)
    sizes = {len(leaf) for leaf in jax.tree.leaves(problem)}
    if sizes - {runs}:
        raise BadInput(f"there are weights of {runs} runs, and data of {', '.join(map(str, sorted(sizes)))}")
    rates = np.broadcast_to(np.asarray(eta, W0.dtype), (runs,))
    if not (np.isfinite(rates).all() and (rates > 0).all()):
        raise BadInput("the step must be finite and above 0")
    gaps = np.diff(steps, prepend=0)
    seen = run_many(
        _program(gradient, look, loss),
        runs,
        block=min(block or BLOCK, runs),
        args=(problem, W0, rates, gaps),
        progress=progress,
    )
    return {"step": steps, **seen}


@lru_cache(maxsize=64)
def _program(gradient: Any, look: Any, loss: Any) -> Callable[..., PyTree]:
    def one(gaps: jax.Array, problem: PyTree, W: jax.Array, eta: jax.Array) -> PyTree:
        def plain(_: Any, state: PyTree) -> PyTree:
            W, rate = state
            return W - rate * gradient(W, problem), rate

        def searched(_: Any, state: PyTree) -> PyTree:
            W, rate = state
            g, here = gradient(W, problem), loss(W, problem)
            promise = 0.5 * (g**2).sum()

            def short(rate: jax.Array) -> jax.Array:
                enough = loss(W - rate * g, problem) <= here - rate * promise
                # Below 1e-12 of the asked step only rounding is left to gain.
                return ~enough & (rate > 1e-12 * eta)

            rate = jax.lax.while_loop(short, lambda r: r / 2, jnp.minimum(2 * rate, eta))
            return W - rate * g, rate

        def upto(state: PyTree, gap: jax.Array) -> PyTree:
            state = jax.lax.fori_loop(0, gap, plain if loss is None else searched, state)
            return state, look(state[0], problem)

        return jax.lax.scan(upto, (W, eta), gaps)[1]

    def block_fn(index: jax.Array, problem: PyTree, W0: jax.Array, eta: jax.Array, gaps: jax.Array) -> PyTree:
        mine = jax.tree.map(lambda leaf: leaf[index], (problem, W0, eta))
        return jax.vmap(partial(one, gaps))(*mine)

    return block_fn
