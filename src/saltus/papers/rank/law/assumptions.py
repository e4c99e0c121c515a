"""Assumptions 4.3, 4.4 and 4.5 of Theorem 4.1, as checkers on a given network, data and start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from saltus.papers.rank.law import orbit
from saltus.papers.rank.law.greedy import Stage, Staircase
from saltus.papers.rank.law.objective import Problem

__all__ = ["Nondegenerate", "nondegenerate", "relaxation", "restarted", "strict"]


@dataclass(frozen=True)
class Nondegenerate:
    """Assumption 4.3.

    **Arguments:** `gaps` [K]: waiting time of the runner-up over the winner's, less 1 (inf without one);
    `unbalanced`: smallest ||u_i(0)| - |v_i(0)||; `leavers`: smallest |g_i| over coordinates that left, at the
    saddle they left for (inf without any); `least_log` = L_min, below which the order of stages is not to be
    expected whatever the gaps.
    """

    gaps: Any
    unbalanced: float
    leavers: float
    least_log: float

    @property
    def holds(self) -> bool:
        return bool(np.all(self.gaps > 1e-9) and self.unbalanced > 0 and self.leavers > 1e-9)


def nondegenerate(problem: Problem, found: Staircase) -> Nondegenerate:
    """Whether winners are unique, weights unbalanced, and what left the support is pulled (Assumption
    4.3)."""
    gaps = np.asarray([s.runner_up / s.wait - 1 for s in found.stages if np.isfinite(s.wait)])
    pulls = [abs(float(s.g[i])) for s in found.stages for i in s.left]
    return Nondegenerate(
        gaps,
        float(np.abs(np.abs(problem.u0) - np.abs(problem.v0)).min()),
        min(pulls, default=np.inf),
        found.least_log,
    )


def strict(found: Staircase) -> Any:
    """c_k = half the smallest eigenvalue of the Hessian of L(u, s u) in u on the support [K]: Assumption
    4.4 asks for L(u, s u) >= L(theta^k) + c_k |u - u^k|^2 nearby, with c_k > 0."""
    return found.stacked("least")[1:] / 2


def relaxation(problem: Problem, stage: Stage, size: float = 1e-2, atol: float = 1e-6) -> float:
    """Rate at which the flow comes back to a saddle along its slowest direction on the support.

    It is half the smallest eigenvalue, as du/dt = s u g and not twice that.
    """
    on = stage.support
    if not on.any():
        return np.nan
    u = np.sqrt(np.abs(stage.m[on]))
    signs = np.sign(stage.m)
    place, _ = orbit.at(problem.objective, problem.data, stage.m, on)
    r = signs[on] * u
    _, vectors = np.linalg.eigh(4 * r[:, None] * place.H[np.ix_(on, on)] * r)
    slowest = vectors[:, 0]
    m = stage.m.copy()
    # Small against the smallest product, so that the linear law is the one seen.
    moved = u + size * float(u.min()) * slowest
    m[on] = signs[on] * moved**2
    path = orbit.follow(problem.objective, problem.data, m, on, signs, np.zeros_like(m), atol=atol).path
    along = (np.exp(path.y[:, on] / 2) - u) @ slowest
    part = along / along[0]
    used = (part < 0.5) & (part > 0.02)
    if used.sum() < 3:
        return np.nan
    return float(-np.polyfit(path.t[used], np.log(part[used]), 1)[0])


def restarted(
    problem: Problem, found: Staircase, k: int, noise: Any, *, flip: bool = False, atol: float = 1e-4
) -> float:
    """Part (B) of stage k from a noisy start: how far its end is from theta^{k+1}, in sqrt |m|
    (Assumption 4.5).

    **Arguments:** `noise` [p], added to u^k and to 0 at the winner, before the absolute value; `flip`
    gives the winner the wrong sign, from which it cannot get there.
    """
    stage, after = found.stages[k], found.stages[k + 1]
    signs = np.sign(stage.m)
    # Those that leave on the way start where they are.
    new = [stage.winner, *stage.tied]
    signs[new] = np.sign(stage.g[new])
    if flip:
        signs[stage.winner] *= -1
    u = np.abs(np.sqrt(np.abs(stage.m)) + noise)
    on = signs != 0
    m = np.where(on, signs * u**2, 0.0)
    end = orbit.follow(
        problem.objective,
        problem.data,
        m,
        on,
        signs,
        stage.g,
        atol=atol,
        max_steps=2000,
    ).end
    return float(
        np.abs(np.sign(end) * np.sqrt(np.abs(end)) - np.sign(after.m) * np.sqrt(np.abs(after.m))).max()
    )
