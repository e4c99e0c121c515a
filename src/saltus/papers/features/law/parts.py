"""What a gradient and a weight are made of: signals, noises and the start, dominant terms and the rest."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saltus._jax import jnp
from saltus.papers.features.law import ddpm
from saltus.papers.features.model import prefactor

__all__ = [
    "Coefficients",
    "Ends",
    "Slopes",
    "classifier_coefficients",
    "coefficients",
    "second_stage_end",
    "slopes",
]

Array = Any


class Slopes(NamedTuple):
    """<grad_w L, v> for v the patches [P, m] and the start [m], and their dominant parts (eqs. 42-44)."""

    patches: np.ndarray
    patches_dominant: np.ndarray
    start: np.ndarray
    start_dominant: np.ndarray

    def residual_leads(self) -> np.ndarray:
        """Whether the rest is as large as the dominant part, for each of the directions [P + 1, m]."""
        whole = np.concatenate([self.patches, self.start[None]])
        lead = np.concatenate([self.patches_dominant, self.start_dominant[None]])
        return np.abs(whole - lead) >= np.abs(lead)


def slopes(
    W: Array, W0: Array, X: Array, omega: Array, alpha: float, beta: float, c: float | None = None
) -> Slopes:
    """The gradient of the expected DDPM loss along every patch and every neuron's own start.

    Dominant along a patch: -4 alpha beta c omega_p |w|^2 |x_p|^2; along w0:
    -4 alpha beta c (2 <w, x̄><w, w0> + |w|^2 <w0, x̄>) + 18 c^2 Omega beta^4 |w|^4 <w, w0>.
    """
    W, W0, X, omega = (np.asarray(v, float) for v in (W, W0, X, omega))
    c = prefactor(len(W)) if c is None else c
    g = np.asarray(ddpm.gradient(jnp.asarray(W), X, jnp.asarray(omega), alpha, beta, c))
    s, xbar, k = (W**2).sum(1), omega @ X, 4 * alpha * beta * c
    lead = -k * omega[:, None] * s * (X**2).sum(1)[:, None]
    stays = (W * W0).sum(1)
    of_start = -k * (2 * (W @ xbar) * stays + s * (W0 @ xbar))
    of_start = of_start + 18 * c**2 * omega.sum() * beta**4 * s**2 * stays
    return Slopes(X @ g.T, lead, (g * W0).sum(1), of_start)


class Ends(NamedTuple):
    """The first step at which the rest leads in most products with directions of a kind, or -1."""

    signals: int
    noises: int
    start: int

    @property
    def first(self) -> int:
        """T_2 of Lemma D.8: the first of them."""
        return min((k for k in self if k >= 0), default=-1)


def second_stage_end(
    steps: Array, path: Array, W0: Array, X: Array, omega: Array, alpha: float, beta: float,
    c: float | None = None,
) -> Ends:  # fmt: skip
    """When the residual terms of eqs. 42-44 reach the dominant ones, which ends the denoiser's second stage.

    **Arguments:** `steps` [t]; `path` [t, m, D]; `X` [P, D] with the signals first; a patch of weight 0 has
    no dominant part and does not count.
    """
    held = np.append(np.asarray(omega) > 0, True)
    kind = np.repeat([0, 1, 2], [2, len(held) - 3, 1])
    leads = np.stack([slopes(W, W0, X, omega, alpha, beta, c).residual_leads() for W in path])
    found = []
    for k in range(3):
        over = leads[:, (kind == k) & held].mean((1, 2)) > 0.5
        found.append(int(np.asarray(steps)[np.argmax(over)]) if over.any() else -1)
    return Ends(*found)


class Coefficients(NamedTuple):
    """w_r = phi_r w0_r + sum_j gamma_jr mu_j/|mu|^2 + sum_i rho_ir xi_i/|xi_i|^2 + rest_r (eq. 22)."""

    phi: np.ndarray  # [m]
    gamma: np.ndarray  # [2, m]
    rho: np.ndarray  # [n, m]
    rest: np.ndarray  # [m]: size of what the form cannot hold: the starts of other neurons


def coefficients(W: Array, W0: Array, X: Array) -> Coefficients:
    """The decomposition of every neuron of the denoiser, by least squares on its start and the patches."""
    W, W0, X = (np.asarray(v, float) for v in (W, W0, X))
    units = X / (X**2).sum(1, keepdims=True)
    found = np.zeros((len(X) + 1, len(W)))
    rest = np.zeros(len(W))
    for r, (w, w0) in enumerate(zip(W, W0, strict=True)):
        basis = np.concatenate([w0[None], units])
        found[:, r] = np.linalg.lstsq(basis.T, w, rcond=None)[0]
        rest[r] = np.linalg.norm(w - found[:, r] @ basis)
    return Coefficients(found[0], found[1:3], found[3:], rest)


def classifier_coefficients(path: Array, X: Array, members: Array, labels: Array, eta: float) -> np.ndarray:
    """rho [2, P, m] after every step of `path` [t, 2, m, D], all of them kept, by the recursion of Lemma C.2.

    rho_p <- rho_p - (2 eta/(nm)) j sum_i l'_i y_i c_ip <w_jr, x_p> |x_p|^2: then w = w0 + sum_p rho_p
    x_p/|x_p|^2, for signals as for noises. The factor 2 is that of the exact gradient.
    """
    path, X, members, y = (np.asarray(v, float) for v in (path, X, members, labels))
    n, m, sizes = len(y), path.shape[2], (X**2).sum(1)
    rho = np.zeros((2, len(X), m))
    for W in path[:-1]:
        A = X @ np.swapaxes(W, -1, -2)
        f = members @ ((A[0] ** 2).sum(-1) - (A[1] ** 2).sum(-1)) / m
        slope = -1 / (1 + np.exp(y * f))
        push = (2 * eta / (n * m)) * ((slope * y) @ members) * sizes
        rho = rho - np.array([1.0, -1.0])[:, None, None] * push[None, :, None] * A
    return rho
