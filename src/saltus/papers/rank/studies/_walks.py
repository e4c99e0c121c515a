"""Heads that change at random by as much as trained ones did: what their spectra are to be compared with."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from saltus._lazy import jax, jnp, np

__all__ = ["PRODUCTS", "changes", "sizes", "tiny", "walk"]

PRODUCTS = ("KQ", "VO")
FACTORS = ("W_K", "W_Q", "W_V", "W_O")  # of the two products in turn
TINY = 1e-3  # of the initial size: where the closed form of the change holds


def changes() -> Any:
    """The probe of how far each factor of each head is from its start: `[factor, layer, head]`."""
    from saltus import probe

    @probe.probe("factor", "layer", "head", name="moved")
    def moved(state: Any) -> Any:
        """Frobenius norm of the change"""
        now, start = factors(state.params), factors(state.start)
        return sizes(now - start)

    return moved


def factors(params: Any) -> Any:
    """W_K, W_Q, W_V, W_O of every head [4, layer, head, d, r]."""
    from saltus import probe

    return jnp.stack([probe.head_matrices(params, name) for name in FACTORS])


def sizes(matrices: Any) -> Any:
    """Frobenius norms of [..., d, r]."""
    return jnp.sqrt(jnp.sum(jnp.asarray(matrices, jnp.float32) ** 2, (-2, -1)))


def walk(start: Any, moved: Any, seed: int) -> dict[str, Any]:
    """Spectra of what the products gain when their factors take a random walk of the sizes given.

    **Arguments:** `start` [4, layer, head, d, r]; `moved` [look, 4, layer, head]: sizes of the change at
    looks in order of time. The squared length of the walk's steps is what the squared sizes differ by.

    **Returns:** `rank` [look, product, layer, head]: stable ranks (nan where nothing moved); `spectrum`
    [product, layer, head, k]: normalised singular values at the last look.
    """
    one = _stepper()
    start = jnp.asarray(start, jnp.float32)
    W, key = jnp.zeros_like(start), jax.random.key(seed)
    ranks, last, before = [], None, np.zeros(moved.shape[1:])
    for k, size in enumerate(np.asarray(moved, np.float64)):
        step = np.sqrt(np.maximum(size**2 - before**2, 0.0))
        W, values = one(start, W, jax.random.fold_in(key, k), jnp.asarray(step), jnp.asarray(size))
        last = np.asarray(values, np.float64)
        ranks.append(stable_rank(last))
        before = np.maximum(size, before)
    return {"rank": np.stack(ranks), "spectrum": normalised(last)}


@lru_cache
def _stepper() -> Any:
    """One step of a walk, compiled once for all networks of a shape."""
    from saltus.probe import product_spectrum

    @jax.jit
    def one(start: Any, W: Any, key: Any, step: Any, size: Any) -> Any:
        W = W + step[..., None, None] * jax.random.normal(key, W.shape, jnp.float32)
        E = size[..., None, None] * W / jnp.maximum(sizes(W), 1e-30)[..., None, None]
        now = start + E
        return W, product_spectrum(now[0::2], now[1::2], start[0::2], start[1::2])

    return one


def tiny(start: Any, seed: int) -> Any:
    """Stable ranks [product, layer, head] after one random change of a thousandth of the initial size."""
    size = TINY * np.asarray(sizes(start))
    return walk(start, size[None], seed)["rank"][0]


def stable_rank(values: Any) -> Any:
    """sum s^2 / s_1^2 over the last axis, largest first; nan where there is nothing."""
    values = np.asarray(values, np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return ((values / values[..., :1]) ** 2).sum(-1)


def normalised(values: Any) -> Any:
    with np.errstate(invalid="ignore", divide="ignore"):
        return values / values[..., :1]
