"""The same flow in u and v themselves: a check on the logarithmic form, where it can be one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import diffrax
import numpy as np

from saltus._jax import jax, jnp
from saltus.papers.rank.law.objective import Objective, Problem

__all__ = ["Direct", "simulate"]


@dataclass(frozen=True)
class Direct:
    """u, v [T, p] at rescaled times [T]; `drift` [T]: largest change of u_i^2 - v_i^2 since the start, over the
    largest u_i^2 + v_i^2 of that time; `steps` of the solver, and whether it got to the end."""

    times: Any
    u: Any
    v: Any
    drift: Any
    steps: int
    finished: bool

    @property
    def products(self) -> Any:
        return self.u * self.v


@lru_cache(maxsize=64)
def _program(objective: Objective, max_steps: int) -> Any:
    def slope(t: Any, y: Any, data: Any) -> Any:
        u, v = y
        g = objective.pull(u * v, data)
        return jnp.stack([v * g, u * g])

    @jax.jit
    def go(y0: Any, times: Any, data: Any, rtol: Any) -> Any:
        # An absolute tolerance would hide everything below it, and dormant weights are all below it.
        return diffrax.diffeqsolve(
            diffrax.ODETerm(slope), diffrax.Dopri8(), 0.0, times[-1], None, y0, data,
            saveat=diffrax.SaveAt(ts=times), max_steps=max_steps, throw=False,
            stepsize_controller=diffrax.PIDController(rtol=rtol, atol=0.0),
        )  # fmt: skip

    return go


def simulate(
    problem: Problem, L: float, times: Any, *, rtol: float = 1e-10, max_steps: int = 100_000
) -> Direct:
    """The flow of u and v from exp(-L) (u0, v0), by an explicit solver of order 8 with relative tolerance only.

    It cannot hold u^2 - v^2 ~ alpha^2 once u ~ 1: a coordinate that leaves the support does not come back.
    """
    times = np.asarray(times, float)
    y0 = np.exp(-L) * np.stack([problem.u0, problem.v0])
    found = _program(problem.objective, max_steps)(y0, jnp.asarray(times * L), problem.data, rtol)
    u, v = np.moveaxis(np.asarray(found.ys), 1, 0)
    kept = y0[0] ** 2 - y0[1] ** 2
    drift = np.abs(u**2 - v**2 - kept).max(1) / (u**2 + v**2).max(1)
    return Direct(
        times, u, v, drift, int(found.stats["num_accepted_steps"]),
        bool(found.result == diffrax.RESULTS.successful),
    )  # fmt: skip
