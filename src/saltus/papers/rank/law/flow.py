"""Exact gradient flow of a network with diagonal weights, in logarithms: any start, however small."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput
from saltus.papers.rank.law._once import FirstAlone, once
from saltus.papers.rank.law.motion import free, solver
from saltus.papers.rank.law.objective import Objective, Problem
from saltus.papers.rank.law.radau import Path, first_time

__all__ = ["Flow", "log_inverse", "onward", "simulate"]


def log_inverse(power: float) -> float:
    """log(1 / alpha) for alpha = 10^-power; alpha itself need not be a floating point number."""
    return float(power * np.log(10.0))


@dataclass(frozen=True)
class Flow:
    """A path of P = log |u + v| in unrescaled time; Q = log |u - v| = K - P by the conservation law (eq. 5).

    **Arguments:** `path`; `K` [p] = log |u^2 - v^2|; `L` = log(1 / alpha), the unit of rescaled time.
    """

    problem: Problem
    path: Path
    K: Any
    L: float

    @property
    def until(self) -> float:
        return float(self.path.t[-1]) / self.L

    def logs(self, times: Any) -> tuple[Any, Any]:
        """P, Q [..., p] at rescaled times."""
        P = self.path(np.asarray(times, float) * self.L)
        return P, self.K - P

    def products(self, times: Any) -> Any:
        """m = u v [..., p]."""
        P, Q = self.logs(times)
        return (np.exp(2 * P) - np.exp(2 * Q)) / 4

    def powers(self, times: Any) -> Any:
        """beta = log_alpha |u + v| [..., p], what Algorithm 1 calls b."""
        return -self.logs(times)[0] / self.L

    def weights(self, times: Any) -> tuple[Any, Any]:
        """u, v [..., p] for u(0) > |v(0)|, up to a common sign otherwise."""
        P, Q = self.logs(times)
        swap = np.sign(self.problem.u0**2 - self.problem.v0**2)
        return (np.exp(P) + swap * np.exp(Q)) / 2, (np.exp(P) - swap * np.exp(Q)) / 2

    def size(self, times: Any) -> Any:
        """log of the larger of |u|, |v| [..., p], to within log 2 while both are dormant."""
        P, Q = self.logs(times)
        return np.logaddexp(P, Q) - np.log(2.0)

    def losses(self, times: Any) -> Any:
        """The loss at rescaled times [T]."""
        return np.asarray(
            _values(self.problem.objective)(jnp.asarray(self.products(times)), self.problem.data)
        )

    def product(self, i: int, times: Any) -> Any:
        """m_i alone, of the shape of `times`."""
        P = self.path(np.asarray(times, float) * self.L, i)
        return (np.exp(2 * P) - np.exp(2 * (self.K[i] - P))) / 4

    def passes(self, i: int, level: float, after: float = 0.0) -> float:
        """The first rescaled time from `after` on at which m_i comes to `level` (nan: never)."""
        t = self.path.t / self.L
        inner = (t[:-1, None] + np.diff(t)[:, None] * np.linspace(0, 1, 5)[:-1]).ravel()
        times = np.concatenate([[after], inner[inner > after], t[-1:]])

        def past(when: Any) -> Any:
            return (self.product(i, when) - level) * np.sign(level) >= 0

        beyond = past(times)
        rises = np.flatnonzero(beyond[1:] & ~beyond[:-1])
        if not rises.size:
            return np.nan
        first = int(rises[0]) + 1
        return first_time(past, times[first - 1], times[first])

    def half_rises(self, stages: Any) -> Any:
        """T_k(alpha) [K] for stages 1..K of Algorithm 1: when the product of each winner comes to half of its
        new value; a coordinate that returns is looked for after it was last seen."""
        seen: dict[int, float] = {}
        found = []
        for before, stage in pairwise(stages):
            i = before.winner
            level = float(stage.m[i]) / 2
            time = self.passes(i, level, seen.get(i, 0.0)) if level else np.nan
            if np.isfinite(time):
                seen[i] = time
            found.append(time)
        return np.asarray(found)


@once
def _values(objective: Objective) -> Any:
    return FirstAlone(jax.jit(lambda ms, data: jax.lax.map(lambda m: objective.value(m, data), ms)))


def simulate(
    problem: Problem, L: float, until: float, *, atol: float = 1e-6, max_steps: int = 200_000,
    tick: Callable[[float], None] | None = None,
) -> Flow:  # fmt: skip
    """The flow from alpha (u0, v0) to rescaled time `until`.

    The state is P = log |u + v| in unrescaled time, dP_i/dt = g_i: no small number is ever formed.

    **Arguments:** `L` = log(1 / alpha) > 0; `atol`: error of a step in P, so the relative one of w.
    """
    if not (L > 0 and until > 0):
        raise BadInput("a flow needs log(1/alpha) > 0 and a time > 0")
    return onward(
        problem,
        problem.start - L,
        problem.kappa - 2 * L,
        until * L,
        L,
        atol=atol,
        max_steps=max_steps,
        tick=tick,
    )


def onward(
    problem: Problem, P: Any, K: Any, duration: float, L: float, *, atol: float = 1e-6,
    max_steps: int = 200_000, tick: Callable[[float], None] | None = None,
) -> Flow:  # fmt: skip
    """The flow from any weights, given as P = log |u + v| and K = log |u^2 - v^2| [p], for a time that is not
    rescaled."""
    args = (free(K), problem.data)
    path = solver(problem.objective)(P, args, duration, atol=atol, max_steps=max_steps, tick=tick)
    return Flow(problem, path, np.asarray(K), L)
