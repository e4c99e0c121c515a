"""Algorithm 1: the stages of learning in the limit of a small start, for any loss of products."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from saltus.core.progress import Tick
from saltus.papers.rank.law import orbit
from saltus.papers.rank.law.objective import Problem
from saltus.papers.rank.law.radau import first_time

__all__ = ["Stage", "Staircase", "run"]

SEED = 1e-6  # epsilon of eq. 13; the end points do not depend on it
TIE = 1e-9  # waiting times closer than this, relatively, are one


@dataclass(frozen=True)
class Stage:
    """Stage k: the saddle theta^k and what leaves it.

    **Arguments:** `T` = T_k; `C`: T_k(alpha) = T_k + C / log(1/alpha) for the half-rise of the new product;
    `m` [p] (products u v at theta^k); `b` [p]; `c` [p]: log |u + v| = -b log(1/alpha) + c; `g` [p];
    `loss`; `least`: smallest eigenvalue of the Hessian of the loss in u on the support (nan without one);
    `winner` with its `sign`, `wait` = Delta and that of the `runner_up`; `tied`: other coordinates with the
    same wait; `left`: coordinates that left the support on the way here; `residual` = largest |g| on it;
    `gap`: distance of the flow's end from Newton's point.
    """

    k: int
    T: float
    C: float
    m: Any
    b: Any
    c: Any
    g: Any
    loss: float
    least: float
    winner: int = -1
    sign: int = 0
    wait: float = np.inf
    runner_up: float = np.inf
    tied: tuple[int, ...] = ()
    left: tuple[int, ...] = ()
    residual: float = 0.0
    gap: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def support(self) -> Any:
        return self.m != 0


@dataclass(frozen=True)
class Staircase:
    """All stages found; `end` says why there are no more: `no winner`, `stages`, `time`, `enough`, or
    `did not settle`."""

    stages: tuple[Stage, ...]
    end: str

    def stacked(self, name: str) -> Any:
        return np.asarray([getattr(stage, name) for stage in self.stages])

    @property
    def least_log(self) -> float:
        """L_min: the order of stages is right only if log(1/alpha) is larger (max over the C_k - C_{k+1}
        to the T_{k+1} - T_k); 0 with fewer than two stages."""
        T, C = self.stacked("T")[1:], self.stacked("C")[1:]
        gaps = np.diff(T)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = -np.diff(C) / gaps
        ratio = ratio[np.isfinite(ratio)]
        return float(max(0.0, ratio.max())) if ratio.size else 0.0

    def at(self, times: Any, L: float = np.inf) -> Any:
        """m [..., p] of the limit at rescaled times; with L, each step is late by C_k / L."""
        T = self.stacked("T") + (0.0 if np.isinf(L) else self.stacked("C") / L)
        T[0] = 0.0
        # A stage that is due before the one in front of it is passed over.
        due = np.minimum.accumulate(T[::-1])[::-1]
        place = np.searchsorted(due, np.asarray(times), side="right") - 1
        return self.stacked("m")[np.clip(place, 0, None)]


def run(
    problem: Problem,
    *,
    stages: int | None = None,
    until: float = np.inf,
    enough: float = 0.0,
    printed_base: bool = False,
    ties: str = "together",
    atol: float = 1e-7,
    tick: Tick | None = None,
) -> Staircase:
    """Algorithm 1 from theta^0 = 0.

    **Arguments:** `stages`: at most so many (every coordinate may come and go, so the default is 4 p);
    `until`: rescaled time after which no stage begins; `enough`: it is enough when so much of the loss
    at 0 is left, at most; `printed_base`: b^0 = 0, as the algorithm's box has it, for 1 as in
    its proof; `ties`: `together` activates all winners of a tie at once, `lowest` the one with the
    lowest index, the others at once after it.
    """
    p, kappa = problem.size, problem.kappa
    objective, data = problem.objective, problem.data
    m, b, c = np.zeros(p), np.full(p, 0.0 if printed_base else 1.0), problem.start
    signs = np.zeros(p)
    T = C = 0.0
    most = 4 * p if stages is None else stages
    place, _ = orbit.at(objective, data, m, m != 0)
    found: list[Stage] = []
    left: tuple[int, ...] = ()
    gap = 0.0
    counts: dict[str, int] = {}
    end = "stages"
    for k in range(most + 1):
        support = m != 0
        residual = float(np.abs(place.g[support]).max(initial=0.0))
        g = np.where(support, 0.0, place.g)  # stationarity holds to rounding only
        wait = _waits(b, g)
        order = np.argsort(wait, kind="stable")
        winner, runner = int(order[0]), np.inf
        tied: tuple[int, ...] = ()
        if np.isfinite(wait[winner]):
            same = [int(i) for i in order[1:] if wait[i] - wait[winner] <= TIE * max(wait[winner], 1e-3)]
            tied = tuple(same)
            runner = float(wait[order[1]]) if p > 1 else np.inf
        made = dict(
            k=k, T=T, C=C, m=m, b=b, c=c, g=g, loss=place.loss, least=place.least, left=left, gap=gap,
            counts=counts, residual=residual,
        )  # fmt: skip
        if not np.isfinite(wait[winner]):
            found.append(Stage(**made))
            end = "no winner"
            break
        s = int(np.sign(g[winner]))
        found.append(
            Stage(**made, winner=winner, sign=s, wait=float(wait[winner]), runner_up=runner, tied=tied)
        )
        learnt = enough > 0 and found[-1].loss <= enough * found[0].loss
        if k == most or learnt or T + wait[winner] > until:
            end = "stages" if k == most else "enough" if learnt else "time"
            break
        step = wait[winner]
        T, b = T + step, np.clip(b - g * step, 0.0, 2.0)
        new = (winner, *tied) if ties == "together" else (winner,)
        for i in new:
            signs[i] = np.sign(g[i])
            b[i] = 0.0 if g[i] > 0 else 2.0
        amplitude = np.where(signs > 0, c, kappa - c)
        with np.errstate(invalid="ignore"):  # a balanced start has amplitude 0 in one direction
            ahead = np.nan_to_num(2 * (amplitude[list(new)] - amplitude[winner]), nan=0.0)
        size = np.exp(np.clip(ahead, -20, 20))
        seeded = m.copy()
        seeded[list(new)] = signs[list(new)] * SEED**2 * size
        found_orbit = orbit.follow(objective, data, seeded, seeded != 0, signs, g, atol=atol)
        if not found_orbit.settled:
            end = "did not settle"
            break
        m, place, left, gap = _arrive(problem, found_orbit, signs)
        signs = np.where(m != 0, signs, 0.0)
        C, c = _constants(
            found_orbit, m, np.where(m != 0, 0.0, place.g), g, c, kappa, amplitude[winner], winner
        )
        counts = found_orbit.path.counts
        if tick is not None:
            tick(min(len(found), p), p)
    return Staircase(tuple(found), end)


def _waits(b: Any, g: Any) -> Any:
    """Delta_k (eq. 10): the time until coordinate i is active; infinite where g_i = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(g == 0, np.inf, (b - 1 + np.sign(g)) / g)


def _arrive(
    problem: Problem, found: orbit.Orbit, signs: Any
) -> tuple[Any, orbit.Place, tuple[int, ...], float]:
    """The stationary point an orbit ends at: coordinates that leave set to 0, the others polished."""
    flow, support = found.end, found.support.copy()
    place, _ = orbit.at(problem.objective, problem.data, flow, support)
    left: list[int] = []
    while True:
        leaving = support & (np.abs(flow) < 1e-4) & (signs * place.g < -1e-9)
        left += [int(i) for i in np.flatnonzero(leaving)]
        support &= ~leaving
        m, place = orbit.polish(problem.objective, problem.data, np.where(support, flow, 0.0), support)
        # Newton may cross zero where a coordinate was still on its way out.
        crossed = support & (m * signs <= 0)
        if not crossed.any():
            break
        left += [int(i) for i in np.flatnonzero(crossed)]
        support &= ~crossed
    gap = float(np.abs(m - np.where(support, flow, 0.0)).max(initial=0.0))
    return m, place, tuple(left), gap


def _constants(
    found: orbit.Orbit, m: Any, g: Any, before: Any, c: Any, kappa: Any, amplitude: float, winner: int
) -> tuple[float, Any]:
    """C_{k+1}, and the O(1) part of log |u + v| at every coordinate, carried through a transition.

    With t_h the half-rise: log K = log m_half + 2 int (|g_i^k| - s g_i) up to t_h, and
    C = (log 2 + log(K) / 2 - amplitude) / |g_i^k|.
    """
    path, rate = found.path, abs(float(before[winner]))
    half = _half_rise(found, winner, abs(float(m[winner])))
    log_K = path.y[0, winner] + 2 * rate * half
    C = (np.log(2.0) + log_K / 2 - amplitude) / rate
    end = path.t[-1]
    # The state off the support is int (g - g^k): what is left is g^k - g^{k+1} after the half-rise.
    moved = path.y[-1] - path.y[0] + (before - g) * (end - half)
    with np.errstate(invalid="ignore"):  # from a balanced start C may be infinite: it never comes
        late = np.where(before == g, 0.0, (before - g) * C)
    c = c + late + np.where(found.support, 0.0, moved)
    gone = found.support & (m == 0)
    if gone.any():
        on_way = (path.y[-1] - path.y[0]) * found.signs / 2
        c = np.where(gone, c + on_way - before * half - g * (end - half), c)
    on = m != 0
    with np.errstate(divide="ignore"):
        top = np.log(2 * np.sqrt(np.where(on, np.abs(m), 1.0)))
    return float(C), np.where(on, np.where(found.signs > 0, top, kappa - top), c)


def _half_rise(found: orbit.Orbit, i: int, m: float) -> float:
    """When |m_i| first passes half of what it ends at; where it leaves again, of its largest value."""
    path = found.path
    level = np.log((m or float(np.exp(path.y[:, i].max()))) / 2)
    first = int(np.argmax(path.y[:, i] >= level))
    return first_time(lambda t: path(t, i) >= level, path.t[max(first - 1, 0)], path.t[first])
