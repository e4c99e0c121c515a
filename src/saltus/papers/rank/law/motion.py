"""The one differential equation of this paper: training from a start, and the way between two saddles."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saltus._jax import jnp
from saltus.papers.rank.law._once import once
from saltus.papers.rank.law.objective import Objective
from saltus.papers.rank.law.radau import Solver

__all__ = ["CLIP", "Motion", "free", "restricted", "solver"]

CLIP = 40.0  # no exponent of a trial step is larger; an accepted one never comes near
SETTLED = 1e-11  # largest |m_i g_i| at which the flow counts as stationary
ACTIVE = 1e-7  # what moves less than this with its logarithm does not steer Newton's iteration


class Motion(NamedTuple):
    """dy/dt = g(m) - away with m = (up exp(2 y) - down exp(2 (K - y))) / 4, all [p].

    For training y = log |u + v|, and both terms are there. On the way from a saddle, a coordinate of the
    support has one of them, after its sign; the others have none, and y is the integral of g_i - g_i(start).

    **Arguments:** `pace`: the growth at the start of what leaves a saddle; `settles`: whether the path ends
    where it comes to rest.
    """

    K: Any
    up: Any
    down: Any
    away: Any
    pace: Any
    settles: Any


def free(K: Any) -> Motion:
    """Training: K [p] = log |u^2 - v^2|."""
    one, zero = np.ones(np.shape(K)), np.zeros(np.shape(K))
    return Motion(np.asarray(K, float), one, one, zero, np.asarray(0.0), np.asarray(False))


def restricted(support: Any, signs: Any, before: Any) -> Motion:
    """From a saddle with gradient `before` [p], on a support [p] (booleans) with signs [p] of m."""
    on = np.asarray(support)
    up, down = (np.where(on & (np.asarray(signs) * s > 0), 1.0, 0.0) for s in (1, -1))
    pace = np.abs(np.where(on, before, 0.0)).max()
    away = np.where(on, 0.0, before)
    return Motion(np.zeros(on.size), up, down, away, np.asarray(pace), np.asarray(True))


def _sizes(y: Any, motion: Motion) -> tuple[Any, Any]:
    up = motion.up * jnp.exp(jnp.minimum(2 * y, CLIP))
    return up, motion.down * jnp.exp(jnp.minimum(2 * (motion.K - y), CLIP))


@once
def solver(objective: Objective) -> Solver:
    """The solver of both, compiled once: args are a motion and the data."""

    def f(y: Any, args: Any) -> Any:
        motion, data = args
        up, down = _sizes(y, motion)
        return objective.pull((up - down) / 4, data) - motion.away

    def jac(y: Any, args: Any) -> Any:
        motion, data = args
        up, down = _sizes(y, motion)
        slope = (up + down) / 2
        # Columns of dormant coordinates multiply by nothing.
        return -objective.hessian((up - down) / 4, data, slope > ACTIVE) * slope

    def stop(y: Any, slope: Any, args: Any) -> Any:
        motion, _ = args
        up, down = _sizes(y, motion)
        growth = (motion.up - motion.down) * slope
        flux = (up + down) / 4 * jnp.abs(slope)
        # At the start the new coordinate is small, not stationary: it grows at the full rate of its saddle.
        rests = (flux < SETTLED) & (growth < jnp.maximum(1e-3 * motion.pace, 1e-9))
        return motion.settles & jnp.all((motion.up + motion.down == 0) | rests)

    return Solver(f, jac, stop)
