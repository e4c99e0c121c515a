"""What is random in a run and the same for every network trained on it: data, batches, raw numbers.

Most of the time it takes to compile a training is its random numbers. They are drawn by programs of their
own, which networks of every depth and width share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

import numpy as np

from saltus._jax import jax, jnp
from saltus.descent._ensemble import run_many
from saltus.papers.sim.training import batches
from saltus.papers.sim.training.learners import number_count
from saltus.papers.sim.training.protocol import Protocol
from saltus.papers.sim.world import draw, streams

__all__ = ["of_points", "programs", "seed_bytes", "tables"]

KEPT = 2**24  # bytes of tables that are worth keeping for the next network
ORDERS = 2**28  # bytes of random numbers that are sorted at a time
# On a CPU a program without XLA's own fusions is compiled twice as fast, and small ones run no slower.
FEW_FUSIONS = (("xla_cpu_use_fusion_emitters", False),)


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
    seeds, data = np.asarray(seeds, np.int64), _data_shape(shape)
    mu, sigma = (np.asarray(numbers[name], float).tobytes() for name in ("mu", "sigma"))
    # Networks of every depth and width that learn in one world share its tables.
    draw_data = _drawn_again if len(seeds) * seed_bytes(shape, by_moments) <= KEPT else _drawn
    found = draw_data(data, by_moments, seeds.tobytes(), int(numbers["base"]), mu, sigma, tuple(devices))
    count = number_count(shape)
    raw = run_many(
        _raw(_bucket(count)),
        seeds,
        args=(numbers,),
        block=_block(shape),
        devices=devices,
        compiler_options=FEW_FUSIONS,
    )
    return {**found, "raw": raw[:, :count]}


def _block(shape: Protocol) -> int:
    # It does not look at the network, so that all networks share these programs; one seed's points stay in
    # a core's cache, and a few points would not be worth a call.
    return 1 if shape.world.size >= 1024 else 8


def _drawn(
    shape: Protocol,
    by_moments: bool,
    seeds: bytes,
    base: int,
    mu: bytes,
    sigma: bytes,
    devices: tuple[jax.Device, ...],
) -> dict[str, np.ndarray]:
    """All but `raw`, some seeds at a time: the orders of their points take more room than what is kept."""
    numbers = {"base": np.uint32(base), "mu": np.frombuffer(mu), "sigma": np.frombuffer(sigma)}
    own = np.frombuffer(seeds, np.int64)
    portion = max(1, ORDERS // (8 * shape.epochs * shape.world.size))
    parts = []
    for start in range(0, len(own), portion):
        some = own[start : start + portion]
        orders = _orders(shape, some, numbers, devices)
        parts.append(
            run_many(
                _ordered(shape, by_moments),
                len(some),
                args=(numbers, some, orders),
                block=_block(shape),
                devices=devices,
                compiler_options=FEW_FUSIONS,
            )
        )
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


_drawn_again = lru_cache(maxsize=16)(_drawn)


def _orders(
    shape: Protocol, seeds: np.ndarray, numbers: dict[str, Any], devices: Sequence[jax.Device]
) -> np.ndarray:
    """The order of each seed's points in each epoch [n, e, N], as the programs of a GPU draw it themselves.

    NumPy sorts eight times as fast as XLA does on a CPU, and the sort is most of the cost of linear networks.
    """
    drawn = run_many(_bits(shape.epochs, shape.world.size), seeds, args=(numbers,), block=1, devices=devices)
    low = batches.index_bits(shape.world.size)
    orders = np.empty(drawn.shape, np.int32)

    def sort(row: int) -> None:
        drawn[row].sort(axis=-1)
        orders[row] = drawn[row] & low

    with ThreadPoolExecutor(len(devices)) as pool:
        list(pool.map(sort, range(len(seeds))))
    return orders


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


def _one(
    shape: Protocol,
    by_moments: bool,
    seed: jax.Array,
    numbers: dict[str, jax.Array],
    order: Callable[[jax.Array], jax.Array],
) -> dict[str, jax.Array]:
    """One seed's data, its points seen in `order(epoch)`."""
    data = draw(_key(seed, numbers), shape.world, numbers["mu"], numbers["sigma"])
    found = {"axes": data.axes, "nearest": data.nearest, "discarded": data.discarded}
    return {**found, **of_points(shape, by_moments, data.y, order)}


@cache
def _data(shape: Protocol, by_moments: bool) -> Callable[..., dict[str, jax.Array]]:
    """Data from seeds, for a device: the orders are drawn where they are used."""

    def one(seed: jax.Array, numbers: dict[str, jax.Array]) -> dict[str, jax.Array]:
        orders = streams(_key(seed, numbers))[3]

        def order(epoch: jax.Array) -> jax.Array:
            return batches.shuffled(jax.random.fold_in(orders, epoch), shape.world.size)

        return _one(shape, by_moments, seed, numbers, order)

    return lambda index, numbers: jax.vmap(lambda i: one(i, numbers))(index)


@cache
def _ordered(shape: Protocol, by_moments: bool) -> Callable[..., dict[str, jax.Array]]:
    """The same from places among `seeds` [n] and the orders [n, e, N] of their points, for the host."""

    def block(
        index: jax.Array, numbers: dict[str, jax.Array], seeds: jax.Array, orders: jax.Array
    ) -> dict[str, jax.Array]:
        def one(seed: jax.Array, own: jax.Array) -> dict[str, jax.Array]:
            return _one(shape, by_moments, seed, numbers, lambda epoch: own[epoch])

        return jax.vmap(one)(seeds[index], orders[index])

    return block


@cache
def _bits(epochs: int, size: int) -> Callable[..., jax.Array]:
    def block(index: jax.Array, numbers: dict[str, jax.Array]) -> jax.Array:
        orders = streams(_key(index[0], numbers))[3]
        each = jax.lax.map(
            lambda epoch: batches.marked(jax.random.fold_in(orders, epoch), size), jnp.arange(epochs)
        )
        return each[None]

    return block


def _key(seed: jax.Array, numbers: dict[str, jax.Array]) -> jax.Array:
    return jax.random.fold_in(jax.random.key(numbers["base"]), seed)


@cache
def _raw(count: int) -> Callable[..., jax.Array]:
    def one(seed: jax.Array, numbers: dict[str, jax.Array]) -> jax.Array:
        return jax.random.uniform(streams(_key(seed, numbers))[2], (count,), float, -1, 1)

    return lambda index, numbers: jax.vmap(lambda i: one(i, numbers))(index)


def _bucket(count: int) -> int:
    # Few sizes, hence few programs; the first numbers of a longer draw are those of a shorter one.
    return max(64, 4 ** -(-(count - 1).bit_length() // 2))
