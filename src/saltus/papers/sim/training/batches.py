"""The order in which a run sees its points, cut into batches."""

from __future__ import annotations

import numpy as np

from saltus._jax import jax, jnp

__all__ = ["cut", "index_bits", "lift", "marked", "moments", "shuffled", "weights"]


def shuffled(key: jax.Array, n: int) -> jax.Array:
    """A permutation [n], drawn uniformly."""
    return (jnp.sort(marked(key, n)) & jnp.uint64(index_bits(n))).astype(jnp.int32)


def marked(key: jax.Array, n: int) -> jax.Array:
    """Random integers [n], each with its place in the low bits: sorted, they hold a permutation there."""
    # One sort of integers that carry their index is five times as quick on a CPU as sorting indices by
    # keys. Equal random parts would keep their order: with 10^4 points, in one shuffle of 10^7.
    drawn = jax.random.bits(key, (n,), jnp.uint64)
    return (drawn & ~jnp.uint64(index_bits(n))) | jnp.arange(n, dtype=jnp.uint64)


def index_bits(n: int) -> np.uint64:
    """The low bits that the places of n points take."""
    return np.uint64(2 ** max(1, (n - 1).bit_length()) - 1)


def cut(points: jax.Array, batch: int, count: int) -> jax.Array:
    """The points [n, ...] in order as `count` batches [count, batch, ...], the last filled with zeros."""
    short = count * batch - len(points)
    if short > 0:
        points = jnp.pad(points, [(0, short)] + [(0, 0)] * (points.ndim - 1))
    return points[: count * batch].reshape(count, batch, *points.shape[1:])


def weights(n: int, batch: int, count: int) -> jax.Array:
    """Each point's share [count, batch] in the mean over its batch, 0 where there is no point."""
    real = cut(jnp.ones(n), batch, count)
    return real / real.sum(axis=1, keepdims=True)


def lift(z: jax.Array, bias: bool) -> jax.Array:
    """Points [n, s], with a coordinate that is always 1 for the bias if there is one."""
    return jnp.concatenate([z, jnp.ones((len(z), 1), z.dtype)], axis=1) if bias else z


def moments(points: jax.Array, share: jax.Array) -> jax.Array:
    """Second moment [count, k, k] of every batch of `points` [count, batch, k]."""
    return jnp.einsum("nbi,nb,nbj->nij", points, share, points)
