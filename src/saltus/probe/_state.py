"""Everything a probe may look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from saltus._jax import jax

PyTree = Any


@dataclass(frozen=True)
class State:
    """One moment of one run.

    - `params`, `step` (number of updates made), `time` (sum of learning rates, or the flow's own time);
    - `model`, `world`, and the data x [N, n_in], y [N, ...] this run learns from;
    - `key`: this moment's own randomness; `objective(params)`: the mean loss over all of the data.
    - `start`: the parameters the run began with.
    """

    params: PyTree
    step: jax.Array | int
    time: jax.Array | float
    model: Any
    world: Any
    x: jax.Array
    y: jax.Array
    key: jax.Array
    objective: Callable[[PyTree], jax.Array]
    start: PyTree = None
