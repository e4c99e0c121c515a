"""Part (B) of Algorithm 1: from a saddle along its new coordinate to the next stationary point (eq. 13)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from saltus._jax import jax, jnp
from saltus.papers.rank.law._once import FirstAlone, once
from saltus.papers.rank.law.motion import CLIP, restricted, solver
from saltus.papers.rank.law.objective import Objective
from saltus.papers.rank.law.radau import Path

__all__ = ["Orbit", "Place", "at", "follow", "polish"]

FLAT = 1e-12  # curvatures that much smaller than the largest count as none


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


def follow(
    objective: Objective, data: Any, m: Any, support: Any, signs: Any, before: Any, *, atol: float = 1e-7,
    max_steps: int = 4000,
) -> Orbit:  # fmt: skip
    """The restricted flow from m [p], whose entries on the support are not zero, to where it settles.

    **Arguments:** `before` [p]: g at the saddle it leaves; `atol`: error of a step in x.
    """
    support, signs = np.asarray(support), np.asarray(signs, float)
    size = np.maximum(np.abs(np.where(support, m, 1.0)), 1e-300)
    start = np.where(support, signs * np.log(4 * size) / 2, 0.0)
    args = (restricted(support, signs, before), data)
    path = solver(objective)(start, args, np.inf, atol=atol / 2, max_steps=max_steps)
    # From log |u + v| = s log(4 |m|) / 2 to log |m|.
    factor, shift = np.where(support, 2 * signs, 1.0), np.where(support, np.log(4.0), 0.0)
    path = replace(path, y=path.y * factor - shift, q=path.q * factor[:, None])
    return Orbit(path, support, signs)


class Place(NamedTuple):
    """The loss at a point, g [p], the Hessian in m restricted to a support [p, p], and the smallest
    eigenvalue of that of L(u, s u) in u, 4 sqrt|m| s H s sqrt|m| (nan without a support)."""

    loss: float
    g: Any
    H: Any
    least: float


@once
def _program(objective: Objective) -> Any:
    def all_three(m: Any, support: Any, data: Any) -> Any:
        H = jnp.where(support[:, None], objective.hessian(m, data, support), 0.0)
        # In u rather than m: scaled by sqrt|m|, small coordinates are solved for as well as large ones.
        r = jnp.where(support, jnp.sqrt(jnp.abs(m)), 0.0)
        g = objective.pull(m, data)
        scaled = r[:, None] * H * r
        # Coordinates off the support come last, with an eigenvalue that no other exceeds.
        top = jnp.linalg.norm(scaled)
        values, vectors = jnp.linalg.eigh(scaled + jnp.diag(jnp.where(support, 0.0, top)))
        curved = jnp.abs(values) > FLAT * top
        along = jnp.where(curved, (r * g) @ vectors / jnp.where(curved, values, 1.0), 0.0)
        least = jnp.where(jnp.any(support), 4 * values[0], jnp.nan)
        return (objective.value(m, data), g, H, least), r * (vectors @ along)

    return FirstAlone(jax.jit(all_three))


def at(objective: Objective, data: Any, m: Any, support: Any) -> tuple[Place, Any]:
    """What there is to know of a point m [p], and Newton's step from it on the support [p].

    Flat directions (two heads that do the same) are left alone, by a pseudo-inverse.
    """
    (loss, g, H, least), step = _program(objective)(jnp.asarray(m), jnp.asarray(support), data)
    return Place(float(loss), np.asarray(g), np.asarray(H), float(least)), np.asarray(step)


def polish(objective: Objective, data: Any, m: Any, support: Any, *, tries: int = 8) -> tuple[Any, Place]:
    """Newton's method on the support: m [p] and what there is at it."""
    best: tuple[Any, Place] | None = None
    least = np.inf
    for _ in range(tries):
        place, step = at(objective, data, m, support)
        size = float(np.abs(place.g[support]).max()) if support.any() else 0.0
        if best is not None and not size < 0.5 * least:
            return best
        best, least = (m, place), size
        if size == 0.0:
            return best
        m = m + step
    assert best is not None
    return best
