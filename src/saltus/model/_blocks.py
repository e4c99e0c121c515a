"""The layers of a transformer: layer norm, attention heads and feed-forward, before each other's residual.

A layer's parameters are `norm1`, `attention`, `norm2`, `mlp`. Heads have their own axis, so that W_Q[:, i]
is head i's d x d' matrix of the papers (Vaswani et al., 2017): `attention.W_Q`, `.W_K`, `.W_V`, `.W_O`
[width, heads, head], and the layer computes sum_i softmax(X W_Q^i W_K^i' X' / sqrt(d')) X W_V^i W_O^i'.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from saltus._jax import jax, jnp
from saltus.model import _attention

Layer = dict[str, dict[str, jax.Array]]
Sizes = Mapping[str, tuple[tuple[int, ...], Any]]  # shape, and what multiplies its numbers


def cast(params: Any, compute: str | None) -> Any:
    """Parameters as the numbers to compute with; they themselves stay what they are."""
    return params if compute is None else jax.tree.map(lambda leaf: leaf.astype(compute), params)


def times(x: jax.Array, w: jax.Array) -> jax.Array:
    """x [..., n] w [n, m]; 16-bit products need no more than the one pass they are."""
    return jnp.matmul(x, w, precision=jax.lax.Precision.DEFAULT if x.dtype == jnp.bfloat16 else None)


def norm(params: dict[str, jax.Array], x: jax.Array, eps: float = 1e-5) -> jax.Array:
    """Layer norm over the last axis (Ba, Kiros & Hinton, 2016), its moments in float32 at least."""
    wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    mean = jnp.mean(wide, axis=-1, keepdims=True)
    spread = jnp.mean((wide - mean) ** 2, axis=-1, keepdims=True)
    return ((wide - mean) * jax.lax.rsqrt(spread + eps)).astype(x.dtype) * params["scale"] + params["bias"]


def heads(params: dict[str, jax.Array], x: jax.Array, way: str, causal: bool = False) -> jax.Array:
    """All heads of a layer on x [B, T, width]."""
    width, count, head = params["W_Q"].shape
    maps = [params[n].reshape(width, -1) for n in ("W_Q", "W_K", "W_V")]
    if way == "kernel":
        # One product for queries, keys and values, which the kernel reads where it put them.
        joined = times(x, jnp.concatenate(maps, axis=1))
        joined = joined.reshape(*x.shape[:-1], 3, count, head)
        if "b_Q" in params:
            joined = joined + jnp.stack([params[f"b_{n}"] for n in "QKV"])
        out = _attention.attend_joined(joined, causal)
    else:
        q, k, v = (times(x, w).reshape(*x.shape[:-1], count, head) for w in maps)
        if "b_Q" in params:
            q, k, v = q + params["b_Q"], k + params["b_K"], v + params["b_V"]
        out = _attention.attend(way, q, k, v, causal)
    return times(out.reshape(*x.shape[:-1], count * head), params["W_O"].reshape(width, -1).T) + params["b_O"]


def feed_forward(params: dict[str, jax.Array], x: jax.Array, approximate: bool) -> jax.Array:
    """W_2' gelu(W_1' x + b_1) + b_2."""
    hidden = times(x, params["W_1"]) + params["b_1"]
    wide = hidden.astype(jnp.promote_types(x.dtype, jnp.float32))
    return times(jax.nn.gelu(wide, approximate=approximate).astype(x.dtype), params["W_2"]) + params["b_2"]


def layer(params: Layer, x: jax.Array, way: str, causal: bool, approximate: bool) -> jax.Array:
    """x plus what the heads, then the feed-forward layer, add to it: [B, T, width]."""
    x = x + heads(params["attention"], norm(params["norm1"], x), way, causal)
    return x + feed_forward(params["mlp"], norm(params["norm2"], x), approximate)


def count(sizes: Sizes) -> int:
    """How many numbers `dealt` needs."""
    return sum(math.prod(shape) for shape, _ in sizes.values())


def dealt(numbers: jax.Array, sizes: Sizes) -> dict[str, jax.Array]:
    """Arrays by name, each its shape's share of `numbers` [count(sizes)] times its factor.

    One draw for a whole network rather than one an array: random numbers are most of what a compiler has
    to do for a small one.
    """
    found, begun = {}, 0
    for name, (shape, factor) in sizes.items():
        end = begun + math.prod(shape)
        found[name] = factor * numbers[begun:end].reshape(shape)
        begun = end
    return found


def unit(width: int) -> dict[str, jax.Array]:
    """A layer norm that does no more than that."""
    return {"scale": jnp.ones(width), "bias": jnp.zeros(width)}


def through(
    layers: list[Layer], x: jax.Array, unroll: bool, one: Callable[[Layer, jax.Array], jax.Array]
) -> jax.Array:
    """x after every layer: written out one by one, or as one loop, which compiles in a layer's time."""
    if unroll or len(layers) == 1:
        for params in layers:
            x = one(params, x)
        return x
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *layers)
    return jax.lax.scan(lambda x, params: (one(params, x), None), x, stacked)[0]
