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
    """w_r = sum_s phi_sr w0_s + sum_j gamma_jr mu_j/|mu|^2 + sum_i rho_ir xi_i/|xi_i|^2, exactly.

    Eq. 22 has the own start alone, phi_rr: the cross terms of the gradient bring in those of the others.
    """

    phi: np.ndarray  # [m, m], starts by neurons
    gamma: np.ndarray  # [2, m]
    rho: np.ndarray  # [n, m]

    def rebuild(self, W0: Array, X: Array) -> np.ndarray:
        """The weights [m, D] that these are the coefficients of."""
        X = np.asarray(X, float)
        patches = np.concatenate([self.gamma, self.rho]) / (X**2).sum(1)[:, None]
        return np.asarray(self.phi.T @ np.asarray(W0, float) + patches.T @ X)

    def stray(self, W0: Array) -> np.ndarray:
        """The size of what eq. 22 leaves out, the starts of other neurons [m]."""
        others = self.phi - np.diag(np.diagonal(self.phi))
        return np.linalg.norm(others.T @ np.asarray(W0, float), axis=1)


def coefficients(W: Array, W0: Array, X: Array) -> Coefficients:
    """The decomposition of a trained denoiser [m, D]; `X` [P, D] with the signals first.

    Where starts and patches are linearly dependent there are many, and this is the smallest.
    """
    W, W0, X = (np.asarray(v, float) for v in (W, W0, X))
    # Of one length each, so that the smallest in this basis is told by no one's units.
    size = np.concatenate([np.linalg.norm(W0, axis=1), np.linalg.norm(X, axis=1)])[:, None]
    basis = np.concatenate([W0, X]) / size
    found = np.linalg.lstsq(basis.T, W.T, rcond=None)[0] / size  # [m + P, m]
    m, patches = len(W), found[len(W) :] * (X**2).sum(1)[:, None]
    return Coefficients(found[:m], patches[:2], patches[2:])


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
