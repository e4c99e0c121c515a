"""Descents in steps: gradient descent, SGD, momentum and Adam, all through Optax."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from saltus._jax import jax
from saltus.core.errors import BadInput
from saltus.descent._batches import Plan, plan

if TYPE_CHECKING:
    import optax

# A learning rate, or an Optax schedule: a function of the number of steps made.
Rate = float | Callable[[Any], Any]
SHUFFLES = ("epoch", "once", False)


@dataclass(frozen=True, kw_only=True)
class Steps:
    """What every descent in steps has; use `gd`, `sgd`, `momentum`, `adam`, `adamw` or `using`.

    - `lr`: learning rate, or an Optax schedule.
    - `steps` or `epochs`: how long; `batch`: points per step, all of them when None.
    - `shuffle`: "epoch" visits the points in a new random order every epoch, "once" in one random
      order, False in the order they come in.
    - `drop_last`: leave out an epoch's last, shorter batch.
    """

    lr: Rate
    steps: int | None = None
    epochs: int | None = None
    batch: int | None = None
    shuffle: str | bool = "epoch"
    drop_last: bool = True

    def __post_init__(self) -> None:
        if not callable(self.lr):
            _positive(lr=self.lr)
        if (self.steps is None) == (self.epochs is None):
            raise BadInput("say how long: either steps=... or epochs=..., not both")
        _whole(steps=self.steps, epochs=self.epochs, batch=self.batch)
        if self.shuffle not in SHUFFLES or self.shuffle is True:
            raise BadInput(f'shuffle is "epoch", "once" or False; got {self.shuffle!r}')

    def rule(self) -> optax.GradientTransformation:
        """The update rule."""
        raise NotImplementedError

    def plan(self, points: int) -> Plan:
        """The steps this makes over so many points."""
        return plan(points, steps=self.steps, epochs=self.epochs, batch=self.batch, drop_last=self.drop_last)

    def clock(self, steps: np.ndarray) -> np.ndarray | jax.Array:
        """The sum of learning rates before each of `steps` (sorted)."""
        if not callable(self.lr):
            return steps * self.lr
        with jax.ensure_compile_time_eval():
            rates = np.asarray(jax.vmap(self.lr)(np.arange(max(int(steps[-1]), 1))), float)
        return np.concatenate([[0.0], np.cumsum(rates)])[steps]


@dataclass(frozen=True, kw_only=True)
class Sgd(Steps):
    """params <- params - lr grad."""

    def rule(self) -> optax.GradientTransformation:
        import optax

        return optax.sgd(self.lr)


@dataclass(frozen=True, kw_only=True)
class Momentum(Steps):
    """trace <- mass trace + grad; params <- params - lr trace (Polyak, 1964; or Nesterov's variant)."""

    mass: float = 0.9
    nesterov: bool = False

    def __post_init__(self) -> None:
        Steps.__post_init__(self)
        _fraction(mass=self.mass)

    def rule(self) -> optax.GradientTransformation:
        import optax

        return optax.sgd(self.lr, momentum=self.mass, nesterov=self.nesterov)


@dataclass(frozen=True, kw_only=True)
class Adam(Steps):
    """Adam (Kingma & Ba, 2015)."""

    b1: float = 0.9
    b2: float = 0.999
    eps: float = 1e-8

    def __post_init__(self) -> None:
        Steps.__post_init__(self)
        _fraction(b1=self.b1, b2=self.b2)
        _positive(eps=self.eps)

    def rule(self) -> optax.GradientTransformation:
        import optax

        return optax.adam(self.lr, b1=self.b1, b2=self.b2, eps=self.eps)


@dataclass(frozen=True, kw_only=True)
class AdamW(Steps):
    """Adam with decoupled weight decay (Loshchilov & Hutter, 2019)."""

    b1: float = 0.9
    b2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 1e-4

    def __post_init__(self) -> None:
        Steps.__post_init__(self)
        _fraction(b1=self.b1, b2=self.b2)
        _positive(eps=self.eps)
        if not 0 <= self.weight_decay < math.inf:
            raise BadInput(f"weight_decay must be finite and >= 0; got {self.weight_decay!r}")

    def rule(self) -> optax.GradientTransformation:
        import optax

        return optax.adamw(self.lr, b1=self.b1, b2=self.b2, eps=self.eps, weight_decay=self.weight_decay)


@dataclass(frozen=True, kw_only=True)
class Using(Steps):
    """Any Optax transformation made by `make(lr)`."""

    make: Callable[[Rate], optax.GradientTransformation]

    def rule(self) -> optax.GradientTransformation:
        return self.make(self.lr)


def gd(lr: Rate, steps: int) -> Sgd:
    """Gradient descent on all of the data: `steps` steps at learning rate `lr`."""
    return Sgd(lr=lr, steps=steps)


def sgd(
    lr: Rate,
    batch: int,
    *,
    epochs: int | None = None,
    steps: int | None = None,
    shuffle: str | bool = "epoch",
    drop_last: bool = True,
) -> Sgd:
    """Stochastic gradient descent; arguments as in `Steps`."""
    return Sgd(lr=lr, batch=batch, epochs=epochs, steps=steps, shuffle=shuffle, drop_last=drop_last)


def momentum(lr: Rate, mass: float = 0.9, *, nesterov: bool = False, **steps: Any) -> Momentum:
    """(Stochastic) gradient descent with momentum; `steps` as in `Steps`."""
    return Momentum(lr=lr, mass=mass, nesterov=nesterov, **steps)


def adam(lr: Rate, *, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, **steps: Any) -> Adam:
    """Adam; `steps` as in `Steps`."""
    return Adam(lr=lr, b1=b1, b2=b2, eps=eps, **steps)


def adamw(
    lr: Rate,
    weight_decay: float = 1e-4,
    *,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    **steps: Any,
) -> AdamW:
    """AdamW; `steps` as in `Steps`."""
    return AdamW(lr=lr, weight_decay=weight_decay, b1=b1, b2=b2, eps=eps, **steps)


def using(make: Callable[[Rate], optax.GradientTransformation], lr: Rate, **steps: Any) -> Using:
    """Any Optax transformation: `make(lr)` returns it, so that `lr` can be swept like any other."""
    return Using(make=make, lr=lr, **steps)


def _positive(**values: float) -> None:
    for name, value in values.items():
        real = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not (real and 0 < value < (2**63 if isinstance(value, int) else math.inf)):
            raise BadInput(f"{name} must be a positive number; got {value!r}")


def _fraction(**values: float) -> None:
    for name, value in values.items():
        if not (isinstance(value, int | float | np.number) and 0 <= value < 1):
            raise BadInput(f"{name} must lie in 0 <= {name} < 1; got {value!r}")


def _whole(**values: int | None) -> None:
    for name, value in values.items():
        if value is not None and (
            isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value < 2**53
        ):
            raise BadInput(f"{name} must be a whole number >= 1 and below 2**53; got {value!r}")
