"""Problems with known answers: quadratic losses in three coordinates, so that one compiled program
serves all."""

from __future__ import annotations

from typing import Any

import numpy as np

from saltus.papers.rank.law.objective import Problem, Quadratic

A = np.asarray([[1, 0.8, 0.8], [0.8, 1, 0.4], [0.8, 0.4, 1]])
R = A @ np.asarray([-0.5, 1, 0.9])
U0, V0 = np.asarray([1, 0.9, 1.1]), np.asarray([0.5, -0.3, 0.2])


def quadratic(matrix: Any = A, r: Any = R, u0: Any = U0, v0: Any = V0) -> Problem:
    """1/2 m'Am - r'm; by default the one in which a coordinate leaves and comes back with the other sign."""
    return Problem(Quadratic(), (np.asarray(matrix, float), np.asarray(r, float)), u0, v0)


def random_quadratic(seed: int, spread: float = 1.0) -> Problem:
    """A random positive definite one."""
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((3, 3)) * spread
    matrix = B @ B.T + 0.3 * np.eye(3)
    u, v = rng.uniform(0.4, 1.5, 3), rng.uniform(-0.35, 0.35, 3)
    return quadratic(matrix, rng.standard_normal(3), u, v)
