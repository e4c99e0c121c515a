"""The loss, the outputs and the Jacobian of the function a network computes."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput
from saltus.probe._probe import Probe
from saltus.probe._state import State

# Points [..., n_in], or a function of the world that gives them.
Points = Any


def _loss(state: State) -> jax.Array:
    return state.objective(state.params)


#: The mean loss over all of the data.
loss = Probe("loss", _loss, attrs={"long_name": "training loss"})


def output_at(points: Points, *, name: str = "output") -> Probe:
    """The network's outputs at `points` [..., n_in]: dims (point..., out).

    `points` may be a function of the world, e.g. `lambda world: world.corner()`.
    """
    return _output_at(_frozen(points), name)


def jacobian_at(point: Points, *, name: str = "jacobian") -> Probe:
    """The derivative of the outputs by the inputs at one `point` [n_in]: dims (out, in)."""
    return _jacobian_at(_frozen(point), name)


@lru_cache
def _output_at(points: Points, name: str) -> Probe:
    where = _where(points)

    def fn(state: State) -> jax.Array:
        at = where(state)
        if at.ndim > 2:
            raise BadInput(f"output_at takes one point [n_in] or a list [points, n_in]; got shape {at.shape}")
        return state.model.apply(state.params, at)

    dims = ("out",) if not callable(points) and jnp.ndim(jnp.asarray(points)) == 1 else ("point", "out")
    return Probe(name, fn, () if callable(points) else dims, attrs={"long_name": "output"})


@lru_cache
def _jacobian_at(point: Points, name: str) -> Probe:
    where = _where(point)

    def fn(state: State) -> jax.Array:
        at = where(state)
        if at.ndim != 1:
            raise BadInput(f"jacobian_at takes one point [n_in]; got shape {at.shape}")
        return jax.jacobian(lambda x: state.model.apply(state.params, x))(at)

    return Probe(name, fn, ("out", "in"), attrs={"long_name": "derivative of output by input"})


def _where(points: Points) -> Callable[[State], jax.Array]:
    def where(state: State) -> jax.Array:
        at = jnp.asarray(points(state.world) if callable(points) else points)
        return at.astype(state.x.dtype)

    return where


def _frozen(points: Points) -> Points:
    """Nested tuples of numbers, so that the same points give the same probe, compiled once."""
    if callable(points):
        return points
    as_lists = jnp.asarray(points, jnp.float64).tolist()

    def tupled(value: Any) -> Any:
        return tuple(map(tupled, value)) if isinstance(value, list) else value

    return tupled(as_lists)
