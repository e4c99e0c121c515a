"""The paper's toy: Gaussian tokens, and a random attention head with diagonal weights as teacher (App. A)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput
from saltus.papers.rank import model
from saltus.papers.rank.law.objective import Problem

__all__ = ["Toy", "normals"]

PIECE = 4096
_quantile = jax.jit(jax.scipy.special.ndtri)


def normals(seed: int, shape: tuple[int, ...]) -> Any:
    """Standard normal numbers that any language can make again: splitmix64, then the normal quantile.

    Number j = 1, 2, ... of a seed is made from (seed 2^40 + j) times 0x9E3779B97F4A7C15, modulo 2^64.
    """
    count = int(np.prod(shape))
    with np.errstate(over="ignore"):
        z = np.uint64((seed << 40) % 2**64) + np.arange(1, count + 1, dtype=np.uint64)
        z *= np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    uniform = ((z >> np.uint64(11)).astype(float) + 0.5) / 2.0**53
    # In pieces of one size: one program serves all shapes.
    pieces = np.pad(uniform, (0, -count % PIECE), constant_values=0.5).reshape(-1, PIECE)
    return np.concatenate([np.asarray(_quantile(piece)) for piece in pieces])[:count].reshape(shape)


@dataclass(frozen=True)
class Toy:
    """Data of a teacher head, and a start for the student.

    **Arguments:** `tokens` n, `dim` d, `samples` N of X in R^{n x d}; `run` numbers the draw: X comes from
    seed 3 run + 1, the teacher from 3 run + 2, the start from 3 run + 3; `sharp`: whether the teacher's
    logits are left as they come (standard deviation sqrt(d)) or divided by sqrt(d).
    """

    dim: int = 8
    tokens: int = 6
    samples: int = 200
    run: int = 0
    sharp: bool = False

    def __post_init__(self) -> None:
        if min(self.dim, self.tokens, self.samples) < 1 or self.run < 0:
            raise BadInput("a toy needs dim, tokens and samples of 1 or more and a run of 0 or more")

    def inputs(self) -> Any:
        """X [N, n, d]."""
        return normals(3 * self.run + 1, (self.samples, self.tokens, self.dim))

    def teacher(self) -> Any:
        """m* = [a*, c*] [2d]: a* = w_K w_Q, c* = w_V w_O."""
        k, q, v, o = normals(3 * self.run + 2, (4, self.dim))
        return np.concatenate([k * q * (1.0 if self.sharp else self.dim**-0.5), v * o])

    def start(self) -> tuple[Any, Any]:
        """u0, v0 [2d] with u0 > |v0|: signs and order are free, as only u * v and u + v matter (App. C.3)."""
        u, v = normals(3 * self.run + 3, (2, 2 * self.dim))
        u, v = np.where(abs(u) < abs(v), (v, u), (u, v))
        return abs(u), np.sign(u) * v

    def problem(self) -> Problem:
        """The student: one head, half the squared error over samples and tokens."""
        X = jnp.asarray(self.inputs())
        Y = jax.jit(jax.vmap(model.head, (0, None)))(X, jnp.asarray(self.teacher()))
        return Problem(model.HeadLoss(), model.head_data(X, Y), *self.start())
