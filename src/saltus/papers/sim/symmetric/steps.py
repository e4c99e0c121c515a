"""How the symmetric two-layer linear model moves: gradient descent on U, the recursion on W, the flow of U.

All in the paper's clock, dU/dt = -M U and dW/dt = V(W). Each takes the diagonal a of A (d numbers or
arrays [B]) and the step size, and gives the function from one state (U, or W) to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from saltus._jax import jax, jnp
from saltus.papers.sim.symmetric.algebra import Matrix, Rows, gram, pull, rates, symmetric

__all__ = ["HOW", "gd", "recursion", "rk4"]

Step = Callable[[Any], Any]


def _minus(start: Rows, m: Matrix, u: Rows) -> Rows:
    """start - M U."""
    rows = []
    for i, row in enumerate(start):
        for j, other in enumerate(u):
            row = row - m[i][j] * other
        rows.append(row)
    return tuple(rows)


def gd(a: Sequence[Any], eta: Any) -> Step:
    """Gradient descent on U, U <- U - eta M U: the exact step that eq. D.2 approximates."""
    scaled = rates(a, eta)
    return lambda u: _minus(u, pull(gram(u), scaled), u)


def recursion(a: Sequence[Any], eta: Any) -> Step:
    """The paper's recursion W <- W + eta V(W) (eq. D.2), with V = -(M W + W M)."""
    scaled = rates(a, eta)

    def step(w: Matrix) -> Matrix:
        m = pull(w, scaled)

        def entry(i: int, j: int) -> Any:
            value = w[i][j]
            for k in range(len(w)):
                value = value - m[i][k] * w[k][j]
            for k in range(len(w)):
                value = value - w[i][k] * m[k][j]
            return value

        return symmetric(len(w), entry)

    return step


def rk4(a: Sequence[Any], eta: Any) -> Step:
    """The exact flow dU/dt = -M U by the classical method of order 4 with time step eta."""
    scaled = rates(a, eta)

    def step(u: Rows) -> Rows:
        # A loop over the four stages, not four stages written out: in one long expression the compiler
        # works out the first stages again for every entry of the last.
        def stage(n: Any, carry: tuple[Rows, Rows]) -> tuple[Rows, Rows]:
            at, total = carry
            slope = _minus(tuple(jnp.zeros_like(row) for row in u), pull(gram(at), scaled), at)
            ahead = jnp.where(n < 2, 0.5, 1.0).astype(u[0].dtype)
            share = jnp.where((n == 1) | (n == 2), 1 / 3, 1 / 6).astype(u[0].dtype)
            following = tuple(row + ahead * change for row, change in zip(u, slope, strict=True))
            return following, tuple(row + share * change for row, change in zip(total, slope, strict=True))

        return jax.lax.fori_loop(0, 4, stage, (u, u))[1]

    return step


HOW: dict[str, Callable[[Sequence[Any], Any], Step]] = {"gd": gd, "recursion": recursion, "flow": rk4}
