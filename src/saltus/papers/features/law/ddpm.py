"""The DDPM loss at one diffusion time, its expectation over the noise taken exactly, and its gradient.

L = sum_p omega_p E||f(W, alpha x_p + beta eps) - eps||^2 with eps ~ N(0, I), over a list of clean patches x_p
with weights omega_p. Only inner products enter: A_pr = <x_p, w_r> and G = W W^T.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput

__all__ = ["ALPHA_BETA", "change", "diffusion", "effective", "gradient", "loss", "monte_carlo", "per_neuron"]

Array = Any
REDUCTIONS = ("sum", "mean_d", "mean_2d")


def diffusion(t: float) -> tuple[float, float]:
    """alpha = exp(-t), beta = sqrt(1 - exp(-2t))."""
    if not t > 0:
        raise BadInput(f"the diffusion time must be above 0; got {t:g}")
    return math.exp(-t), math.sqrt(-math.expm1(-2 * t))


ALPHA_BETA = diffusion(0.2)  # the paper's time


def effective(eta: float, reduction: str, d: int) -> float:
    """The step on the loss summed over coordinates that `eta` is on its sum or mean over d or 2d of them."""
    if reduction not in REDUCTIONS:
        raise BadInput(f"the reduction is one of {', '.join(REDUCTIONS)}, not {reduction!r}")
    return eta / {"sum": 1, "mean_d": d, "mean_2d": 2 * d}[reduction]


class _Terms(NamedTuple):
    G: jax.Array  # [m, m]
    s: jax.Array  # [m]
    A: jax.Array  # [P, m]
    U: jax.Array  # [P, m]: E<w_r, x_t>^2
    AA: jax.Array  # [m, m]
    K: jax.Array  # [m, m]: sum_p omega_p E[<w_r, x_t>^2 <w_r', x_t>^2]


def _terms(W: Array, X: Array, omega: Array, alpha: Array, beta: Array) -> _Terms:
    G, A = W @ W.T, X @ W.T
    s = jnp.diagonal(G)
    U = alpha**2 * A**2 + beta**2 * s
    AA = (omega[:, None] * A).T @ A
    K = (omega[:, None] * U).T @ U + 4 * (alpha * beta) ** 2 * AA * G
    return _Terms(G, s, A, U, AA, K + 2 * omega.sum() * beta**4 * G**2)


def change(W: Array, X: Array, omega: Array, alpha: Array, beta: Array, c: Array) -> jax.Array:
    """The expected loss less its value at W = 0, which is d times the sum of the weights.

    **Arguments:** `W` [m, d]; `X` [P, d]; `omega` [P]; `c` is the network's prefactor.
    """
    q = _terms(W, X, omega, alpha, beta)
    linear = 4 * alpha * beta * c * (omega @ q.A @ q.s)
    return c**2 * (q.G * q.K).sum() - linear


def loss(
    W: Array, X: Array, omega: Array, alpha: Array, beta: Array, c: Array, d: int | None = None
) -> jax.Array:
    """The expected loss summed over coordinates; `d`, where W and X are in coordinates of their span."""
    return omega.sum() * (X.shape[-1] if d is None else d) + change(W, X, omega, alpha, beta, c)


def gradient(W: Array, X: Array, omega: Array, alpha: Array, beta: Array, c: Array) -> jax.Array:
    """The gradient of `loss` by W [m, d], with no sampling: O(P m d + m^2 d)."""
    M, dA = multipliers(W, X, omega, alpha, beta, c)
    return 2 * M @ W + dA.T @ X


def multipliers(
    W: Array, X: Array, omega: Array, alpha: Array, beta: Array, c: Array
) -> tuple[jax.Array, jax.Array]:
    """M = dL/dG [m, m] and dL/dA [P, m], of which the gradient is 2 M W + (dL/dA)^T X."""
    q, w = _terms(W, X, omega, alpha, beta), omega[:, None]
    mixed = 4 * (alpha * beta) ** 2 * q.AA + 4 * omega.sum() * beta**4 * q.G
    V = 2 * c**2 * w * (q.U @ q.G)
    dA = (
        2 * alpha**2 * V * q.A
        + 8 * (c * alpha * beta) ** 2 * w * (q.A @ q.G**2)
        - 4 * alpha * beta * c * w * q.s
    )
    ds = beta**2 * V.sum(0) - 4 * alpha * beta * c * (w * q.A).sum(0)
    return c**2 * (q.K + q.G * mixed) + jnp.diag(ds), dA


def per_neuron(W: Array, X: Array, omega: Array, alpha: float, beta: float, c: float) -> np.ndarray:
    """The same gradient as printed, neuron by neuron and patch by patch (Lemma D.3), in plain loops.

    The printed cross term, "+ 2 beta^4 q^2 + 4 alpha^2 beta^2 a a' q", is not the derivative of the printed
    loss; here it is.
    """
    W, X, omega = (np.asarray(v, float) for v in (W, X, omega))
    found = np.zeros_like(W)
    a2, b2, b4 = alpha**2, beta**2, beta**4
    for weight, x in zip(omega, X, strict=True):
        for r, w in enumerate(W):
            a, s = w @ x, w @ w
            own = w * (a2**2 * a**4 + 12 * a2 * b2 * a**2 * s + 9 * b4 * s**2 - (4 / c) * alpha * beta * a)
            own = own + x * (2 * a2**2 * a**3 * s + 6 * a2 * b2 * a * s**2 - (2 / c) * alpha * beta * s)
            for k, v in enumerate(W):
                if k == r:
                    continue
                b, z, q = v @ x, v @ v, w @ v
                own = own + v * (
                    (a2 * a**2 + b2 * s) * (a2 * b**2 + b2 * z) + 6 * b4 * q**2 + 8 * a2 * b2 * a * b * q
                )
                own = (
                    own
                    + q * (a2 * b**2 + b2 * z) * (2 * a2 * a * x + 2 * b2 * w)
                    + 4 * a2 * b2 * q**2 * b * x
                )
            found[r] += weight * 2 * c**2 * own
    return found


def monte_carlo(
    key: jax.Array, W: Array, X: Array, omega: Array, alpha: Array, beta: Array, c: Array, noises: int
) -> tuple[jax.Array, jax.Array]:
    """Loss and gradient with `noises` draws of eps for every patch: training without the closed form."""

    def sampled(W: jax.Array, eps: jax.Array) -> jax.Array:
        x_t = alpha * X[:, None, :] + beta * eps
        out = c * ((x_t @ W.T) ** 2 @ W)
        return omega @ ((out - eps) ** 2).sum(-1).mean(-1)

    eps = jax.random.normal(key, (X.shape[0], noises, X.shape[1]), jnp.asarray(W).dtype)
    return jax.value_and_grad(sampled)(jnp.asarray(W), eps)
