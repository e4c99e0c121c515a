"""The concentration lemmas of the start and of the data: left side over right side, so that <= 1 holds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["Apart", "apart", "near_zero", "report"]

Array = Any


def report(
    X: Array, labels: Array, W0: Array, sigma_xi: float, sigma0: float, d: int, delta: float = 0.1
) -> dict[str, float]:
    """Lemmas B.1, B.2, C.1, C.9, C.16 and D.1 for one draw; each may fail with probability `delta`.

    **Arguments:** `X` [n + 2, D] with the signals first; `labels` [n]; `W0` [m, D], one class's or the
    denoiser's weights.
    """
    X, W0, y = np.asarray(X, float), np.asarray(W0, float), np.asarray(labels)
    n, m, mu = len(y), len(W0), float(np.linalg.norm(X[0]))
    noise, root = sigma_xi * np.sqrt(d), np.sqrt(d)
    products = np.abs(X @ W0.T)  # [P, m]
    norms, inner = (X[2:] ** 2).sum(1), X[2:] @ X[2:].T
    found = {
        "class sizes": np.abs((y > 0).sum() - n / 2) / np.sqrt(n * np.log(4 / delta) / 2),
        "noise norms": _lengths(norms / sigma_xi**2, d, delta),
        "start norms": _lengths((W0**2).sum(1) / sigma0**2, d, delta),
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


def _lengths(squares: np.ndarray, d: int, delta: float) -> float:
    """Distance of squared lengths from d over the paper's O(), with the constants of Laurent and Massart
    (2000)."""
    x = np.log(4 * len(squares) / delta)
    return float(np.abs(squares - d).max() / (2 * np.sqrt(d * x) + 2 * x))


def _outside(means: np.ndarray) -> float:
    """Over 1 where a mean leaves [1/2, 1], the interval around sqrt(2/pi)."""
    return float(max(means.max(), 0.5 / means.min()))


def near_zero(c: Array, sigma: float) -> np.ndarray:
    """The bound sqrt(1 - exp(-2 c^2 / (pi sigma^2))) on P(|N(0, sigma^2)| <= c) (Lemma C.3)."""
    return np.sqrt(-np.expm1(-2 * np.asarray(c, float) ** 2 / (np.pi * sigma**2)))


class Apart(NamedTuple):
    """Lemma C.14 for one draw, left side over right side: where `premise` <= 1, `conclusion` <= 1 but for
    `delta`."""

    premise: float
    conclusion: float


def apart(
    X: Array, W0: Array, sigma_xi: float, sigma0: float, d: int, steps: int, delta: float = 0.1
) -> Apart:
    """No product of the start with a noise is near zero: |<w0, xi_i>| >= 8 sqrt(log(4n^2/delta)/d) n alpha.

    alpha = 2 log(steps). The premise is what a union over products and Lemma C.3 ask of sigma0; the printed
    one, sigma0 >= log(n^2/delta) n^2 m alpha / (d sigma_xi), leaves out that it goes with 1/delta.

    **Arguments:** `X` [n + 2, D] with the signals first; `W0` [..., D], the weights of both classes.
    """
    X, W0 = np.asarray(X, float), np.asarray(W0, float).reshape(-1, np.shape(W0)[-1])
    n = len(X) - 2
    least = 8 * np.sqrt(np.log(4 * n**2 / delta) / d) * n * 2 * np.log(max(steps, 2))
    fails = len(W0) * n * near_zero(least, sigma0 * sigma_xi * np.sqrt(d))
    return Apart(float(fails / delta), float(least / np.abs(X[2:] @ W0.T).min()))
