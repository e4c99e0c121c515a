"""Stable ranks of products of Gaussian factors, by free probability: what "low rank" is to be compared with.

With A, B [d, r] of independent entries, r/d fixed and d large, the largest singular value of A B' over its
mean square has a closed form; finite matrices lie a few per cent above it.
"""

from __future__ import annotations

import math

from saltus.core.errors import BadInput

__all__ = ["gained", "product", "whole"]


def _edge(c: float) -> float:
    """The largest eigenvalue of (A B')'(A B') over d^2 times its entries' variances, for r = c d."""
    z = (-c + math.sqrt(c * c + 8 * c)) / (4 * c)
    return (1 + z) * (1 + c * z) ** 2 / z


def product(d: int, r: int) -> float:
    """||A B'||_F^2 / ||A B'||_2^2 for factors [d, r] of independent entries."""
    _check(d, r)
    return r / _edge(r / d)


def gained(d: int, r: int) -> float:
    """The same of (A + E)(B + F)' - A B' for small E, F of independent entries, E over A as large as F over B.

    To first order it is [E, A][B, F]', a product of factors [d, 2r] whose halves are scaled inversely.
    """
    _check(d, r)
    return 2 * r / _edge(2 * r / d)


def whole(d: int) -> float:
    """The same of one [d, d] matrix of independent entries: d / 4."""
    return d / 4


def _check(d: int, r: int) -> None:
    if d < 1 or r < 1:
        raise BadInput(f"factors need sizes of 1 or more, not {d} and {r}")
