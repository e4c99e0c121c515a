"""Stationary points of the expected DDPM loss, by solving for them.

At the points that training reaches every neuron has the same product a_p with patch p, and what lies outside
the span of the patches makes G = q 11^T + (s - q) I: with H = (X X^T)^-1, h = a^T H a and phi >= 0,
q = h - phi^2/m and s = q + phi^2. The loss is then a function of a and phi alone (n + 3 unknowns).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput
from saltus.papers.features.law import ddpm
from saltus.papers.features.model import prefactor

__all__ = ["Point", "identity", "kkt", "pull", "reduced", "solve", "symmetric", "weights"]

Array = Any
STEPS = 200
ROUNDING = 1e-15  # slopes below this share of curvature times size are rounding


class Point(NamedTuple):
    """A stationary point of `reduced`; arrays with leading axes where many were solved for."""

    a: np.ndarray  # [P] products, the same for every neuron
    phi: np.ndarray  # size of what lies outside the patches
    q: np.ndarray  # <w_r, w_r'>
    s: np.ndarray  # |w_r|^2
    change: np.ndarray  # loss less its value at W = 0
    slope: np.ndarray  # norm of the gradient by (a, phi): 0 where solved
    curvature: np.ndarray  # least eigenvalue of the second derivative by (a, phi)


def _sizes(z: Array, H: Array, m: int) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    a, phi = z[:-1], z[-1]
    h = a @ H @ a
    q = h - phi**2 / m
    return a, phi, q, (h if m == 1 else q + phi**2)


def reduced(z: Array, omega: Array, H: Array, m: int, alpha: Array, beta: Array, c: Array) -> jax.Array:
    """Loss less its value at 0, by z = (a_1..a_P, phi); phi has no part in it when m = 1."""
    a, _, q, s = _sizes(z, H, m)
    if m == 1:
        q = s
    own = s * (alpha**4 * a**4 + 6 * (alpha * beta * a) ** 2 * s + 3 * beta**4 * s**2)
    both = (alpha**2 * a**2 + beta**2 * s) ** 2 + 4 * (alpha * beta * a) ** 2 * q + 2 * beta**4 * q**2
    return (omega * (c**2 * m * (own + (m - 1) * q * both) - 4 * alpha * beta * c * m * s * a)).sum()


@lru_cache(maxsize=32)
def _derivatives(m: int) -> Any:
    """Value, slope and second derivative of `reduced` by z, for many at once."""

    def all_of(z: Array, omega: Array, H: Array, alpha: Array, beta: Array, c: Array) -> Any:
        def value(z: jax.Array) -> jax.Array:
            return reduced(z, omega, H, m, alpha, beta, c)

        return value(z), jax.grad(value)(z), jax.hessian(value)(z)

    return jax.jit(jax.vmap(all_of))


def _descend(z: Any, omega: Any, H: Any, m: int, alpha: Any, beta: Any, c: Any) -> Any:
    """Newton's method with the signs of the curvatures taken away, so that it leaves saddles for minima.

    All arguments have a leading axis of problems, but for `m`.
    """
    derive = _derivatives(m)
    free = z.shape[-1] - (m == 1)  # where m = 1 there is no phi
    for _ in range(STEPS):
        here, g, bend = (np.asarray(v) for v in derive(z, omega, H, alpha, beta, c))
        small = np.abs(bend).max((1, 2)) * np.linalg.norm(z, axis=-1)
        if (np.linalg.norm(g, axis=-1) <= ROUNDING * small).all():
            break
        rates, axes = np.linalg.eigh(bend[:, :free, :free])
        size = np.maximum(np.abs(rates), 1e-12 * np.abs(rates).max(-1, keepdims=True) + 1e-300)
        move = np.zeros_like(z)
        move[:, :free] = -np.einsum("kij,kj->ki", axes, np.einsum("kij,ki->kj", axes, g[:, :free]) / size)
        promise = (g * move).sum(-1)
        length, waits, ahead, was = np.ones(len(z)), np.ones(len(z), bool), z, np.linalg.norm(g, axis=-1)
        for _ in range(40):
            tried = z + length[:, None] * move
            value, slope, _ = (np.asarray(v) for v in derive(tried, omega, H, alpha, beta, c))
            lower = value <= here + 1e-4 * length * promise
            # At the bottom the loss has no digits left to tell steps apart; the slope still has.
            level = np.abs(value - here) <= 1e-12 * np.abs(here)
            good = waits & (lower | (level & (np.linalg.norm(slope, axis=-1) < was)))
            ahead = np.where(good[:, None], tried, ahead)
            waits &= ~good
            if not waits.any():
                break
            length = np.where(waits, length / 2, length)
        if np.array_equal(ahead, z):
            break
        z = ahead
    value, g, bend = (np.asarray(v) for v in derive(z, omega, H, alpha, beta, c))
    least = np.linalg.eigvalsh(bend[:, :free, :free])[:, 0]
    return z, value, np.linalg.norm(g, axis=-1), least


def solve(
    omega: Array,
    gram: Array,
    m: int,
    alpha: float,
    beta: float,
    *,
    c: float | None = None,
    start: Array | None = None,
) -> Point:
    """The symmetric minimum for given patches.

    **Arguments:** `omega` [P]; `gram` [P, P] = X X^T; `start` [P + 1]: (a, phi) to descend from, by default
    the direction in which the first stage leaves the origin, a proportional to X x̄.
    """
    omega, gram = np.asarray(omega, float), np.asarray(gram, float)
    c = prefactor(m) if c is None else c
    if np.linalg.matrix_rank(gram, hermitian=True) < len(gram):
        raise BadInput(
            "the patches must be linearly independent; give one held twice once, with both weights"
        )
    H = np.linalg.inv(gram)
    if start is None:
        toward = gram @ omega
        start = np.append(0.5 * m ** (-1 / 6) * toward / np.abs(toward).max(), 0.3)
    z, weight, form = (np.asarray(v, float)[None] for v in (start, omega, H))
    found = _descend(z, weight, form, m, *(np.full(1, v) for v in (alpha, beta, c)))
    return _point([v[0] for v in found], H, m)


def _point(found: Any, H: Any, m: int) -> Point:
    z, change, slope, curvature = (np.asarray(v) for v in found)
    a, phi = z[..., :-1], (np.abs(z[..., -1]) if m > 1 else np.zeros(z.shape[:-1]))
    h = np.einsum("...p,...pq,...q->...", a, H, a)
    q = h - phi**2 / m
    return Point(a, phi, q, q + phi**2, change, slope, curvature)


def symmetric(
    chi: Array,
    m: int,
    alpha: float,
    beta: float,
    *,
    mu: Array = 1.0,
    c: float | None = None,
    start: Any = None,
) -> Point:
    """The same with equal classes and orthogonal noises of equal size: a = (a_mu, a_xi), for every chi.

    Only |mu| and chi = n |mu|^2 / (sigma_xi^2 d) matter: h = 2 a_mu^2/|mu|^2 + chi a_xi^2/|mu|^2.

    **Arguments:** `chi`, `mu`: numbers or arrays of one shape. **Returns** a `Point` of arrays of that shape.
    """
    chi, mu = np.broadcast_arrays(np.asarray(chi, float), np.asarray(mu, float))
    shape, c = chi.shape, prefactor(m) if c is None else c
    H = np.zeros((chi.size, 2, 2))
    H[:, 0, 0], H[:, 1, 1] = 2 / mu.ravel() ** 2, (chi / mu**2).ravel()
    if start is None:
        ratio = chi.ravel() / 2
        size = 0.5 * m ** (-1 / 6) / np.maximum(ratio, 1)
        start = np.stack([size * ratio, size, np.full(chi.size, 0.3)], -1)
    numbers = (np.full(chi.size, v) for v in (alpha, beta, c))
    found = _descend(np.asarray(start, float), np.ones((chi.size, 2)), H, m, *numbers)
    return Point(*(v.reshape(shape + v.shape[1:]) for v in _point(found, H, m)))


def pull(
    a: Array, q: Array, s: Array, m: int, alpha: float, beta: float, c: float | None = None
) -> np.ndarray:
    """R(a) = -dL/da_p / (omega_p c sqrt(m)) at fixed q, s: the linear term less what holds it back.

    With c = 1/sqrt(m): 4 alpha beta sqrt(m) s - 4 alpha^4 a^3 s - 12 alpha^2 beta^2 a s^2
    - (m - 1) q [4 alpha^2 a (alpha^2 a^2 + beta^2 s) + 8 alpha^2 beta^2 a q].
    """
    c = prefactor(m) if c is None else c
    a = np.asarray(a, float)
    q, s = (np.asarray(v, float)[..., None] if np.ndim(v) < a.ndim else np.asarray(v, float) for v in (q, s))
    held = 4 * alpha**4 * a**3 * s + 12 * (alpha * beta) ** 2 * a * s**2
    cross = 4 * alpha**2 * a * (alpha**2 * a**2 + beta**2 * s) + 8 * (alpha * beta) ** 2 * a * q
    return 4 * alpha * beta * c * m * s - c**2 * m * (held + (m - 1) * q * cross)


def identity(
    point: Point, omega: Array, gram: Array, m: int, alpha: float, beta: float, c: float | None = None
) -> np.ndarray:
    """a_p divided by (gram (omega * R(a)))_p, over its mean: 1 for every patch at a stationary point [P].

    With orthogonal patches of equal classes this is the ratio identity
    a_mu / a_xi = (chi/2) R(a_mu) / R(a_xi).
    """
    forces = np.asarray(gram) @ (np.asarray(omega) * pull(point.a, point.q, point.s, m, alpha, beta, c))
    share = point.a / forces
    return share / share.mean()


def weights(point: Point, X: Array, m: int) -> np.ndarray:
    """Weights [m, D] of a solved point, in coordinates of the span, of which the patches `X` [P, D] fill P.

    Rows are the same inside the span of the patches; outside they form a simplex of size phi.
    """
    X = np.asarray(X, float)
    if X.shape[1] < len(X) + m - 1:
        raise BadInput(f"a simplex of {m} neurons beside {len(X)} patches needs {len(X) + m - 1} dimensions")
    inside = np.linalg.lstsq(X, point.a, rcond=None)[0]
    basis, _ = np.linalg.qr(X.T, mode="complete")
    free = basis[:, len(X) :]
    simplex = np.eye(m) - 1 / m
    left, sizes, _ = np.linalg.svd(simplex)
    corners = (left * sizes)[:, : m - 1] * float(point.phi)
    return inside + corners @ free[:, : m - 1].T


class Kkt(NamedTuple):
    """What holds at a stationary point of the whole network."""

    slope: float  # norm of the gradient
    spread: float  # largest coefficient of variation of a product over neurons
    rank: int  # of the multiplier M, over 1e-6 of its largest eigenvalue
    least: float  # smallest eigenvalue of M over the largest: >= 0
    orthogonal: float  # |M W_out| / (|M| |W_out|): 0
    outside: float  # share of |W|^2 outside the span of the patches


def kkt(W: Array, X: Array, omega: Array, alpha: float, beta: float, c: float | None = None) -> Kkt:
    """The conditions of a minimum over A and G >= A^T H A: M = dL/dG >= 0 and M W_out = 0."""
    W, X = np.asarray(W, float), np.asarray(X, float)
    c = prefactor(len(W)) if c is None else c
    M, dA = (np.asarray(v) for v in ddpm.multipliers(jnp.asarray(W), X, jnp.asarray(omega), alpha, beta, c))
    A, rates = X @ W.T, np.linalg.eigvalsh(M)
    basis, _ = np.linalg.qr(X.T)
    out = W - (W @ basis) @ basis.T
    spread = np.max(A.std(1) / np.abs(A.mean(1)))
    size = np.abs(rates).max()
    apart = np.linalg.norm(M @ out) / max(size * np.linalg.norm(out), 1e-300)
    return Kkt(
        float(np.linalg.norm(2 * M @ W + dA.T @ X)), float(spread), int((rates > 1e-6 * size).sum()),
        float(rates[0] / size), float(apart), float((out**2).sum() / (W**2).sum()),
    )  # fmt: skip
