"""What is trained and how, with the two readings of the paper one word apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from saltus.core.errors import BadInput, nearest
from saltus.papers.sim.world import World, check_reading

__all__ = ["Protocol", "protocol"]

CHOICES = {
    "activation": ("linear", "relu"),
    "shuffle": ("epoch", "once"),
    "init": ("torch",),
    "dtype": ("auto", "float32", "float64"),
}


@dataclass(frozen=True)
class Protocol:
    """SGD on the identity map of a world (Yang et al. 2025, Sec. 3 and App. E.1).

    - `depth`: number of weight matrices; `width`: of every hidden layer.
    - `activation`: "linear" or "relu", after every layer but the last.
    - `bias`: whether every layer has one.
    - `average_coordinates`: the loss is the squared error averaged over the d coordinates, without the
      1/2, in place of half the squared error; its gradient is 2/d times as large.
    - `lr`: step size; `batch`: points a step; `epochs`: passes over the data.
    - `shuffle`: a new order every "epoch", or one order drawn "once".
    - `init`: "torch" draws weights and biases uniformly within 1/sqrt(fan-in), then times `scale`.
    - `drop_last`: whether an incomplete last batch is left out.
    - `dtype`: "auto" is float64 for linear networks, float32 for relu.
    """

    world: World
    depth: int = 1
    width: int = 64
    activation: str = "linear"
    bias: bool = False
    average_coordinates: bool = False
    lr: float = 0.1
    batch: int = 128
    epochs: int = 40
    shuffle: str = "epoch"
    init: str = "torch"
    scale: float = 1.0
    drop_last: bool = False
    dtype: str = "auto"

    def __post_init__(self) -> None:
        for name, known in CHOICES.items():
            value = getattr(self, name)
            if value not in known:
                raise BadInput(
                    f"no {name} {value!r}; there is {', '.join(known)}{nearest(str(value), known)}"
                )
        for name in ("depth", "width", "batch", "epochs"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise BadInput(f"{name} must be a whole number of at least 1; got {value!r}")
        for name in ("lr", "scale"):
            value = getattr(self, name)
            if not isinstance(value, int | float | np.number) or not math.isfinite(value) or value <= 0:
                raise BadInput(f"{name} must be a positive number; got {value!r}")
        if self.batch > self.world.size:
            raise BadInput(f"a batch of {self.batch} needs as many points; the world has {self.world.size}")

    @property
    def steps_per_epoch(self) -> int:
        """Updates in one pass over the data."""
        whole, rest = divmod(self.world.size, self.batch)
        return whole if self.drop_last or not rest else whole + 1

    @property
    def steps(self) -> int:
        """Updates in the whole run."""
        return self.steps_per_epoch * self.epochs

    @property
    def loss_factor(self) -> float:
        """c, where the training loss is c times the squared error of a point."""
        return 1.0 / self.world.dim if self.average_coordinates else 0.5

    @property
    def precision(self) -> str:
        """The dtype the run is in."""
        if self.dtype != "auto":
            return self.dtype
        return "float32" if self.nonlinear else "float64"

    @property
    def nonlinear(self) -> bool:
        """Whether the network bends at all: one layer has nothing to bend."""
        return self.activation == "relu" and self.depth > 1


def protocol(
    reading: str,
    mu: Sequence[float],
    sigma: float | Sequence[float] = 0.05,
    *,
    dim: int = 64,
    points: int = 5000,
    rotate: bool = True,
    truncate: bool = False,
    **settings: Any,
) -> Protocol:
    """The paper's training "as-written", or "as-drawn" in its published figures.

    - as-written: no biases (the theory's model), half the squared error, sigma a standard deviation, no
      cluster at the origin, a new order every epoch.
    - as-drawn: biases, the loss averaged over coordinates without 1/2, sigma a variance, a cluster at
      the origin, points shuffled once.
    - `settings`: any other field of `Protocol`; what is given here wins over the reading.
    """
    drawn = check_reading(reading) == "as-drawn"
    world = World.reading(reading, mu, sigma, dim=dim, points=points, rotate=rotate, truncate=truncate)
    unknown = sorted(set(settings) - set(Protocol.__dataclass_fields__) | {"world"} & set(settings))
    if unknown:
        known = [name for name in Protocol.__dataclass_fields__ if name != "world"]
        raise BadInput(f"no setting {unknown[0]!r} in a protocol{nearest(unknown[0], known)}")
    own = {"bias": drawn, "average_coordinates": drawn, "shuffle": "once" if drawn else "epoch"}
    return Protocol(world, **{**own, **settings})
