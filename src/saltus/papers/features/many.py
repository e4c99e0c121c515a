"""Data of many patches a point and several features, of unequal length and frequency.

The paper's own data have two patches and one feature for each class, and it names more as open.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from saltus.core.errors import BadInput
from saltus.papers.features.world import Sample

__all__ = ["ManyPatch", "pull"]


@dataclass(frozen=True)
class ManyPatch:
    """Points of `len(mu) + noises` patches, with a slot for every feature.

    Feature k is a pair of directions of length `mu[k]`, one for each class, all of them orthogonal. A share
    `share[k]` of the points of each class, drawn anew for every feature and rounded to one point or more,
    holds it; in the slots of the others, and in the last `noises` of every point, is noise N(0, sigma_xi^2
    I). One feature of share 1 and one noise patch is the paper's `TwoPatch`.
    """

    n: int = 30
    d: int = 1000
    mu: tuple[float, ...] = (15.0, 15.0)
    share: tuple[float, ...] = (1.0, 0.2)
    noises: int = 1
    sigma_xi: float = 1.0

    def __post_init__(self) -> None:
        if len(self.mu) != len(self.share) or not self.mu:
            raise BadInput(f"{len(self.mu)} lengths of features need as many shares, not {len(self.share)}")
        if not all(x > 0 for x in self.mu) or not all(0 < x <= 1 for x in self.share):
            raise BadInput("lengths of features must be above 0, and their shares above 0 and at most 1")
        if self.n < 2 or self.noises < 0 or not self.sigma_xi > 0:
            raise BadInput("data of many patches need two points or more, and noise of a size above 0")
        if self.patches < 2:
            raise BadInput("a point needs two patches or more: another feature, or a noise patch")
        if self.d < self.distinct:
            raise BadInput(f"{self.distinct} distinct patches need as many dimensions; d is {self.d}")

    @property
    def patches(self) -> int:
        """Of a point."""
        return len(self.mu) + self.noises

    @property
    def distinct(self) -> int:
        """Of the training set: features of both classes, then noise."""
        held = sum(a + b for a, b in self.holders())
        return 2 * len(self.mu) + self.n * self.patches - held

    def holders(self) -> list[tuple[int, int]]:
        """For every feature how many points of class +1 and of class -1 hold it."""
        sizes = ((self.n + 1) // 2, self.n // 2)
        return [(max(1, round(s * sizes[0])), max(1, round(s * sizes[1]))) for s in self.share]

    def draw(self, rng: np.random.Generator) -> Sample:
        """Training data: patches (k, +1), (k, -1) for every feature k in order, then noise; labels +1, -1."""
        n, K = self.n, len(self.mu)
        y = np.where(np.arange(n) < (n + 1) // 2, 1, -1)
        holds = np.zeros((n, K), bool)
        for k, counts in enumerate(self.holders()):
            for label, count in zip((1, -1), counts, strict=True):
                holds[rng.permutation(np.flatnonzero(y == label))[:count], k] = True
        X = np.zeros((self.distinct, self.d))
        X[np.arange(2 * K), np.arange(2 * K)] = np.repeat(self.mu, 2)
        X[2 * K :] = self.sigma_xi * rng.standard_normal((self.distinct - 2 * K, self.d))
        members = np.zeros((n, self.distinct))
        point, feature = np.nonzero(holds)
        members[point, 2 * feature + (y[point] < 0)] = 1.0
        owner = np.repeat(np.arange(n), self.patches - holds.sum(1))
        members[owner, 2 * K + np.arange(len(owner))] = 1.0
        return Sample(X, members.mean(0), members, y)

    def fresh(
        self, rng: np.random.Generator, points: int, X: np.ndarray, held: tuple[bool, ...]
    ) -> tuple[np.ndarray, np.ndarray]:
        """New points that hold the features marked in `held` and no other.

        What a network sees of new noise is its part in the span of the training, and that is N(0, sigma_xi^2
        I) in any orthonormal basis of it: `X` [P, D] are the training patches in such a basis.

        **Returns** patches [points, patches, D] and labels [points].
        """
        y = np.where(rng.random(points) < 0.5, 1, -1)
        x = self.sigma_xi * rng.standard_normal((points, self.patches, X.shape[1]))
        for k in np.flatnonzero(held):
            x[:, k] = X[2 * k + (y < 0)]
        return x, y


def pull(X: np.ndarray, omega: np.ndarray) -> np.ndarray:
    """<x̄, x_p> of every patch: what its product is proportional to in the first stage [..., P].

    With orthogonal patches omega_p |x_p|^2: how often a feature is seen counts as much as its squared length.
    """
    return np.einsum("...pd,...d->...p", X, np.einsum("...p,...pd->...d", omega, X))
