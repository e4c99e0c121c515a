"""Classification: growth rates, the boundary in n SNR^2, Theorem 3.2 and the bounds of Appendix C."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["Rates", "Stages", "Verdict", "boundary", "early", "memory_bounds", "rates", "stages", "theorem32"]

Array = Any


class Rates(NamedTuple):
    """By how much a product grows in a step, relative to itself, while |l'| = 1/2."""

    signal: Array
    noise: Array


def rates(eta: float, m: int, n: int, d: int, mu: Array, sigma_xi: float) -> Rates:
    """eta |mu|^2 / (2m) and eta sigma_xi^2 d / (nm), with the exact gradient: their ratio is chi/2."""
    return Rates(eta * np.asarray(mu) ** 2 / (2 * m), eta * sigma_xi**2 * d / (n * m))


def early(W0: Array, X: Array, members: Array, labels: Array, eta: float, steps: int) -> np.ndarray:
    """Products <w_jr, x_p> [steps + 1, 2, P, m] after every step with all l'_i = -1/2, exactly.

    With l' constant a step is linear: A_j <- (I + j (eta/(nm)) K diag(sum_i y_i c_ip)) A_j, K = X X^T.

    **Arguments:** `W0` [2, m, D]; `X` [P, D]; `members` [n, P]; `labels` [n].
    """
    W0, X, members, y = (np.asarray(v, float) for v in (W0, X, members, labels))
    push = (eta / (len(y) * W0.shape[1])) * (X @ X.T) * (y @ members)
    found = [X @ np.swapaxes(W0, -1, -2)]
    for _ in range(steps):
        A = found[-1]
        found.append(np.stack([A[0] + push @ A[0], A[1] - push @ A[1]]))
    return np.stack(found)


def boundary(sigma0: Array, mu: Array, sigma_xi: float, d: Array) -> Array:
    """chi* = 2 ln(1/(sigma0 |mu|)) / ln(1/(sigma0 sigma_xi sqrt(d))): both reach size 1 at the same step.

    Goes to 2 as sigma0 goes to 0.
    """
    noise = np.asarray(sigma0) * sigma_xi * np.sqrt(d)
    return 2 * np.log(1 / (np.asarray(sigma0) * mu)) / np.log(1 / noise)


class Stages(NamedTuple):
    """Ends of the first stage in steps, and the bound on the product that stays behind (App. C.3, C.4)."""

    signal: float  # the case chi >= 2.5/C: products with the signal are over 2
    noise_bound: float
    noise: float  # the case chi^-1 >= 0.55/C: products with the noise are over 2
    signal_bound: float


def stages(
    n: int, d: int, m: int, mu: float, sigma_xi: float, sigma0: float, eta: float,
    *, slope: float = 0.5, delta: float = 0.1,
) -> Stages:  # fmt: skip
    """T_1 of both cases, with |l'| >= `slope`; constants for the exact gradient, twice the paper's."""
    chi = n * mu**2 / (sigma_xi**2 * d)
    lead, tail = np.log(4 / (sigma0 * mu)), np.log(8 / (sigma0 * sigma_xi * np.sqrt(d)))
    t_signal = lead / np.log1p(2 * 0.49 * eta * slope * mu**2 / m)
    t_noise = tail / np.log1p(2 * 0.98 * slope * eta * sigma_xi**2 * d / (n * m))
    behind = (2.1 / (slope * chi) + 0.01) * lead
    noise_bound = np.exp(behind) * 2 * np.sqrt(np.log(8 * m * n / delta)) * sigma0 * sigma_xi * np.sqrt(d)
    signal_bound = np.exp(0.53 * chi / slope * tail) * np.sqrt(2 * np.log(8 * m / delta)) * sigma0 * mu
    return Stages(float(t_signal), float(noise_bound), float(t_noise), float(signal_bound))


class Verdict(NamedTuple):
    """What Theorem 3.2 finds in one run: `case` and the first look at which its conclusions hold, or -1."""

    case: str  # "signal", "noise", "both" or "neither"
    signal_step: int
    noise_step: int


def theorem32(steps: Array, loss: Array, signal: Array, noise: Array, *, small: float = 0.5) -> Verdict:
    """The conclusions of Theorem 3.2 along one run.

    Signal: L_S <= 0.1 and max_r |<w_jr, mu_j>| >= 2 for both j while every noise product is below `small`.
    Noise: L_S <= 0.1 and max_r |<w_(y_i)r, xi_i>| >= 1 for all i while every signal product is below it.

    **Arguments:** `steps` [t]; `loss` [t]; `signal` [t, 2] = max_r |<w_jr, mu_j>|; `noise` [t, n] =
    max_r |<w_(y_i)r, xi_i>|.
    """
    steps, loss, signal, noise = (np.asarray(v) for v in (steps, loss, signal, noise))
    fitted = loss <= 0.1
    of_signal = fitted & (signal.min(1) >= 2) & (noise.max(1) < small)
    of_noise = fitted & (noise.min(1) >= 1) & (signal.max(1) < small)
    first = [int(steps[np.argmax(v)]) if v.any() else -1 for v in (of_signal, of_noise)]
    case = {(True, True): "both", (True, False): "signal", (False, True): "noise"}
    return Verdict(case.get((first[0] >= 0, first[1] >= 0), "neither"), *first)


def memory_bounds(
    W: Array, W0: Array, X: Array, members: Array, labels: Array, *, steps: int
) -> dict[str, float]:
    """Proposition C.1, Lemmas C.4 and C.5 at one moment: left side over right side, so that <= 1 holds.

    rho are the coefficients of W - W0 = sum_p rho_p x_p / |x_p|^2 (Lemma C.2).

    **Arguments:** `W`, `W0` [2, m, D]; `X` [n + 2, D] with the signals first; `steps`: T*, the run's length.
    """
    W, W0, X, y = (np.asarray(v, float) for v in (W, W0, X, labels))
    n, size = len(y), 2 * np.log(max(steps, 2))
    d_noise = (X[2:] ** 2).sum(1).mean()  # sigma_xi^2 d
    cross = np.abs(np.triu(X[2:] @ X[2:].T, 1)).max() / d_noise
    A, A0 = X @ np.swapaxes(W, -1, -2), X @ np.swapaxes(W0, -1, -2)  # [2, P, m]
    own = np.where(y > 0, 0, 1)
    start = 3 * np.abs(A0).max()
    at, all_n = np.arange(2, n + 2), np.arange(n)
    # sqrt(log(4n^2/delta)/d) n alpha, of which half the largest cosine of two noises is the least value.
    shared = cross / 2 * n * size if n > 1 else 0.0
    units = X / (X**2).sum(1, keepdims=True)
    rho = np.moveaxis(np.linalg.lstsq(units.T, np.moveaxis(W - W0, -1, 0).reshape(len(units.T), -1))[0]
                      .reshape(len(X), *W.shape[:2]), 0, 1)  # [2, P, m]  # fmt: skip
    drift = np.abs(A - A0 - rho)[:, 2:].max()
    outputs = (A**2).sum(-1) / W.shape[1]
    wrong = members @ outputs.T  # [n, 2]
    return {
        "signal": float(np.abs(A[[0, 1], [0, 1]]).max() / size),
        "noise": float(np.abs(A[own, at]).max() / size),
        "other signal": float(np.abs(A[[0, 1], [1, 0]]).max() / start),
        "other noise": float(np.abs(A[1 - own, at]).max() / (start + 12 * shared)),
        "coefficient": float(np.abs(rho[own, at]).max() / size),
        "other coefficient": float(np.abs(rho[1 - own, at]).max() / (start + 12 * shared)),
        "product less coefficient": float(drift / (4 * shared)) if n > 1 else 0.0,
        "other output": float(wrong[all_n, 1 - own].max() / 0.5),
    }
