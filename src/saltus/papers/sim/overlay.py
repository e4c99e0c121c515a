"""Theorem 4.1 beside networks of one's own: what to watch, and what theory says of it.

world = sim.World(mu=(1, 2), sigma=0.05, dim=16, rotate=False)
watch = [sim.output_at_corner, sim.jacobian]
runs = saltus.train(model.Linear(depth=1, width=16), world, descent.gd(lr=0.01, steps=500), watch=watch)
saltus.distance(runs, sim.theorem(world, runs))
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput
from saltus.papers.sim.world import World
from saltus.probe import State, probe

__all__ = ["jacobian", "output_at_corner", "theorem"]


def _on_concepts(state: State, points: jax.Array) -> jax.Array:
    """Outputs along the concept axes [..., s] at points [..., s] given along them."""
    world = state.world
    if not isinstance(world, World):
        raise BadInput(f"this watches networks on a sim.World, not on a {type(world).__name__}")
    if world.rotate:
        raise BadInput("every run of a rotated world has axes of its own; give World(..., rotate=False)")
    wide = jnp.zeros((*points.shape[:-1], world.dim)).at[..., : world.s].set(points)
    return state.model.apply(state.params, wide)[..., : world.s]


@probe("concept", long_name="output at x̂")
def output_at_corner(state: State) -> jax.Array:
    return _on_concepts(state, jnp.asarray(state.world.mu, float))


@probe("concept", "source", long_name="Jacobian between concept axes")
def jacobian(state: State) -> jax.Array:
    # Exact for linear networks, with biases or without.
    rows = _on_concepts(state, jnp.concatenate([jnp.eye(state.world.s), jnp.zeros((1, state.world.s))]))
    return (rows[:-1] - rows[-1]).T


def theorem(world: World, runs: xr.Dataset, eta: float | None = None) -> xr.Dataset:
    """What Theorem 4.1 says of `output_at_corner` and `jacobian`, for each run from its own start.

    **Arguments:** `runs` that watched `jacobian` from step 0 on (time 0 for a flow); `eta`: the step size of
    full-batch descent, which is exact with (1 - eta a)^n in the place of exp(-a t).
    """
    if "jacobian" not in runs:
        raise BadInput("the law starts from each run's own Jacobian: watch sim.jacobian as well")
    axis = "step" if "step" in runs.dims else "time"
    if float(runs[axis][0]) != 0:
        raise BadInput(f"the law needs every run's start: look at {axis} 0 as well")
    a = xr.DataArray(world.second_moment()[: world.s], dims="source")
    decay = np.exp(-a * runs.time) if eta is None else (1 - eta * a) ** runs.step
    start = runs.jacobian.isel({axis: 0}, drop=True)
    eye = xr.DataArray(np.eye(world.s), dims=("concept", "source"))
    W = (eye + (start - eye) * decay).transpose(*runs.jacobian.dims)
    z = xr.DataArray(np.asarray(world.mu, float), dims="source")
    return xr.Dataset({"jacobian": W, "output_at_corner": (W * z).sum("source")})
