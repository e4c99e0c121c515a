"""Assumptions D.1-D.5 as written, and solved for ln P and for ln omega.

Axes are ordered as the appendix uses them: the larger index is the stronger signal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import ArrayLike, Float
from numpy import ndarray as Array

__all__ = ["Constants", "Window", "failing", "ln_omega_limit", "margins", "pair_gap", "window"]

LN10 = math.log(10.0)
KAPPA_MIN, K_MIN, P_MIN = 1.1, 20.0, 2.0
# kappa > 1.1, beta > 1 and gamma > 1 are strict, and all are best at their ends: "just above" is this much.
JUST_ABOVE = 1.0 + 1e-9
# D.1 holds with equality for the best constants; rounding must not undo that.
TOL = 1e-12
STRICT = ("D.4 kappa", "beta", "gamma", "C")


@dataclass(frozen=True)
class Constants:
    """The constants of assumptions D.1-D.5; omega and P as natural logarithms, as they overflow in sight."""

    alpha: float
    gamma: float
    beta: float
    ln_omega: float
    K: float
    ln_P: float
    kappa: float
    C: float

    @property
    def omega(self) -> float:
        return math.exp(self.ln_omega)

    @property
    def P(self) -> float:
        return math.exp(self.ln_P)

    @property
    def ln_phase(self) -> float:
        """ln(P beta omega): an entry below it is in its initial phase (definition D.1)."""
        return self.ln_P + math.log(self.beta) + self.ln_omega

    @property
    def eta_max(self) -> float:
        """The largest step of assumption D.2."""
        return 1.0 / (9.0 * self.K * self.gamma * self.alpha)


@dataclass(frozen=True)
class Window:
    """The admissible ln P for given constants: not empty iff `x_lo <= x_hi`."""

    x_lo: float
    x_hi: float
    lower: str
    upper: str

    @property
    def decades(self) -> float:
        """Width in decades of P; negative is the decades missing."""
        return (self.x_hi - self.x_lo) / LN10


def pair_gap(a: Float[Array, " d"]) -> tuple[float, float]:
    """Over pairs i > j: the largest growth ratio (a_i+a_j)/(2a_i), and the smallest a_i - 3a_j."""
    i, j = np.tril_indices(len(a), -1)
    if len(i) == 0:
        return 0.0, math.inf
    return float(np.max((a[i] + a[j]) / (2 * a[i]))), float(np.min(a[i] - 3 * a[j]))


def bracket(kappa: float) -> float:
    return min(kappa - 1.0, 1.0 - kappa**-0.5)


def window(rho: float, d: int, gamma: float, beta: float, ln_omega: float, K: float, kappa: float) -> Window:
    """The range of ln P left by D.3, D.4 and D.5, solved for ln P.

    D.5 reads rho <= ln P / (10 kappa^2 ln(1/(P B)) + ln(P beta)) with B = beta omega, and is linear in ln P.

    - `rho`: the largest (a_i+a_j)/(2a_i); `d`: number of axes; the others as in the assumptions.
    """
    ln_B, k2 = math.log(beta) + ln_omega, 10.0 * kappa**2
    lows = {
        "P >= 2": math.log(P_MIN),
        "D.5": rho * (-k2 * ln_B + math.log(beta)) / (1.0 + rho * (k2 - 1.0)),
    }
    highs = {
        "D.4": math.log(bracket(kappa) / (K * gamma * d)) - 2.0 * math.log(beta) - ln_omega,
        "D.3": math.log(0.4) - ln_B,
    }
    lower, upper = max(lows, key=lows.__getitem__), min(highs, key=highs.__getitem__)
    return Window(lows[lower], highs[upper], lower, upper)


def ln_omega_limit(
    rho: float, d: int, gamma: float, beta: Float[ArrayLike, "*n"], K: float, kappa: float
) -> Float[Array, "*n"]:
    """The largest ln omega that leaves `window` open (closed form), with omega <= 1/sqrt(2 beta).

    - arguments as in `window`; `beta` may be an array.
    """
    ln_b, k2 = np.log(np.asarray(beta, float)), 10.0 * kappa**2
    ln_c = math.log(bracket(kappa) / (K * gamma * d)) - 2.0 * ln_b
    highs = (ln_c, math.log(0.4) - ln_b)
    if rho >= 1.0:
        return np.full(np.shape(ln_b), -np.inf)
    # x_hi - x_lo is linear in ln(1/omega) with slope (1 - rho)/(1 + rho(k2 - 1)).
    from_P = [math.log(P_MIN) - c for c in highs]
    from_D5 = [-(rho * (k2 - 1.0) * ln_b + (1.0 + rho * (k2 - 1.0)) * c) / (1.0 - rho) for c in highs]
    needed = np.max(np.stack([*from_P, *from_D5, 0.5 * (math.log(2.0) + ln_b)]), axis=0)
    return -needed


def margins(
    a: Float[ArrayLike, " d"], ln_abs_W0: Float[ArrayLike, "d d"], eta: float, constants: Constants
) -> dict[str, float]:
    """Every inequality of D.1-D.5 as written, for any constants: >= 0 holds; strict ones need > 0.

    - `a`: signal strengths, larger index stronger; `ln_abs_W0`: ln |W(0)|; `eta`: step.

    Ratios are in decades (log10 of allowed over actual); "D.5 gap", "D.4 kappa", "D.4 kappa/C", "K", "beta",
    "gamma" and "C" are differences.
    """
    a, ln_w, c = np.asarray(a, float), np.asarray(ln_abs_W0, float), constants
    d = len(a)
    rho, gap = pair_gap(a)
    ln_b, ln_PB = math.log(c.beta), c.ln_phase
    ln_small = math.log(bracket(c.kappa)) - c.ln_P - math.log(c.K * c.gamma * d) - 2.0 * ln_b
    right = 10.0 * c.kappa**2 * -ln_PB + c.ln_P + ln_b
    # A denominator that is not positive means P beta omega of order one: D.3 fails, and D.5 has no meaning.
    growth = math.inf if rho == 0 else (math.log10(c.ln_P / right / rho) if right > 0 < c.ln_P else -math.inf)
    return {
        "D.1 signal": float(np.log10(np.min([np.min(a) / c.alpha, c.gamma * c.alpha / np.max(a)]))),
        "D.1 start": float(min(np.min(ln_w) - c.ln_omega, c.ln_omega + ln_b - np.max(ln_w))) / LN10,
        "D.2": math.log10(c.eta_max / eta),
        "D.3": (math.log(0.4) - ln_PB) / LN10,
        "D.4": (min(ln_small, -0.5 * math.log(2.0 * c.beta)) - c.ln_omega) / LN10,
        "D.4 P": (c.ln_P - math.log(P_MIN)) / LN10,
        "D.4 kappa": c.kappa - KAPPA_MIN,
        "D.4 kappa/C": 1.0 + 0.5 * c.K / c.C - c.kappa,
        "D.5 growth": growth,
        "D.5 gap": gap - c.alpha / c.C,
        "K": c.K - K_MIN,
        "beta": c.beta - 1.0,
        "gamma": c.gamma - 1.0,
        "C": c.C - 1.0,
    }


def failing(found: dict[str, float]) -> list[str]:
    """The names in `margins` that do not hold."""
    return [k for k, v in found.items() if (v <= 0.0 if k in STRICT else not v >= -TOL)]
