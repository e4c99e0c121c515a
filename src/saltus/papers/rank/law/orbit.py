"""Part (B) of Algorithm 1: from a saddle along its new coordinate to the next stationary point (eq. 13)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from saltus._jax import jax, jnp
from saltus.papers.rank.law._once import FirstAlone, once
from saltus.papers.rank.law.objective import Objective
from saltus.papers.rank.law.radau import Path, Solver

__all__ = ["Orbit", "follow", "polish", "pulled"]

CLIP = 40.0  # no exponent of a trial step is larger; an accepted one never comes near
SETTLED = 1e-11  # largest |m_i g_i| at which the flow counts as stationary


@dataclass(frozen=True)
class Orbit:
    """The flow restricted to a support S, in x_i = log |m_i|: dx_i/dt = 2 s_i g_i(m).

    The path's state is x on S, and off it the integral of g_i - g_i(start), which constants of later
    stages need.

    **Arguments:** `path`; `support` [p] (booleans); `signs` [p].
    """

    path: Path
    support: Any
    signs: Any

    @property
    def settled(self) -> bool:
        return self.path.status == "stopped"

    @property
    def end(self) -> Any:
        """m [p] where the path ended."""
        return np.where(self.support, self.signs * np.exp(np.minimum(self.path.y[-1], CLIP)), 0.0)


def _products(x: Any, support: Any, signs: Any) -> Any:
    return jnp.where(support, signs * jnp.exp(jnp.minimum(x, CLIP)), 0.0)


@once
def _solver(objective: Objective) -> Solver:
    def f(x: Any, args: Any) -> Any:
        support, signs, before, data = args
        g = objective.pull(_products(x, support, signs), data)
        return jnp.where(support, 2 * signs * g, g - before)

    def jac(x: Any, args: Any) -> Any:
        support, signs, _, data = args
        m = _products(x, support, signs)
        H = objective.hessian(m, data, support & (jnp.abs(m) > 1e-7))
        return -jnp.where(support, 2 * signs, 1.0)[:, None] * H * m

    def stop(x: Any, dx: Any, args: Any) -> Any:
        support, signs, before, _ = args
        growth = dx / 2
        flux = jnp.abs(_products(x, support, signs) * growth)
        # At the start the new coordinate is small, not stationary: it grows at the full rate of its saddle.
        rate = jnp.max(jnp.where(support, jnp.abs(before), 0.0))
        return jnp.all(~support | ((flux < SETTLED) & (growth < jnp.maximum(1e-3 * rate, 1e-9))))

    return Solver(f, jac, stop)


def follow(
    objective: Objective, data: Any, m: Any, support: Any, signs: Any, before: Any, *, atol: float = 1e-7,
    max_steps: int = 4000,
) -> Orbit:  # fmt: skip
    """The restricted flow from m [p], whose entries on the support are not zero, to where it settles.

    **Arguments:** `before` [p]: g at the saddle it leaves.
    """
    x0 = np.where(support, np.log(np.maximum(np.abs(np.where(support, m, 1.0)), 1e-300)), 0.0)
    args = (jnp.asarray(support), jnp.asarray(signs, float), jnp.asarray(before), data)
    path = _solver(objective)(x0, args, np.inf, atol=atol, max_steps=max_steps)
    return Orbit(path, np.asarray(support), np.asarray(signs, float))


@once
def _both(objective: Objective) -> Any:
    return FirstAlone(jax.jit(lambda m, data: (objective.value(m, data), objective.pull(m, data))))


def pulled(objective: Objective, data: Any, m: Any) -> tuple[float, Any]:
    """The loss and g [p] at m [p]."""
    value, g = _both(objective)(jnp.asarray(m), data)
    return float(value), np.asarray(g)


@once
def _restricted(objective: Objective) -> Any:
    def both(m: Any, support: Any, data: Any) -> Any:
        H = objective.hessian(m, data, support)
        return objective.pull(m, data), jnp.where(support[:, None], H, 0.0)

    return FirstAlone(jax.jit(both))


def polish(objective: Objective, data: Any, m: Any, support: Any, *, tries: int = 8) -> tuple[Any, Any, Any]:
    """Newton's method on the support.

    Flat directions (two heads that do the same) are left alone, by a pseudo-inverse.

    **Returns:** m [p], g [p] there, and the Hessian in m restricted to the support [p, p].
    """
    best: tuple[Any, Any, Any] | None = None
    least = np.inf
    for _ in range(tries):
        g, H = (np.asarray(x) for x in _restricted(objective)(jnp.asarray(m), jnp.asarray(support), data))
        size = float(np.abs(g[support]).max()) if support.any() else 0.0
        if best is not None and not size < 0.5 * least:
            return best
        best, least = (m, g, H), size
        if size == 0.0:
            return best
        inner = np.ix_(support, support)
        # In u rather than m: scaled by sqrt|m|, small coordinates are solved for as well as large ones.
        r = np.sqrt(np.abs(m[support]))
        step = np.linalg.lstsq(r[:, None] * H[inner] * r, r * g[support], rcond=1e-12)[0] * r
        m = m.copy()
        m[support] += step
    assert best is not None
    return best
