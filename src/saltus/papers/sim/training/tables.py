"""What is random in a run and the same for every network trained on it: data, batches, raw numbers.

Most of the time it takes to compile a training is its random numbers. They are drawn by programs of their
own, which networks of every depth and width share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from saltus._jax import jax, jnp
from saltus.descent._ensemble import run_many
from saltus.papers.sim.training import batches
from saltus.papers.sim.training.learners import number_count
from saltus.papers.sim.training.protocol import Protocol
from saltus.papers.sim.world import draw, streams

__all__ = ["of_points", "programs", "seed_bytes", "tables"]


def tables(
    shape: Protocol,
    by_moments: bool,
    seeds: Sequence[int] | np.ndarray,
    numbers: dict[str, Any],
    *,
    devices: Sequence[jax.Device],
) -> dict[str, np.ndarray]:
    """For each seed, what its training needs, seeds first.

    Returns `epoch` [n, e, ...], an item an epoch (one in all, if points are shuffled once): the moments of
    its batches, or the order of its points; `whole` [n, k, k], the moment of all points, or `y` [n, N, s];
    `axes` [n, d, s], `nearest`, `discarded` [n] (see `world.Draw`), and `raw` [n, m], uniform numbers in
    (-1, 1) for the network at its start.
    """
    # The block does not look at the network, so that all networks share these programs; one seed's points
    # stay in a core's cache, and a few points would not be worth a call.
    block = 1 if shape.world.size >= 1024 else 8
    draw_many = partial(run_many, runs=seeds, args=(numbers,), block=block, devices=devices)
    data, raw = programs(shape, by_moments)
    return {**draw_many(data), "raw": draw_many(raw)[:, : number_count(shape)]}


def programs(
    shape: Protocol, by_moments: bool
) -> tuple[Callable[..., dict[str, jax.Array]], Callable[..., jax.Array]]:
    """What draws a block's tables from its runs' numbers: all but `raw`, and `raw` (or more of it)."""
    return _data(_data_shape(shape), by_moments), _raw(_bucket(number_count(shape)))


def seed_bytes(shape: Protocol, by_moments: bool) -> int:
    """Memory that one seed's tables take."""
    epochs = 1 if shape.shuffle == "once" else shape.epochs
    k = shape.world.s + shape.bias
    each = 8 * k * k * shape.steps_per_epoch if by_moments else 4 * shape.world.size
    return epochs * each + 8 * (shape.world.size * shape.world.s + number_count(shape))


def _data_shape(shape: Protocol) -> Protocol:
    """The protocol with what does not touch its data set to a fixed value."""
    epochs = 1 if shape.shuffle == "once" else shape.epochs
    return replace(shape, depth=1, width=1, activation="linear", epochs=epochs)


def of_points(
    shape: Protocol, by_moments: bool, y: jax.Array, order: Callable[[jax.Array], jax.Array]
) -> dict[str, jax.Array]:
    """The part of one seed's tables that holds its points y [N, s], seen in `order(epoch)` [N]."""
    y, epochs = y.astype(shape.precision), jnp.arange(shape.epochs)
    if not by_moments:
        return {"y": y, "epoch": jax.lax.map(order, epochs)}
    lifted = batches.lift(y, shape.bias)
    share = batches.weights(len(y), shape.batch, shape.steps_per_epoch).astype(y.dtype)

    def moments(epoch: jax.Array) -> jax.Array:
        return batches.moments(batches.cut(lifted[order(epoch)], shape.batch, len(share)), share)

    return {"whole": lifted.T @ lifted / len(y), "epoch": jax.lax.map(moments, epochs)}


@cache
def _data(shape: Protocol, by_moments: bool) -> Callable[..., dict[str, jax.Array]]:
    world = shape.world

    def one(index: jax.Array, numbers: dict[str, jax.Array]) -> dict[str, jax.Array]:
        key = jax.random.fold_in(jax.random.key(numbers["base"]), index)
        data = draw(key, world, numbers["mu"], numbers["sigma"])
        orders = streams(key)[3]

        def order(epoch: jax.Array) -> jax.Array:
            return batches.shuffled(jax.random.fold_in(orders, epoch), world.size)

        found = {"axes": data.axes, "nearest": data.nearest, "discarded": data.discarded}
        return {**found, **of_points(shape, by_moments, data.y, order)}

    return lambda index, numbers: jax.vmap(lambda i: one(i, numbers))(index)


@cache
def _raw(count: int) -> Callable[..., jax.Array]:
    def one(index: jax.Array, numbers: dict[str, jax.Array]) -> jax.Array:
        key = jax.random.fold_in(jax.random.key(numbers["base"]), index)
        return jax.random.uniform(streams(key)[2], (count,), float, -1, 1)

    return lambda index, numbers: jax.vmap(lambda i: one(i, numbers))(index)


def _bucket(count: int) -> int:
    # Few sizes, hence few programs; the first numbers of a longer draw are those of a shorter one.
    return max(64, 4 ** -(-(count - 1).bit_length() // 2))
