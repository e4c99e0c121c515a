"""A loss as a function of the products m = u * v: all that the theory needs to know of a network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput

__all__ = ["Network", "Objective", "Problem", "Quadratic", "square"]


@dataclass(frozen=True)
class Objective:
    """The loss of a network with diagonal weights; data are an argument, so one program serves all of
    them."""

    def value(self, m: Any, data: Any) -> Any:
        """The loss at m [p]."""
        raise NotImplementedError

    def pull(self, m: Any, data: Any) -> Any:
        """g = - d loss / d m [p] (eq. 4)."""
        return -jax.grad(self.value)(m, data)

    def hessian(self, m: Any, data: Any, wanted: Any) -> Any:
        """The Hessian of the loss in m [p, p], zero in the columns that are not `wanted` [p] (booleans)."""
        _, push = jax.linearize(lambda x: self.pull(x, data), m)
        order = jnp.argsort(~wanted, stable=True)

        # One column at a time: a batch of them would not stay in a processor's cache.
        def one(i: Any, H: Any) -> Any:
            return H.at[:, order[i]].set(-push(jnp.zeros_like(m).at[order[i]].set(1.0)))

        return jax.lax.fori_loop(0, jnp.sum(wanted), one, jnp.zeros((m.size, m.size)))


def square(y: Any, out: Any) -> Any:
    """Half the squared error, summed over features (the last axis) and averaged over what is before it."""
    return 0.5 * jnp.mean(jnp.sum((out - y) ** 2, axis=-1))


@dataclass(frozen=True)
class Network(Objective):
    """Any h(x, m) that is twice differentiable in m, over samples (x [N, ...], y [N, ...]) (Definition 3.1).

    **Arguments:** `h(x, m)` for one sample; `loss(y, out)` for one sample.
    """

    h: Callable[[Any, Any], Any]
    loss: Callable[[Any, Any], Any] = square

    def value(self, m: Any, data: Any) -> Any:
        x, y = data
        return jnp.mean(jax.vmap(lambda x, y: self.loss(y, self.h(x, m)))(x, y))


@dataclass(frozen=True)
class Quadratic(Objective):
    """1/2 m'Am - r'm: linear h and square loss, where much has a closed form; data are (A, r)."""

    def value(self, m: Any, data: Any) -> Any:
        A, r = data
        return 0.5 * m @ A @ m - r @ m


@dataclass(frozen=True)
class Problem:
    """An objective, its data, and where training starts: u(0) = alpha u0, v(0) = alpha v0.

    **Arguments:** `u0`, `v0` [p], unscaled.
    """

    objective: Objective
    data: Any
    u0: Any
    v0: Any

    def __post_init__(self) -> None:
        u0, v0 = (np.asarray(x, float) for x in (self.u0, self.v0))
        if u0.ndim != 1 or u0.shape != v0.shape or not u0.size:
            raise BadInput("u0 and v0 are two vectors of the same length")
        if not (np.isfinite(u0).all() and np.isfinite(v0).all()):
            raise BadInput("u0 and v0 must be finite")
        if np.any(u0 + v0 == 0):
            raise BadInput("a coordinate with u0 = -v0 has u + v = 0 for ever; start it elsewhere")
        object.__setattr__(self, "u0", u0)
        object.__setattr__(self, "v0", v0)

    @property
    def size(self) -> int:
        return len(self.u0)

    @property
    def kappa(self) -> Any:
        """log |u0^2 - v0^2| [p]: what the conservation law keeps (eq. 5); -inf where |u0| = |v0|."""
        with np.errstate(divide="ignore"):
            return np.log(np.abs(self.u0 - self.v0)) + np.log(np.abs(self.u0 + self.v0))

    @property
    def start(self) -> Any:
        """log |u0 + v0| [p]."""
        return np.log(np.abs(self.u0 + self.v0))
