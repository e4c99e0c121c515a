"""Lemmas D.1-D.8 and corollaries D.1, D.2 as bounds held against a discrete trajectory at every step.

Each bound is a ratio "seen over allowed" that must not pass 1; nothing of the trajectory is kept but the
worst ratio of every bound, and the first step and entry at which it passed 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from jaxtyping import ArrayLike, Float, Int
from numpy import ndarray as Array

from saltus._jax import jnp
from saltus.core.errors import BadInput
from saltus.papers.sim.law import unrolled
from saltus.papers.sim.law.bounds import BOUNDS, NEVER, Fixed, run, start_watch
from saltus.papers.sim.law.inequalities import LN10, Constants
from saltus.papers.sim.law.unrolled import Entries, Rows, pairs

__all__ = ["BOUNDS", "Bound", "Counterexample", "LemmaReport", "check", "steps_to_learn"]

Dynamics = Literal["recursion", "gd"]


@dataclass(frozen=True)
class Counterexample:
    """The input on which a bound failed worst, and where."""

    bound: str
    run: int
    W0: Float[Array, "d d"]
    step: int
    entry: tuple[int, int]
    excess: float


@dataclass(frozen=True)
class Bound:
    """One bound over all runs: worst excess in ln units ("D.5 lower": the depth itself), > 0 is a violation.

    A lower bound is missed by inf where the entry changed sign or underflowed to zero.

    `first` is the first step of violation, -1 for none; `entry` the (i, j) it happened at, counted from 1.
    """

    name: str
    says: str
    worst: Float[Array, " n"]
    first: Int[Array, " n"]
    entry: Int[Array, "n 2"]

    @property
    def violated(self) -> Array:
        return self.first >= 0

    @property
    def share(self) -> float:
        return float(np.mean(self.violated))


@dataclass(frozen=True)
class LemmaReport:
    """Every bound on a batch of starts; `stopped`: the step a run passed 1e6 or was not finite, or -1."""

    a: Float[Array, " d"]
    W0: Float[Array, "n d d"]
    eta: float
    constants: Constants
    dynamics: Dynamics
    form: Literal["W", "U"]
    steps: int
    bounds: dict[str, Bound]
    stopped: Int[Array, " n"]
    W: Float[Array, "n d d"]
    underflow: bool

    def worst(self, name: str) -> Counterexample:
        """The run on which bound `name` came out worst."""
        b = self.bounds[name]
        k = int(np.argmax(np.where(np.isnan(b.worst), -np.inf, b.worst)))
        i, j = (int(x) for x in b.entry[k])
        return Counterexample(name, k, self.W0[k], int(b.first[k]), (i, j), float(b.worst[k]))

    def explain(self) -> str:
        """One line per bound: the share of starts violating it, the worst excess, the earliest step."""
        lines = [
            f"{self.dynamics}, n={len(self.W0)}, {self.steps} steps, {int(np.sum(self.stopped >= 0))} stopped"
        ]
        for b in self.bounds.values():
            seen = b.first[b.violated]
            when = f", first at step {seen.min()}" if len(seen) else ""
            lines.append(
                f"{b.name:9s} violated by {b.share:.0%}, worst {np.max(b.worst):+.3g}{when}: {b.says}"
            )
        if self.underflow:
            lines.append(
                "omega^2 is below what float64 holds: products of entries underflow, Cor D.1 is not tested"
            )
        return "\n".join(lines)


def steps_to_learn(
    a: Float[ArrayLike, " d"], W0: Float[ArrayLike, "n d d"], eta: float, extra: float = 10.0
) -> int:
    """Steps after which every axis of every start has grown to 1, and `extra` of its time constants more.

    Axis k grows from its Schur complement given the stronger axes: t = ln(1/sigma_k)/(2 a_k). Exactly
    singular starts never do; they are left out.
    """
    a, W0 = np.asarray(a, float), np.asarray(W0, float)
    U = unrolled.factor(W0.reshape(-1, len(a), len(a)))
    pivots = np.diagonal(U, axis1=1, axis2=2) ** 2
    with np.errstate(divide="ignore"):
        times = np.where(pivots > 0, -np.log(pivots), -np.log(np.diagonal(W0.max(0))))
    return math.ceil(float(np.max((times + extra) / (2.0 * a))) / eta)


def check(
    a: Float[ArrayLike, " d"],
    W0: Float[ArrayLike, "n d d"],
    eta: float,
    constants: Constants,
    steps: int | None = None,
    dynamics: Dynamics = "recursion",
) -> LemmaReport:
    """Hold lemmas D.1-D.8 and corollaries D.1, D.2 against every step of a batch of runs.

    - `a`: signal strengths, larger index stronger; `W0`: starts, symmetric PSD without zeros; `eta`: step.
    - `constants`: as `assumptions.decide` returns them; they need not be admissible.
    - `steps`: past the end of learning unless said.
    - `dynamics`: "recursion" is the printed eq. D.2 on W, "gd" gradient descent on U. The latter is stepped
      in W, which keeps small entries exact, or in U where a start is (nearly) rank deficient.

    Reference: appendix D.2 of arXiv:2410.08309.
    """
    a, W0 = np.asarray(a, float), np.asarray(W0, float)
    W0 = W0[None] if W0.ndim == 2 else W0
    n, d = len(W0), len(a)
    if W0.shape != (n, d, d):
        raise BadInput(f"a has {d} axes, so W0 must be (n, {d}, {d}), not {W0.shape}")
    if dynamics not in ("recursion", "gd"):
        raise BadInput(f'dynamics must be "recursion" or "gd", not {dynamics!r}')
    if not np.all(np.isfinite(W0)) or np.any(W0 == 0) or np.any(np.diagonal(W0, axis1=1, axis2=2) < 0):
        raise BadInput("W0 must be finite, without zeros (assumption D.1) and with a positive diagonal")
    c, U = constants, unrolled.factor(W0)
    # Schur complement ratios: below 1e-8 rounding would decide the weak axes' fate in W form.
    ratio = (np.diagonal(U, axis1=1, axis2=2) ** 2 / np.diagonal(W0, axis1=1, axis2=2)).min()
    in_U = dynamics == "gd" and bool(ratio < 1e-8)
    steps = steps or steps_to_learn(a, W0, eta)
    ln_noise = math.log(2 * c.gamma * c.alpha * d) + c.ln_P + 2.0 * (math.log(c.beta) + c.ln_omega)
    underflow = min(ln_noise, 2.0 * c.ln_omega) < -300.0 * LN10
    order, f64 = pairs(d), partial(jnp.asarray, dtype=jnp.float64)
    own = [(c.ln_phase - np.log(W0[:, i, i])) / (2.0 * eta * a[i] * c.kappa) for i in range(d)]
    # One column has no cancellation in U U^T; more have, at a few units in the last place per step.
    rounding = 0.0 if not in_U or d == 1 or np.all(U[:, :, :-1] == 0) else 64 * np.finfo(float).eps
    fixed = Fixed(
        a=f64(a),
        eta=f64(eta),
        kappa=f64(c.kappa),
        K=f64(c.K),
        noise_cap=f64(math.exp(ln_noise)),
        phase=f64(math.exp(c.ln_phase)),
        omega=f64(c.omega),
        T1=f64(c.ln_P / (2.0 * eta * c.gamma * c.alpha * c.kappa)),
        T1_own=tuple(f64(x) for x in own),
        inv0=tuple(f64(1.0 / W0[:, i, j]) for i, j in order),
        floor=f64(rounding),
    )
    state: Entries | Rows = unrolled.pack(f64(W0))
    if in_U:
        state = tuple(tuple(f64(U[:, i, k]) for k in range(d)) for i in range(d))
    kind = "recursion" if dynamics == "recursion" else ("U" if in_U else "W")
    w, watch = run(fixed, state, start_watch(n, d), jnp.asarray(steps), kind)
    bounds = {}
    for k, (name, says) in enumerate(BOUNDS.items()):
        worst, code = np.asarray(watch.worst[k]), np.asarray(watch.first[k])
        with np.errstate(divide="ignore", invalid="ignore"):
            worst = worst if name == "D.5 lower" else np.log(np.maximum(worst, 0.0))
        hit = code != NEVER
        first = np.where(hit, code // len(order), -1)
        entry = np.where(hit[:, None], np.array(order)[code % len(order)] + 1, 0)
        bounds[name] = Bound(name, says, worst, first, entry)
    if underflow:
        never = np.full(n, -1)
        bounds["Cor D.1"] = Bound(
            "Cor D.1", BOUNDS["Cor D.1"], np.full(n, np.nan), never, np.zeros((n, 2), int)
        )
    return LemmaReport(
        a=a,
        W0=W0,
        eta=eta,
        constants=c,
        dynamics=dynamics,
        form="U" if in_U else "W",
        steps=steps,
        bounds=bounds,
        stopped=np.asarray(watch.stopped),
        W=np.asarray(unrolled.unpack(w)),
        underflow=underflow,
    )
