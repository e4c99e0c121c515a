"""Two-patch data: a class signal in one patch, Gaussian noise in the other (Definition 2.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from saltus.core.errors import BadInput

__all__ = ["Sample", "TwoPatch", "into_span", "sample_of", "stack", "start"]

LABELS = ("random", "balanced")


class Sample(NamedTuple):
    """Training data as a list of distinct clean patches and who holds them.

    - `X` [P, d]: the patches; a `TwoPatch` has mu_+1, mu_-1 first, then xi_1..xi_n.
    - `omega` [P]: how often each is held, over n; they sum to the number of patches of a point.
    - `members` [n, P]: how often point i holds patch p.
    - `labels` [n]: +1 or -1, or 0..9.

    With a leading axis of runs on every field where many are stacked (`stack`).
    """

    X: np.ndarray
    omega: np.ndarray
    members: np.ndarray
    labels: np.ndarray


def sample_of(patches: Sequence[np.ndarray], labels: np.ndarray) -> Sample:
    """Data in which every point's patches are its own, as with images.

    **Arguments:** `patches`: for each patch of a point an array [n, d]; `labels` [n].
    """
    n = len(labels)
    if any(p.shape != patches[0].shape or len(p) != n for p in patches):
        raise BadInput(f"every patch needs shape [{n}, d]; got {', '.join(str(p.shape) for p in patches)}")
    X = np.concatenate([np.asarray(p, float) for p in patches])
    members = np.tile(np.eye(n), (1, len(patches)))
    return Sample(X, members.mean(0), members, np.asarray(labels))


def stack(samples: Sequence[Sample]) -> Sample:
    """Samples of the same sizes as one, runs first."""
    return Sample(*(np.stack(parts) for parts in zip(*samples, strict=True)))


def start(rng: np.random.Generator, neurons: int, dim: int, sigma0: float) -> np.ndarray:
    """First-layer weights [neurons, dim], every entry N(0, sigma0^2)."""
    return sigma0 * rng.standard_normal((neurons, dim))


def into_span(X: np.ndarray, W0: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coordinates of patches and weights in the space they span together, in which training stays.

    All gradients of both tasks lie in span{rows of W, patches}, so training in these coordinates is training
    in R^d: inner products are the same. Patches come first, so theirs are lower triangular.

    **Arguments:** `X` [P, d]; `W0` [..., m, d]. **Returns** the same [P, D], [..., m, D], and the basis
    [d, D] with D = min(d, P + all neurons), by which `X = coordinates @ basis.T`.
    """
    rows = np.concatenate([X, W0.reshape(-1, W0.shape[-1])])
    basis, _ = np.linalg.qr(rows.T)
    inside = rows @ basis
    return inside[: len(X)], inside[len(X) :].reshape(*W0.shape[:-1], -1), basis


@dataclass(frozen=True)
class TwoPatch:
    """The data of the theory and of the synthetic experiment.

    A point is (mu_y, xi): mu_+1 and mu_-1 orthogonal of length `mu`, xi ~ N(0, sigma_xi^2 I) and, with
    `project_noise`, without its parts along the signals (as in the theory, not in the experiment). Labels are
    `random` or `balanced`.
    """

    n: int = 30
    d: int = 1000
    mu: float = 5.0
    sigma_xi: float = 1.0
    project_noise: bool = False
    labels: str = "random"

    def __post_init__(self) -> None:
        if self.n < 1 or self.d < 3:
            raise BadInput(f"two-patch data needs n >= 1 and d >= 3; got n={self.n}, d={self.d}")
        if not (self.mu > 0 and self.sigma_xi > 0):
            raise BadInput(f"mu and sigma_xi must be above 0; got {self.mu:g} and {self.sigma_xi:g}")
        if self.labels not in LABELS:
            raise BadInput(f"labels are {' or '.join(LABELS)}, not {self.labels!r}")

    @property
    def snr(self) -> float:
        """||mu|| / (sigma_xi sqrt(d))."""
        return float(self.mu / (self.sigma_xi * np.sqrt(self.d)))

    @property
    def chi(self) -> float:
        """n SNR^2, the one number of the theory."""
        return self.n * self.snr**2

    def draw(self, rng: np.random.Generator) -> Sample:
        """Training data in R^d."""
        y = self._labels(rng)
        X = np.zeros((self.n + 2, self.d))
        X[0, 0] = X[1, 1] = self.mu
        X[2:] = self.sigma_xi * rng.standard_normal((self.n, self.d))
        if self.project_noise:
            X[2:, :2] = 0.0
        return self._sample(X, y)

    def draw_in_span(
        self, rng: np.random.Generator, neurons: int, sigma0: float
    ) -> tuple[Sample, np.ndarray]:
        """Training data and starting weights in the coordinates of their own span, whatever d is.

        The triangular factor of Gaussian rows has independent entries, normal below the diagonal and chi on
        it (Bartlett, 1933), so it is drawn without ever drawing d numbers a row. The law is that of `draw`,
        `start` and `into_span`; signals come first in the basis. Where d is not larger than the span, the
        basis is that of R^d.

        **Returns** the sample with `X` [n + 2, D] and the weights [neurons, D].
        """
        y, rows = self._labels(rng), self.n + neurons
        X = np.zeros((self.n + 2, min(self.d, rows + 2)))
        X[0, 0] = X[1, 1] = self.mu
        if self.d <= rows + 2:
            Z = rng.standard_normal((rows, self.d))
        else:
            Z = np.zeros((rows, rows + 2))
            below = np.tril(rng.standard_normal((rows, rows)), -1)
            Z[:, :2] = rng.standard_normal((rows, 2))
            Z[:, 2:] = below + np.diag(np.sqrt(rng.chisquare(self.d - 2 - np.arange(rows))))
        X[2:] = self.sigma_xi * Z[: self.n]
        if self.project_noise:
            X[2:, :2] = 0.0
        return self._sample(X, y), sigma0 * Z[self.n :]

    def fresh(self, rng: np.random.Generator, points: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
        """New points for a test, in an orthonormal basis that begins with the signals' directions.

        What a network sees of a new xi is its part in the span of the training, and that is N(0, sigma_xi^2
        I) in any orthonormal basis of it. **Returns** patches [points, 2, dim] and labels [points].
        """
        y = np.where(rng.random(points) < 0.5, 1, -1)
        x = np.zeros((points, 2, dim))
        x[:, 0, 0] = np.where(y > 0, self.mu, 0.0)
        x[:, 0, 1] = np.where(y < 0, self.mu, 0.0)
        x[:, 1] = self.sigma_xi * rng.standard_normal((points, dim))
        if self.project_noise:
            x[:, 1, :2] = 0.0
        return x, y

    def _labels(self, rng: np.random.Generator) -> np.ndarray:
        if self.labels == "balanced":
            return rng.permutation(np.where(np.arange(self.n) < (self.n + 1) // 2, 1, -1))
        return np.where(rng.random(self.n) < 0.5, 1, -1)

    def _sample(self, X: np.ndarray, y: np.ndarray) -> Sample:
        members = np.zeros((self.n, self.n + 2))
        members[np.arange(self.n), np.where(y > 0, 0, 1)] = 1.0
        members[np.arange(self.n), np.arange(self.n) + 2] = 1.0
        return Sample(X, members.mean(0), members, y)
