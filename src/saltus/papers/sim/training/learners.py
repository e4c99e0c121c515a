"""The three ways to run one and the same training: reduced linear, reduced relu, and plain."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

from saltus._jax import jax, jnp
from saltus.papers.sim.training import batches, linear, points
from saltus.papers.sim.training.linear import Layer
from saltus.papers.sim.training.protocol import Protocol

__all__ = ["Learner", "layers_at_start", "learner"]


class Learner(NamedTuple):
    """One run's network and what can be done with it; `state` and `batch` are pytrees of its own.

    - `start`: the state before training.
    - `prepare(order [N])`: an epoch's batches, steps first.
    - `step(state, batch)`: the state after one update.
    - `watch(state, z [p, s])`: errors f(x) - x [p, d] at the points x = Q z.
    - `train_loss(state)`: the training loss over all points.
    """

    start: Any
    prepare: Callable[[jax.Array], Any]
    step: Callable[[Any, Any], Any]
    watch: Callable[[Any, jax.Array], jax.Array]
    train_loss: Callable[[Any], jax.Array]


def layers_at_start(shape: Protocol, key: jax.Array, scale: jax.Array) -> tuple[Layer, ...]:
    """Layers drawn like PyTorch's default: uniform within 1/sqrt(fan-in), times `scale`."""
    d, h = shape.world.dim, shape.width
    sizes = [d, *[h] * (shape.depth - 1), d]
    # One draw for all layers, which compiles in a fraction of the time of one for each; in float64 and
    # rounded later, so that both precisions start from the same network.
    count = sum(out * (into + shape.bias) for into, out in itertools.pairwise(sizes))
    drawn, used, layers = jax.random.uniform(key, (count,), float, -1, 1), 0, []
    for into, out in itertools.pairwise(sizes):
        size = out * (into + shape.bias)
        block = scale / into**0.5 * drawn[used : used + size].reshape(out, into + shape.bias)
        layers.append(Layer(block[:, :into], block[:, into] if shape.bias else None))
        used += size
    return tuple(layers)


def learner(
    shape: Protocol,
    path: str,
    layers: tuple[Layer, ...],
    y: jax.Array,
    q: jax.Array,
    factor: jax.Array,
    lr: jax.Array,
) -> Learner:
    """The run of `layers` on points y [N, s] along axes Q [d, s], by the "reduced" or the "plain" path."""
    dtype = jnp.dtype(shape.precision)
    if path == "reduced" and not shape.nonlinear:
        made = _by_moments
    elif path == "reduced":
        made, layers = _by_points, points.reduce_first(layers, q)
    else:
        made = _by_points
    y, q, factor, lr = (jnp.asarray(a, dtype) for a in (y, q, factor, lr))
    return made(shape, path, jax.tree.map(lambda a: a.astype(dtype), layers), y, q, factor, lr)


def _by_moments(
    shape: Protocol,
    path: str,
    layers: tuple[Layer, ...],
    y: jax.Array,
    q: jax.Array,
    factor: jax.Array,
    lr: jax.Array,
) -> Learner:
    share = batches.weights(len(y), shape.batch, shape.steps_per_epoch).astype(y.dtype)

    def lift(z: jax.Array) -> jax.Array:
        return jnp.concatenate([z, jnp.ones((len(z), 1), z.dtype)], axis=1) if shape.bias else z

    lifted, goal = lift(y), linear.target(q, shape.bias)
    whole = lifted.T @ lifted / len(y)

    def prepare(order: jax.Array) -> jax.Array:
        return batches.moments(batches.cut(lifted[order], shape.batch, shape.steps_per_epoch), share)

    def train_loss(state: linear.State) -> jax.Array:
        rows = linear.residual(state, goal)
        return factor * jnp.sum((whole @ rows) * rows)

    return Learner(
        start=linear.reduce_layers(layers, q),
        prepare=prepare,
        step=lambda state, moment: linear.step(state, moment, goal, factor, lr),
        watch=lambda state, z: lift(z) @ linear.residual(state, goal),
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
