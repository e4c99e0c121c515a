"""Spectra of W_K W_Q' and W_V W_O' in every head of a transformer, and of what they gained."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput
from saltus.probe._paths import find
from saltus.probe._probe import Probe
from saltus.probe._products import product_spectrum, stable_rank_of
from saltus.probe._state import State

PAIRS = {"KQ": ("W_K", "W_Q"), "VO": ("W_V", "W_O")}


def head_matrices(params: Any, name: str) -> jax.Array:
    """One of W_Q, W_K, W_V, W_O of every head: [layers, heads, width, head].

    `params`: of `ViT` or `GPT`, with `blocks.{i}.attention.W_Q` [width, heads, head] and so on.
    """
    found = find(params, f"**.attention.{name}")
    if len({leaf.shape for leaf in found.values()}) > 1:
        raise BadInput(f"the layers' {name} are of different shapes; take the layers of one shape at a time")
    return jnp.stack([jnp.moveaxis(leaf, -2, -3) for leaf in found.values()])


def head_products(params: Any, start: Any = None, method: str = "auto") -> dict[str, jax.Array]:
    """Singular values of W_K W_Q' and of W_V W_O', of their change since `start` when given.

    **Returns** {"KQ", "VO"}: [layers, heads, k], largest first.
    """

    def factors(params: Any) -> tuple[jax.Array, jax.Array]:
        # Both products in one batch: they are of the same shape.
        k, q, v, o = (head_matrices(params, n) for pair in PAIRS.values() for n in pair)
        return jnp.concatenate([k, v]), jnp.concatenate([q, o])

    a, b = factors(params)
    a0, b0 = (None, None) if start is None else factors(start)
    values = product_spectrum(a, b, a0, b0, method=method)
    layers = len(values) // 2
    return {"KQ": values[:layers], "VO": values[layers:]}


@lru_cache
def head_spectra(*, change: bool = True, method: str = "auto", name: str = "spectrum") -> Probe:
    """Singular values of W_K W_Q' and W_V W_O' of every head: `spectrum_KQ`, `spectrum_VO` [layer, head, k].

    - `change`: of what they gained since the start of the run, rather than of themselves.

    At the start the change is 0 and so are the values.
    """

    def fn(state: State) -> dict[str, jax.Array]:
        return head_products(state.params, _start(state, name) if change else None, method)

    return Probe(name, fn, ("layer", "head", "index"), attrs={"long_name": "singular value"})


@lru_cache
def head_ranks(*, change: bool = True, method: str = "auto", name: str = "stable_rank") -> Probe:
    """Stable ranks of the same matrices: `stable_rank_KQ`, `stable_rank_VO` [layer, head]; nan for 0."""

    def fn(state: State) -> dict[str, jax.Array]:
        found = head_products(state.params, _start(state, name) if change else None, method)
        return {key: stable_rank_of(values) for key, values in found.items()}

    return Probe(name, fn, ("layer", "head"), attrs={"long_name": "stable rank"})


def _start(state: State, name: str) -> Any:
    if state.start is None:
        raise BadInput(f"{name}: this run's initial parameters are not known; ask for change=False")
    return state.start
