"""Assumptions D.1-D.5 of the two-layer theory as a checker, with the margin of each.

Axes are ordered as the appendix uses them: the larger index is the stronger signal. The main text orders them
the other way round; `decide` also says what becomes of the assumptions then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import ArrayLike, Float
from numpy import ndarray as Array

from saltus.core.errors import BadInput
from saltus.papers.sim.law.inequalities import (
    JUST_ABOVE,
    K_MIN,
    KAPPA_MIN,
    LN10,
    TOL,
    Constants,
    Window,
    failing,
    ln_omega_limit,
    margins,
    pair_gap,
    window,
)

__all__ = ["Constants", "Failure", "Verdict", "Window", "decide", "margins", "shared_constants", "window"]


@dataclass(frozen=True)
class Failure:
    """One assumption that fails, by how much (positive), in which unit, and in words."""

    name: str
    by: float
    unit: str
    says: str


@dataclass(frozen=True)
class Verdict:
    """What `decide` found; `margins` are >= 0 where an assumption holds, in decades where it is a ratio.

    `ln_omega_max` is the largest admissible ln omega for this a and beta. `descending_gap` is the smallest
    a_i - 3a_j (i > j) when the same axes are read in the main text's descending order, where D.5 would ask it
    to be positive.
    """

    admissible: bool
    constants: Constants | None
    margins: dict[str, float]
    failures: tuple[Failure, ...]
    window: Window | None
    ln_omega_max: float
    descending_gap: float

    def explain(self) -> str:
        """One line: the constants and the tightest margin, or what fails and by how much."""
        c = self.constants
        if self.admissible and c is not None and self.window is not None:
            name, value = min(self.margins_in_decades().items(), key=lambda kv: kv[1])
            return (
                f"admissible: K={c.K:g}, kappa={c.kappa:.6g}, C={c.C:.4g}, log10 P={c.ln_P / LN10:.3f}, "
                f"log10 omega={c.ln_omega / LN10:.3f}; {self.window.decades:.3f} decades of P free, "
                f"tightest {name} by {value:.2g} decades"
            )
        text = "not admissible: " + "; ".join(f.says for f in self.failures)
        if c is not None and math.isfinite(self.ln_omega_max) and c.ln_omega > self.ln_omega_max:
            excess = (c.ln_omega - self.ln_omega_max) / LN10
            text += f"; omega = min |W(0)| is {excess:.4g} decades above the largest admissible"
        if self.descending_gap > 0:
            text += (
                "; a looks ordered as in the main text: reverse the axes, the appendix has the strongest last"
            )
        return text

    def margins_in_decades(self) -> dict[str, float]:
        """The margins that depend on a choice and are ratios."""
        return {k: v for k, v in self.margins.items() if k in ("D.2", "D.3", "D.4", "D.5 growth")}


def _structure(a: Array, W0: Array) -> list[Failure]:
    """What D.1 and W = U U^T ask of the input itself, before any constant is chosen."""
    out: list[Failure] = []
    if not (np.all(np.isfinite(a)) and np.all(np.isfinite(W0))):
        return [Failure("finite", math.inf, "", "a or W(0) holds a value that is not finite")]
    if (n := int(np.sum(a <= 0))) > 0:
        text = f"D.1: a_k <= 0 on {n} of {len(a)} axes (d > s), so no alpha > 0 exists"
        out.append(Failure("D.1 signal", math.inf, "decades", text))
    if (n := int(np.sum(W0 == 0))) > 0:
        text = f"D.1: {n} zero entries in W(0), so no omega > 0 exists"
        out.append(Failure("D.1 zero entry", math.inf, "decades", text))
    scale = float(np.max(np.abs(W0))) or 1.0
    skew = float(np.max(np.abs(W0 - W0.T))) / scale
    if skew > TOL:
        text = f"W(0) is not symmetric (by {skew:.2g} of its largest entry), so it is not U U^T"
        out.append(Failure("symmetric", skew, "relative", text))
    low = float(np.linalg.eigvalsh((W0 + W0.T) / (2.0 * scale))[0])
    if low < -len(a) * 1e-13:
        text = (
            f"W(0) is not positive semidefinite (smallest eigenvalue {low * scale:.3g}), so it is not U U^T"
        )
        out.append(Failure("psd", -low, "relative", text))
    return out


def _choose(
    rho: float,
    gap: float,
    a: Array,
    beta: float,
    ln_omega: float,
    K: float | None,
    kappa: float,
    C: float | None,
) -> tuple[Constants, Window]:
    """The best alpha, gamma, K and C for one kappa: only K gamma costs anything, in D.4."""
    low, high = float(np.min(a)), float(np.max(a))
    # kappa <= 1 + K/(2C): a C asked for sets the least K; otherwise the smallest K is best.
    K = K if K is not None else max(K_MIN, 2.0 * C * (kappa - 1.0) if C is not None else K_MIN)
    C_top = 0.5 * K / (kappa - 1.0)
    # A gap below alpha/C is met by a smaller alpha (gamma alpha fixed): it costs what a larger K would, and
    # leaves eta alone.
    alpha = low if not 0 < gap < low / (C or C_top) else gap * (C or C_top)
    if C is None:
        C = math.sqrt(C_top * max(1.0, min(alpha / gap, C_top))) if 0 < gap < math.inf else C_top
        C = min(C, C_top)
    gamma = max(high / alpha, JUST_ABOVE)
    w = window(rho, len(a), gamma, beta, ln_omega, K, kappa)
    return Constants(alpha, gamma, beta, ln_omega, K, 0.5 * (w.x_lo + w.x_hi), kappa, C), w


def _kappas(K: float | None, C: float | None) -> list[float]:
    """kappa just above 1.1, best at every admissible omega, and a grid that shows it (C > 1 bounds it)."""
    top = KAPPA_MIN + 5.0 if K is None and C is not None else 1.0 + 0.5 * (K or K_MIN) / (C or 1.001)
    first = KAPPA_MIN * JUST_ABOVE
    return [first, *(np.geomspace(1e-4, max(top - first, 2e-4), 200) + first).tolist()]


def decide(
    a: Float[ArrayLike, " d"],
    W0: Float[ArrayLike, "d d"],
    eta: float,
    *,
    K: float | None = None,
    kappa: float | None = None,
    C: float | None = None,
    P: float | None = None,
) -> Verdict:
    """Whether constants exist that satisfy assumptions D.1-D.5 for (a, W(0), eta), by the closed form.

    - `a`: signal strengths, larger index stronger; `W0`: the start; `eta`: step of recursion D.2.
    - `K`, `kappa`, `C`, `P`: fixed where given, else the best choice.

    Reference: appendix D.1 of arXiv:2410.08309.
    """
    a, W0 = np.asarray(a, float), np.asarray(W0, float)
    if a.ndim != 1 or W0.shape != (len(a), len(a)):
        raise BadInput(f"a must be (d,) and W0 (d, d), not {a.shape} and {W0.shape}")
    if not eta > 0:
        raise BadInput(f"eta must be positive, not {eta}")
    failures = _structure(a, W0)
    broken = {f.name for f in failures}
    if broken & {"finite", "D.1 signal", "D.1 zero entry"}:
        return Verdict(False, None, {}, tuple(failures), None, -math.inf, -math.inf)
    ln_w = np.log(np.abs(W0))
    ln_omega = float(np.min(ln_w))
    beta = max(math.exp(float(np.max(ln_w)) - ln_omega), JUST_ABOVE)
    rho, gap = pair_gap(a)
    tried = [_choose(rho, gap, a, beta, ln_omega, K, k, C) for k in ([kappa] if kappa else _kappas(K, C))]
    if P is None:
        slack = [w.x_hi - w.x_lo for _, w in tried]
    else:
        slack = [min(w.x_hi - math.log(P), math.log(P) - w.x_lo) for _, w in tried]
    c, w = tried[0] if slack[0] >= 0 else tried[int(np.argmax(slack))]
    limit = max(float(ln_omega_limit(rho, len(a), t.gamma, beta, t.K, t.kappa)) for t, _ in tried)
    if P is not None:
        c = replace(c, ln_P=math.log(P))
    found = margins(a, ln_w, eta, c)
    failures += _name(found, c, w, a, eta, joint=P is None)
    gap_down = pair_gap(a[::-1])[1]
    return Verdict(not failures, c, found, tuple(failures), w, limit if gap > 0 else -math.inf, gap_down)


def shared_constants(
    a: Float[ArrayLike, " d"],
    W0: Float[ArrayLike, "n d d"],
    *,
    K: float = K_MIN,
    kappa: float = 1.1001,
    C: float = 99.0,
) -> Constants:
    """One set of constants for a batch of starts: omega its smallest entry, P in the middle of the window.

    - `a`: signal strengths, larger index stronger; `W0`: starts without zeros. Not checked: `margins` tells.
    """
    a, ln_w = np.asarray(a, float), np.log(np.abs(np.asarray(W0, float)))
    ln_omega = float(ln_w.min())
    beta = max(math.exp(float(ln_w.max()) - ln_omega), JUST_ABOVE)
    rho, gap = pair_gap(a)
    return _choose(rho, gap, a, beta, ln_omega, K, kappa, C)[0]


def _name(
    found: dict[str, float], c: Constants, w: Window, a: Array, eta: float, joint: bool
) -> list[Failure]:
    """The failures in words; with P free, D.3-D.5 fail together or not at all."""
    out: list[Failure] = []
    bad = failing(found)
    if joint and w.decades < 0:
        name = f"{w.upper}+{w.lower}"
        text = f"{w.upper} and {w.lower} leave no P: short by {-w.decades:.3g} decades"
        out.append(Failure(name, -w.decades, "decades", text))
        bad = [b for b in bad if b not in ("D.3", "D.4", "D.4 P", "D.5 growth")]
        if found["D.4"] < 0 and c.ln_omega > -0.5 * math.log(2 * c.beta):
            by = (c.ln_omega + 0.5 * math.log(2 * c.beta)) / LN10
            out.append(
                Failure("D.4 omega", by, "decades", f"D.4: omega > 1/sqrt(2 beta) by {by:.3g} decades")
            )
    for b in bad:
        unit = "decades" if b.startswith(("D.1", "D.2", "D.3", "D.5 growth")) or b in ("D.4", "D.4 P") else ""
        text = f"{b} fails by {-found[b]:.3g}{' ' + unit if unit else ''}"
        if b == "D.2":
            text = f"D.2: eta = {eta:.4g} is above {c.eta_max:.4g}"
        if b == "D.5 gap":
            i, j = np.tril_indices(len(a), -1)
            worst = int(np.argmin(a[i] - 3 * a[j]))
            text = (
                f"D.5: a_{i[worst] + 1}/a_{j[worst] + 1} = {a[i[worst]] / a[j[worst]]:.4g}, "
                f"must exceed 3 (a_i - 3a_j misses by {-found[b]:.3g})"
            )
        out.append(Failure(b, -found[b], unit, text))
    return out
