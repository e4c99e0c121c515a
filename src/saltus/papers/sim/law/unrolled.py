"""One step of either discrete dynamics of W = U U^T, entry by entry, with the runs in the last axis.

For d of two to four axes a batched matrix product costs more in overhead than in arithmetic, so products are
written out. A symmetric W is the tuple of its lower-triangle entries, each (n,), in the order of `pairs`.

Working on W keeps every entry, however small, to its own relative precision; a product U U^T does not, but
keeps a deficient rank exactly.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from saltus._jax import jax, jnp

__all__ = ["at", "factor", "gd", "gd_factor", "gram", "noise", "pack", "pairs", "recursion", "unpack"]

Entries: TypeAlias = tuple[jax.Array, ...]
Rows: TypeAlias = tuple[tuple[jax.Array, ...], ...]


def pairs(d: int) -> list[tuple[int, int]]:
    """Lower triangle (i, j), i >= j, row by row."""
    return [(i, j) for i in range(d) for j in range(i + 1)]


def at(w: Entries, i: int, j: int) -> jax.Array:
    """Entry (i, j) of a packed symmetric matrix."""
    i, j = max(i, j), min(i, j)
    return w[i * (i + 1) // 2 + j]


def size(w: Entries) -> int:
    """d from the number of lower-triangle entries."""
    return int((np.sqrt(8 * len(w) + 1) - 1) / 2)


def pack(W: jax.Array) -> Entries:
    """(n, d, d) to packed entries."""
    return tuple(W[:, i, j] for i, j in pairs(W.shape[1]))


def unpack(w: Entries) -> jax.Array:
    """Packed entries to (n, d, d)."""
    d = size(w)
    return jnp.stack([jnp.stack([at(w, i, j) for j in range(d)], -1) for i in range(d)], -2)


def noise(w: Entries, a: jax.Array) -> Entries:
    """N_ij of eq. D.6: the sum over third axes k of w_ki w_kj (a_i + a_j + 2 a_k)/2."""
    d = size(w)

    def entry(i: int, j: int) -> jax.Array:
        total = jnp.zeros_like(w[0])
        for k in range(d):
            if k not in (i, j):
                total = total + at(w, k, i) * at(w, k, j) * (0.5 * (a[i] + a[j]) + a[k])
        return total

    return tuple(entry(i, j) for i, j in pairs(d))


def recursion(w: Entries, a: jax.Array, eta: jax.Array) -> Entries:
    """The printed recursion on W, eq. D.3."""
    d = size(w)

    def entry(i: int, j: int) -> jax.Array:
        drift = at(w, i, j) * (a[i] + a[j])
        for k in range(d):
            drift = drift - at(w, k, i) * at(w, k, j) * (0.5 * (a[i] + a[j]) + a[k])
        return at(w, i, j) + eta * drift

    return tuple(entry(i, j) for i, j in pairs(d))


def _factor_of_step(w: Entries, a: jax.Array, eta: jax.Array) -> Rows:
    """I - eta M, with M = [(W - I)A + A(W - I)]/2, the gradient of the loss being M U."""
    d = size(w)

    def entry(i: int, j: int) -> jax.Array:
        off = -0.5 * eta * (a[i] + a[j]) * at(w, i, j)
        return 1.0 + eta * a[i] + off if i == j else off

    return tuple(tuple(entry(i, j) for j in range(d)) for i in range(d))


def _sum(terms: list[jax.Array]) -> jax.Array:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def gd(w: Entries, a: jax.Array, eta: jax.Array) -> Entries:
    """Gradient descent on U seen in W: (I - eta M) W (I - eta M)."""
    d, X = size(w), _factor_of_step(w, a, eta)
    Y = [[_sum([X[i][k] * at(w, k, j) for k in range(d)]) for j in range(d)] for i in range(d)]
    return tuple(_sum([Y[i][k] * X[k][j] for k in range(d)]) for i, j in pairs(d))


def gram(U: Rows) -> Entries:
    """W = U U^T, packed."""
    return tuple(_sum([x * y for x, y in zip(U[i], U[j], strict=True)]) for i, j in pairs(len(U)))


def gd_factor(U: Rows, a: jax.Array, eta: jax.Array) -> Rows:
    """Gradient descent on U itself: (I - eta M) U."""
    d, q, X = len(U), len(U[0]), _factor_of_step(gram(U), a, eta)
    return tuple(tuple(_sum([X[i][k] * U[k][c] for k in range(d)]) for c in range(q)) for i in range(d))


def factor(W: np.ndarray, rank_tol: float = 1e-14) -> np.ndarray:
    """U with W = U U^T by Cholesky, the pivots below `rank_tol` of their diagonal taken as exactly zero.

    - `W`: (n, d, d), positive semidefinite. Starts from the last, strongest axis.
    """
    n, d, _ = W.shape
    scale = np.sqrt(np.maximum(np.diagonal(W, axis1=1, axis2=2), np.finfo(float).tiny))
    left = W / scale[:, :, None] / scale[:, None, :]
    U = np.zeros((n, d, d))
    for k in range(d - 1, -1, -1):
        pivot = left[:, k, k]
        column = np.where(
            pivot[:, None] > rank_tol, left[:, :, k] / np.sqrt(np.maximum(pivot, rank_tol))[:, None], 0.0
        )
        U[:, :, k] = column
        left = left - column[:, :, None] * column[:, None, :]
    return U * scale[:, :, None]
