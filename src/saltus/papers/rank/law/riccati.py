"""One coordinate on its own, g = c - a m: its flow has a closed form, whatever the start."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["half_rise", "product", "stage"]


def _roots(c: float, a: float, u0: float, v0: float, L: float) -> tuple[float, float, float, float, float]:
    """Fixed points y+, y- of y = (u + v)^2, its start, k = alpha^2 |u0^2 - v0^2|, and the rate D.

    y' = 2 c y - (a / 2)(y^2 - k^2); neither root is formed by a subtraction.
    """
    k = np.exp(-2 * L) * abs(u0**2 - v0**2)
    D = np.hypot(2 * c, a * k)
    if c > 0:
        high, low = (2 * c + D) / a, -(k**2) * a / (2 * c + D)
    else:
        high, low = k**2 * a / (D - 2 * c), (2 * c - D) / a
    return high, low, np.exp(-2 * L) * (u0 + v0) ** 2, k, D


def product(times: Any, c: float, a: float, u0: float, v0: float, L: float) -> Any:
    """m = u v at rescaled times, from exp(-L) (u0, v0), for L below 170 (k^2 must be a number)."""
    high, low, y0, k, D = _roots(c, a, u0, v0, L)
    # 1 / R: R itself overflows.
    inverse = (high - y0) / (y0 - low) * np.exp(-D * np.asarray(times, float) * L)
    y = (low * inverse + high) / (inverse + 1)
    return (y - k**2 / y) / 4


def half_rise(c: float, a: float, u0: float, v0: float, L: float) -> float:
    """The rescaled time at which m is half of c / a."""
    high, low, y0, k, D = _roots(c, a, u0, v0, L)
    m = c / (2 * a)
    root = np.hypot(2 * m, k)
    y = 2 * m + root if m > 0 else k**2 / (root - 2 * m)
    return float(np.log((y - low) / (high - y) * (high - y0) / (y0 - low)) / D / L)


def stage(c: float, a: float, u0: float, v0: float) -> tuple[float, float]:
    """T = 1 / |c| and C = log(2 sqrt(|c| / a) / amp) / |c| of its one stage, amp = |u0 + v0| or |u0 - v0|."""
    amp = abs(u0 + v0) if c > 0 else abs(u0 - v0)
    return 1 / abs(c), float(np.log(2 * np.sqrt(abs(c) / a) / amp) / abs(c))
