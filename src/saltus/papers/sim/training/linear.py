"""The exact reduction of linear networks: the batch enters through a moment, inputs through s dimensions.

Inputs are x = Q y with y in R^s, so of W_1 only B = W_1 Q moves, and a batch acts only through the
moment M of (y, 1). Products are kept as rows: `state[0]` is the first product [B | b_1] as rows
[s (+1), h], the other layers are as they are.
"""

from __future__ import annotations

from typing import NamedTuple

from saltus._jax import jax, jnp

__all__ = ["Layer", "State", "gradient", "reduce_layers", "residual", "step", "target"]


class Layer(NamedTuple):
    """A weight matrix [out, in] and a bias [out], or None."""

    weight: jax.Array
    bias: jax.Array | None


class State(NamedTuple):
    """A reduced network: the first product [k, h], k = s or (with biases) s + 1, and the later layers."""

    first: jax.Array
    later: tuple[Layer, ...]


def reduce_layers(layers: tuple[Layer, ...], q: jax.Array) -> State:
    """What of a network in R^d matters on data x = Q y, from its layers and Q [d, s]."""
    head = layers[0]
    first = (head.weight @ q).T
    if head.bias is not None:
        first = jnp.concatenate([first, head.bias[None]])
    return State(first, tuple(layers[1:]))


def products(state: State) -> list[jax.Array]:
    """H_l = W_l H_{l-1} + b_l e^T for every layer, as rows [k, h_l]."""
    rows = [state.first]
    for layer in state.later:
        out = rows[-1] @ layer.weight.T
        rows.append(out if layer.bias is None else out + _last_row(len(out), layer.bias))
    return rows


def target(q: jax.Array, bias: bool) -> jax.Array:
    """[Q | 0] as rows [k, d]: what the last product should become, from Q [d, s]."""
    return jnp.pad(q.T, ((0, int(bias)), (0, 0)))


def residual(state: State, goal: jax.Array) -> jax.Array:
    """R = H_L - [Q | 0] as rows [k, d]: the error of the network at (y, 1) is its combination."""
    return products(state)[-1] - goal


def gradient(state: State, moment: jax.Array, goal: jax.Array, factor: jax.Array) -> State:
    """Gradient of c tr(R M R^T) on a batch with moment M [k, k], where c is `factor`."""
    rows = products(state)
    back = 2 * factor * (moment @ (rows[-1] - goal))
    later = []
    for layer, before in zip(reversed(state.later), reversed(rows[:-1]), strict=True):
        # k outer products, one by one: they fuse with the update, a product of matrices would not.
        weight = sum(back[i][:, None] * before[i][None, :] for i in range(len(before)))
        later.append(Layer(jnp.asarray(weight), None if layer.bias is None else back[-1]))
        back = back @ layer.weight
    return State(back, tuple(reversed(later)))


def step(state: State, moment: jax.Array, goal: jax.Array, factor: jax.Array, lr: jax.Array) -> State:
    """One step of SGD."""
    return jax.tree.map(lambda w, g: w - lr * g, state, gradient(state, moment, goal, factor))


def _last_row(k: int, bias: jax.Array) -> jax.Array:
    # An outer product rather than a write into the row, which would not fuse.
    return (jnp.arange(k) == k - 1)[:, None] * bias
