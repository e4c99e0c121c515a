"""Small symmetric products written out entry by entry, so that the runs of an ensemble fill the vector lanes.

U is a tuple of its d rows, each an array [d', B] over the B runs or a tuple of d' arrays [B]; a symmetric
W is a tuple of rows of entries, each an array [B]. Nothing here is a matrix product to the compiler:
every line multiplies and adds over the run axis, which comes last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from saltus._jax import jax, jnp

__all__ = [
    "eigenvalues",
    "gram",
    "loss_at",
    "positive",
    "pull",
    "rates",
    "smallest_eigenvalue",
    "symmetric",
    "training_loss",
    "upper",
]

Matrix = tuple[tuple[Any, ...], ...]  # rows of entries, each an array [B] or a number
Rows = tuple[Any, ...]  # d arrays [d', B], or d tuples of d' arrays [B]
JACOBI_SWEEPS = 6  # off-diagonals shrink quadratically: 1e-16 after 5 sweeps for d <= 6


def symmetric(d: int, entry: Callable[[int, int], Any]) -> Matrix:
    """The symmetric matrix with `entry(i, j)`, i <= j, in both places."""
    known = {(i, j): entry(i, j) for i in range(d) for j in range(i, d)}
    return tuple(tuple(known[min(i, j), max(i, j)] for j in range(d)) for i in range(d))


def upper(w: Matrix) -> tuple[Any, ...]:
    """Entries on and above the diagonal, row by row: d(d+1)/2 arrays."""
    return tuple(w[i][j] for i in range(len(w)) for j in range(i, len(w)))


def _dot(one: Sequence[Any], other: Sequence[Any]) -> Any:
    total = one[0] * other[0]
    for p, q in zip(one[1:], other[1:], strict=True):
        total = total + p * q
    return total


def gram(u: Rows) -> Matrix:
    """W = U U^T."""
    if isinstance(u[0], tuple):
        return symmetric(len(u), lambda i, j: _dot(u[i], u[j]))
    # The sum is a reduction on purpose: on a host the compiler computes a reduction once and keeps it,
    # where it would work out a written-out sum anew in each of the many places that use it.
    return symmetric(len(u), lambda i, j: jnp.sum(u[i] * u[j], axis=0))


def rates(a: Sequence[Any], factor: Any = 1.0) -> Matrix:
    """factor (a_i + a_j) / 2: what turns W - I into the pull M of eq. D.2."""
    return symmetric(len(a), lambda i, j: factor * a[i] if i == j else factor * 0.5 * (a[i] + a[j]))


def pull(w: Matrix, rate: Matrix) -> Matrix:
    """M = 1/2 [(W - I) A + A (W - I)], with `rate` from `rates`; dU/dt = -M U in the paper's clock."""
    return symmetric(len(w), lambda i, j: rate[i][j] * (w[i][j] - 1 if i == j else w[i][j]))


def loss_at(w: Matrix, z: Sequence[Any]) -> Any:
    """1/2 |W z - z|^2; z: d entries."""
    misses = [_dot(row, z) - z[i] for i, row in enumerate(w)]
    return 0.5 * _dot(misses, misses)


def training_loss(w: Matrix, rate: Matrix) -> Any:
    """The population loss 1/2 tr((W - I) A (W - I)^T) (eq. 4.1), with `rate` from `rates`."""
    d = len(w)
    half = [0.5 * rate[i][i] * (w[i][i] - 1) * (w[i][i] - 1) for i in range(d)]
    off = [rate[i][j] * w[i][j] * w[i][j] for i in range(d) for j in range(i + 1, d)]
    return sum(half[1:] + off, half[0])


def positive(w: Matrix, slack: float = 0.0) -> Any:
    """Whether W + slack I is positive definite: every pivot of its elimination is positive."""
    d = len(w)
    rest = [[w[i][j] + slack if i == j else w[i][j] for j in range(d)] for i in range(d)]
    holds = rest[0][0] > 0
    for k in range(d - 1):
        inverse = 1 / rest[k][k]
        for i in range(k + 1, d):
            for j in range(i, d):
                rest[i][j] = rest[i][j] - rest[k][i] * rest[k][j] * inverse
        holds = holds & (rest[k + 1][k + 1] > 0)
    return holds


def eigenvalues(w: Matrix) -> tuple[Any, ...]:
    """All d eigenvalues, unordered, by cyclic Jacobi rotations: elementwise, accurate to rounding."""
    d = len(w)
    index = [(i, j) for i in range(d) for j in range(i, d)]

    def sweep(_: Any, flat: tuple[Any, ...]) -> tuple[Any, ...]:
        m = dict(zip(index, flat, strict=True))

        def get(i: int, j: int) -> Any:
            return m[min(i, j), max(i, j)]

        for p in range(d):
            for q in range(p + 1, d):
                off = m[p, q]
                gap = m[q, q] - m[p, p]
                # tan of the rotation that clears (p, q); the smaller root, and 0 where it is clear
                root = jnp.abs(gap) + jnp.sqrt(gap * gap + 4 * off * off)
                t = jnp.where(off == 0, 0.0, 2 * off / jnp.where(root == 0, 1.0, root))
                t = jnp.where(gap < 0, -t, t)
                c = 1 / jnp.sqrt(1 + t * t)
                s = t * c
                m[p, p], m[q, q] = m[p, p] - t * off, m[q, q] + t * off
                m[p, q] = jnp.zeros_like(off)
                for k in range(d):
                    if k not in (p, q):
                        first, second = get(k, p), get(k, q)
                        m[min(k, p), max(k, p)] = c * first - s * second
                        m[min(k, q), max(k, q)] = s * first + c * second
        return tuple(m[key] for key in index)

    if d == 1:
        return (w[0][0],)
    flat = jax.lax.fori_loop(0, JACOBI_SWEEPS, sweep, upper(w))
    return tuple(value for (i, j), value in zip(index, flat, strict=True) if i == j)


def smallest_eigenvalue(w: Matrix) -> Any:
    """The smallest eigenvalue of each run's W."""
    values = eigenvalues(w)
    least = values[0]
    for value in values[1:]:
        least = jnp.minimum(least, value)
    return least


def side(entries: int) -> int:
    """d, from the number of entries d(d+1)/2."""
    return (math.isqrt(8 * entries + 1) - 1) // 2


def unflatten(flat: Sequence[Any]) -> Matrix:
    """The symmetric matrix whose `upper` entries these are."""
    d = side(len(flat))
    index = {key: n for n, key in enumerate((i, j) for i in range(d) for j in range(i, d))}
    return symmetric(d, lambda i, j: flat[index[i, j]])
