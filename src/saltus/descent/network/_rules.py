"""Update rules in plain JAX, for machines that have nothing else; Optax is their oracle in the tests."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from saltus._jax import jax, jnp
from saltus.descent._how import Adam, AdamW, Momentum, Sgd, Steps, Using

PyTree = Any


class Update(NamedTuple):
    """`begin(params)` gives the memory; `move(params, memory, slope, step, rate)` the next of both."""

    begin: Callable[[PyTree], PyTree]
    move: Callable[[PyTree, PyTree, PyTree, jax.Array, jax.Array], tuple[PyTree, PyTree]]


def update(how: Steps) -> Update:
    """The rule of a descent."""
    if isinstance(how, Sgd):
        return Update(lambda params: {}, lambda p, m, g, step, rate: (_moved(p, g, -rate), m))
    if isinstance(how, Momentum):
        return _momentum(how.mass, how.nesterov)
    if isinstance(how, Adam | AdamW):
        return _adam(how)
    if isinstance(how, Using):
        return _optax(how)
    raise TypeError(f"no update rule for {type(how).__name__}")


def _moved(params: PyTree, direction: PyTree, by: jax.Array) -> PyTree:
    return jax.tree.map(lambda p, d: p + (by * d).astype(p.dtype), params, direction)


def _momentum(mass: float, nesterov: bool) -> Update:
    def move(p: PyTree, memory: PyTree, slope: PyTree, step: jax.Array, rate: jax.Array) -> Any:
        trace = jax.tree.map(lambda t, g: g + mass * t, memory["trace"], slope)
        along = jax.tree.map(lambda t, g: g + mass * t, trace, slope) if nesterov else trace
        return _moved(p, along, -rate), {"trace": trace}

    return Update(lambda params: {"trace": jax.tree.map(jnp.zeros_like, params)}, move)


def _adam(how: Adam | AdamW) -> Update:
    b1, b2, decay = how.b1, how.b2, getattr(how, "weight_decay", 0.0)

    def begin(params: PyTree) -> PyTree:
        return {"mean": jax.tree.map(jnp.zeros_like, params), "square": jax.tree.map(jnp.zeros_like, params)}

    def move(params: PyTree, memory: PyTree, slope: PyTree, step: jax.Array, rate: jax.Array) -> Any:
        mean = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, memory["mean"], slope)
        square = jax.tree.map(lambda s, g: b2 * s + (1 - b2) * g * g, memory["square"], slope)
        n = (step + 1).astype(jnp.float32)
        # Both averages start at zero; dividing by these takes that out (Kingma & Ba, algorithm 1).
        lack1, lack2 = (-jnp.expm1(n * math.log(b)) if b else jnp.float32(1) for b in (b1, b2))

        def one(p: jax.Array, m: jax.Array, s: jax.Array) -> jax.Array:
            along = (m / lack1) / (jnp.sqrt(s / lack2) + how.eps) + decay * p
            return p - (rate * along).astype(p.dtype)

        return jax.tree.map(one, params, mean, square), {"mean": mean, "square": square}

    return Update(begin, move)


def _optax(how: Using) -> Update:
    rule = how.rule()

    def move(params: PyTree, memory: PyTree, slope: PyTree, step: jax.Array, rate: jax.Array) -> Any:
        change, memory = rule.update(slope, memory, params)
        return _moved(params, change, jnp.float32(1)), memory

    return Update(rule.init, move)
