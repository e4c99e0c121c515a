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
# The classical method: how far ahead the next slope is taken (the last goes unused), and each one's share.
AHEAD, SHARE = (1 / 2, 1 / 2, 1.0, 0.0), (1 / 6, 1 / 3, 1 / 3, 1 / 6)


def _add(start: Rows, factor: Any, change: Rows) -> Rows:
    return jax.tree.map(lambda x, y: x + factor * y, start, change)


def _times(m: Matrix, u: Rows) -> Rows:
    """M U."""
    rows = []
    for entries in m:
        row = jax.tree.map(lambda x, m=entries[0]: m * x, u[0])
        for entry, other in zip(entries[1:], u[1:], strict=True):
            row = _add(row, entry, other)
        rows.append(row)
    return tuple(rows)


def gd(a: Sequence[Any], eta: Any) -> Step:
    """Gradient descent on U, U <- U - eta M U: the exact step that eq. D.2 approximates."""
    scaled = rates(a, eta)
    return lambda u: _add(u, -1, _times(pull(gram(u), scaled), u))


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

    def stage(u: Rows, carry: tuple[Rows, Rows], ahead: Any, share: Any) -> tuple[Rows, Rows]:
        at, total = carry
        slope = _times(pull(gram(at), scaled), at)
        return _add(u, -ahead, slope), _add(total, -share, slope)

    def step(u: Rows) -> Rows:
        if isinstance(u[0], tuple):
            carry = u, u
            for ahead, share in zip(AHEAD, SHARE, strict=True):
                carry = stage(u, carry, ahead, share)
            return carry[1]
        # A loop over the four stages, not four stages written out: on a host, in one long expression,
        # the compiler works out the first stages again for every entry of the last.
        table = jnp.asarray([AHEAD, SHARE], u[0].dtype)
        return jax.lax.fori_loop(0, 4, lambda n, carry: stage(u, carry, table[0, n], table[1, n]), (u, u))[1]

    return step


HOW: dict[str, Callable[[Sequence[Any], Any], Step]] = {"gd": gd, "recursion": recursion, "flow": rk4}
