"""The three ways to run one and the same training: reduced linear, reduced relu, and plain."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

from saltus._jax import jax, jnp
from saltus.papers.sim.training import batches, linear, points
from saltus.papers.sim.training.linear import Layer
from saltus.papers.sim.training.protocol import Protocol

__all__ = ["Learner", "layers_at_start", "learner", "number_count"]


class Learner(NamedTuple):
    """One run's network and what can be done with it; `state` and `batch` are pytrees of its own.

    - `start`: the state before training.
    - `prepare(item)`: an epoch's batches, steps first, from its item of the run's tables.
    - `step(state, batch)`: the state after one update.
    - `watch(state, z [p, s])`: errors f(x) - x [p, d] at the points x = Q z.
    - `train_loss(state)`: the training loss over all points.
    """

    start: Any
    prepare: Callable[[jax.Array], Any]
    step: Callable[[Any, Any], Any]
    watch: Callable[[Any, jax.Array], jax.Array]
    train_loss: Callable[[Any], jax.Array]


def _sizes(shape: Protocol) -> list[tuple[int, int]]:
    """Inputs and outputs of every layer."""
    widths = [shape.world.dim, *[shape.width] * (shape.depth - 1), shape.world.dim]
    return list(itertools.pairwise(widths))


def number_count(shape: Protocol) -> int:
    """Weights and biases of a network."""
    return sum(out * (into + shape.bias) for into, out in _sizes(shape))


def layers_at_start(shape: Protocol, raw: jax.Array, scale: jax.Array) -> tuple[Layer, ...]:
    """Layers like PyTorch's default, uniform within 1/sqrt(fan-in), times `scale`.

    `raw`: uniform numbers in (-1, 1), one for each weight and bias; in float64 and rounded later, so that
    both precisions start from the same network.
    """
    used, layers = 0, []
    for into, out in _sizes(shape):
        size = out * (into + shape.bias)
        block = scale / into**0.5 * raw[used : used + size].reshape(out, into + shape.bias)
        layers.append(Layer(block[:, :into], block[:, into] if shape.bias else None))
        used += size
    return tuple(layers)


def learner(
    shape: Protocol,
    path: str,
    layers: tuple[Layer, ...],
    table: dict[str, jax.Array],
    factor: jax.Array,
    lr: jax.Array,
) -> Learner:
    """The run of `layers` on one seed's `table` (see `tables`), by the "reduced" or the "plain" path."""
    dtype = jnp.dtype(shape.precision)
    if path == "reduced" and shape.nonlinear:
        layers = points.reduce_first(layers, table["axes"])
    layers = jax.tree.map(lambda a: a.astype(dtype), layers)
    q, factor, lr = (jnp.asarray(a, dtype) for a in (table["axes"], factor, lr))
    if "whole" in table:
        return _by_moments(shape, layers, table["whole"], q, factor, lr)
    return _by_points(shape, path, layers, table["y"], q, factor, lr)


def _by_moments(
    shape: Protocol,
    layers: tuple[Layer, ...],
    whole: jax.Array,
    q: jax.Array,
    factor: jax.Array,
    lr: jax.Array,
) -> Learner:
    goal = linear.target(q, shape.bias)

    def train_loss(state: linear.State) -> jax.Array:
        rows = linear.residual(state, goal)
        return factor * jnp.sum((whole @ rows) * rows)

    return Learner(
        start=linear.reduce_layers(layers, q),
        prepare=lambda moments: moments,
        step=lambda state, moment: linear.step(state, moment, goal, factor, lr),
        watch=lambda state, z: batches.lift(z, shape.bias) @ linear.residual(state, goal),
        train_loss=train_loss,
    )


def _by_points(
    shape: Protocol,
    path: str,
    layers: tuple[Layer, ...],
    y: jax.Array,
    q: jax.Array,
    factor: jax.Array,
    lr: jax.Array,
) -> Learner:
    share = batches.weights(len(y), shape.batch, shape.steps_per_epoch).astype(y.dtype)

    def inputs(z: jax.Array) -> jax.Array:
        return z.T if path == "reduced" else q @ z.T

    def step(state: tuple[Layer, ...], batch: tuple[jax.Array, jax.Array]) -> tuple[Layer, ...]:
        z, shares = batch
        return points.step(state, inputs(z), q @ z.T, shares, factor, lr, shape.nonlinear)

    def train_loss(state: tuple[Layer, ...]) -> jax.Array:
        # A few points at a time stay in a core's cache, and all of them would not.
        pieces = -(-len(y) // shape.batch)
        shares = batches.cut(jnp.full(len(y), 1 / len(y), y.dtype), shape.batch, pieces)

        def piece(batch: tuple[jax.Array, jax.Array]) -> jax.Array:
            z, shares = batch
            return points.loss(state, inputs(z), q @ z.T, shares, factor, shape.nonlinear)

        return jnp.sum(jax.lax.map(piece, (batches.cut(y, shape.batch, pieces), shares)))

    return Learner(
        start=layers,
        prepare=lambda order: (batches.cut(y[order], shape.batch, shape.steps_per_epoch), share),
        step=step,
        watch=lambda state, z: points.forward(state, inputs(z), shape.nonlinear).T - z @ q.T,
        train_loss=train_loss,
    )
