"""The denoiser's first stage, before the quartic terms matter: linear growth, an invariant, a blow-up time.

While the weights are small only the linear term of the loss counts, and only through the mean patch
x̄ = sum_p omega_p x_p:  dw/dt = kappa (|w|^2 x̄ + 2 <w, x̄> w),  kappa = 4 alpha beta c.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saltus.papers.features.model import prefactor

__all__ = ["Orders", "blow_up", "invariant", "mean_patch", "orders", "solve", "velocity"]

Array = Any


def mean_patch(X: Array, omega: Array) -> np.ndarray:
    """x̄ [..., d] of patches [..., P, d] with weights [..., P]."""
    return np.einsum("...p,...pd->...d", omega, X)


def velocity(W: Array, xbar: Array, kappa: float) -> np.ndarray:
    """dW/dt [m, d]."""
    W = np.asarray(W, float)
    return kappa * ((W**2).sum(-1, keepdims=True) * xbar + 2 * (W @ xbar)[..., None] * W)


def _angle(W: Array, xbar: Array) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """|w|, its angle to x̄, and the unit vectors along x̄ and across it in the plane of both."""
    W, xbar = np.asarray(W, float), np.asarray(xbar, float)
    ahead = xbar / np.linalg.norm(xbar, axis=-1, keepdims=True)
    along = np.einsum("...md,...d->...m", W, ahead)
    rest = W - along[..., None] * ahead[..., None, :]
    off = np.linalg.norm(rest, axis=-1)
    return np.hypot(along, off), np.arctan2(off, along), ahead, rest / off[..., None]


def invariant(W: Array, xbar: Array) -> np.ndarray:
    """|w| sin^3 of the angle between w and x̄, which the first stage keeps [..., m]."""
    size, angle, _, _ = _angle(W, xbar)
    return size * np.sin(angle) ** 3


def _area(angle: np.ndarray) -> np.ndarray:
    return angle / 2 - np.sin(2 * angle) / 4


def blow_up(W0: Array, xbar: Array, kappa: float) -> np.ndarray:
    """When each neuron of the first stage would be infinite, in units of step times steps [..., m].

    The angle obeys d(angle)/dt = -kappa |x̄| |w| sin(angle), and |w| sin^3(angle) = C, so that
    angle/2 - sin(2 angle)/4 falls at the constant rate kappa |x̄| C. From a right angle:
    pi / (4 kappa |x̄| |w0|).
    """
    size, angle, _, _ = _angle(W0, xbar)
    length = np.linalg.norm(xbar, axis=-1)[..., None]
    return _area(angle) / (kappa * length * size * np.sin(angle) ** 3)


def solve(W0: Array, xbar: Array, kappa: float, times: Array) -> np.ndarray:
    """The weights of the first stage at `times` [t], exactly: [t, m, d]; not finite after the blow-up."""
    times = np.asarray(times, float)
    size, angle0, ahead, across = _angle(W0, xbar)
    rate = kappa * np.linalg.norm(xbar) * size * np.sin(angle0) ** 3  # [m]
    left = _area(angle0) - rate * times[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        angle = np.where(left > 0, _invert(np.maximum(left, 0.0)), np.nan)
        length = size * (np.sin(angle0) / np.sin(angle)) ** 3
    along, off = length * np.cos(angle), length * np.sin(angle)
    return along[..., None] * ahead + off[..., None] * across


def _invert(area: np.ndarray) -> np.ndarray:
    """The angle in (0, pi) with angle/2 - sin(2 angle)/4 = area, by bisection and then Newton."""
    low, high = np.zeros_like(area), np.full_like(area, np.pi)
    for _ in range(40):
        middle = (low + high) / 2
        above = _area(middle) > area
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    angle = (low + high) / 2
    for _ in range(3):
        slope = np.sin(angle) ** 2
        angle = np.clip(angle - np.where(slope > 0, (_area(angle) - area) / slope, 0.0), low, high)
    return angle


class Orders(NamedTuple):
    """Times in steps: orders without their constants, except `onset`, which is sharp."""

    T_mu: float  # Lemma 4.1: products with the signals have left their start
    T_xi: float
    T_1: float
    T_2: float  # Lemma 4.2: the end of the second stage
    onset: float  # pi / (4 kappa |x̄| sigma0 sqrt(d)), when the loss falls


def orders(
    n: int, d: int, m: int, mu: float, sigma_xi: float, sigma0: float, eta: float, alpha: float, beta: float,
    delta: float = 0.1, c: float | None = None,
) -> Orders:  # fmt: skip
    """The paper's stage times (Lemmas 4.1, 4.2, D.5, D.8), `eta` being the step on the summed loss.

    The prefactor `c` is 1/sqrt(m) there; with another, products end at (c m)^(-1/3).
    """
    c = prefactor(m) if c is None else c
    rate = eta * alpha * beta * c
    t_mu = np.sqrt(np.log(16 * m / delta)) / (sigma0 * d * mu * rate)
    t_xi = n * np.sqrt(np.log(16 * m * n / delta)) / (sigma0 * sigma_xi * d**1.5 * rate)
    # The second entry as the update gives it; printed is n sigma0^-2 sigma_xi^2.
    t_2 = (c * m) ** (-1 / 3) / (eta * c * sigma0**2) * max(1 / d, n / (sigma_xi**2 * d**2))
    xbar = np.sqrt(mu**2 / 2 + sigma_xi**2 * d / n)
    onset = np.pi / (16 * rate * xbar * sigma0 * np.sqrt(d))
    return Orders(float(t_mu), float(t_xi), float(max(t_mu, t_xi)), float(t_2), float(onset))
