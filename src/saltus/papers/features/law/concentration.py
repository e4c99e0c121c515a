"""The concentration lemmas of the start and of the data: left side over right side, so that <= 1 holds."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["near_zero", "report"]

Array = Any


def report(
    X: Array, labels: Array, W0: Array, sigma_xi: float, sigma0: float, d: int, delta: float = 0.1
) -> dict[str, float]:
    """Lemmas B.1, B.2, C.1, C.3 and D.1 for one draw; each may fail with probability `delta`.

    **Arguments:** `X` [n + 2, D] with the signals first; `labels` [n]; `W0` [m, D], one class's or the
    denoiser's weights.
    """
    X, W0, y = np.asarray(X, float), np.asarray(W0, float), np.asarray(labels)
    n, m, mu = len(y), len(W0), float(np.linalg.norm(X[0]))
    noise, root = sigma_xi * np.sqrt(d), np.sqrt(d)
    products = np.abs(X @ W0.T)  # [P, m]
    norms, inner = (X[2:] ** 2).sum(1), X[2:] @ X[2:].T
    x = np.log(4 * n / delta)
    found = {
        "class sizes": np.abs((y > 0).sum() - n / 2) / np.sqrt(n * np.log(4 / delta) / 2),
        # The paper's O() with the constants of Laurent and Massart (2000).
        "noise norms": np.abs(norms - sigma_xi**2 * d).max()
        / (sigma_xi**2 * (2 * root * np.sqrt(x) + 2 * x)),
        "start and signals": products[:2].max() / (np.sqrt(2 * np.log(8 * m / delta)) * sigma0 * mu),
        "start and noises": products[2:].max() / (2 * np.sqrt(np.log(8 * m * n / delta)) * sigma0 * noise),
        "largest start and signals": sigma0 * mu / 2 / products[:2].max(1).min(),
        "largest start and noises": sigma0 * noise / 4 / products[2:].max(1).min(),
        "mean start and signals": _outside(products[:2].mean(1) / (sigma0 * mu)),
        "mean start and noises": _outside(products[2:].mean(1) / (sigma0 * noise)),
    }
    if n > 1:
        cross = np.abs(inner[np.triu_indices(n, 1)]).max()
        found["noise products"] = cross / (2 * sigma_xi**2 * np.sqrt(d * np.log(4 * n**2 / delta)))
    if m > 1:
        start = np.abs((W0 @ W0.T)[np.triu_indices(m, 1)]).max()
        found["start products"] = start / (2 * np.sqrt(np.log(16 * m**2 / delta)) * sigma0**2 * root)
    return {name: float(v) for name, v in found.items()}


def _outside(means: np.ndarray) -> float:
    """Over 1 where a mean leaves [1/2, 1], the interval around sqrt(2/pi)."""
    return float(max(means.max(), 0.5 / means.min()))


def near_zero(c: Array, sigma: float) -> np.ndarray:
    """The bound sqrt(1 - exp(-2 c^2 / (pi sigma^2))) on P(|N(0, sigma^2)| <= c) (Lemma C.14)."""
    return np.sqrt(-np.expm1(-2 * np.asarray(c, float) ** 2 / (np.pi * sigma**2)))
