"""The symmetric two-layer linear model f(x) = U U^T x: velocity of W = U U^T, its terms, steps and flow.

The clock is the paper's: dW/dt = V(W) (eq. 4.3).  Exact gradient flow of U on the loss 4.1 gives
dW/dt = 2 V(W), so here dU/dt = -M U with M = 1/2 [(W-I)A + A(W-I)], half the gradient.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import diffrax
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput

__all__ = [
    "IRRELEVANT",
    "MAJOR",
    "MINOR",
    "Entries",
    "Split",
    "entries",
    "flow",
    "gd_step",
    "gram",
    "logistic",
    "loss_at",
    "output",
    "recursion_step",
    "split",
    "times_to",
    "training_loss",
    "velocity",
]

IRRELEVANT, MAJOR, MINOR = 0, 1, 2


class Split(NamedTuple):
    """The three terms of the velocity, V = growth - suppression - noise, each [..., d, d] (eq. 4.3)."""

    growth: Float[Array, "... d d"]
    suppression: Float[Array, "... d d"]
    noise: Float[Array, "... d d"]


class Entries(NamedTuple):
    """What each entry of W is: kind [d, d] and, for a minor one, its groups [d, d, s] (Fig. 4)."""

    kind: Int[np.ndarray, "d d"]
    group: Bool[np.ndarray, "d d s"]


def entries(d: int, s: int) -> Entries:
    """Major (first s of the diagonal), minor (off it, in the first s rows or columns) or irrelevant.

    d: dimension, s: concepts.  A minor entry belongs to the group of its row and to that of its
    column, as far as these are among the first s: to two groups or to one.
    """
    row, column = np.indices((d, d))
    on, near = row == column, (row < s) | (column < s)
    kind = np.where(near, np.where(on, MAJOR, MINOR), IRRELEVANT)
    axes = np.arange(s)
    group = (kind == MINOR)[..., None] & ((row[..., None] == axes) | (column[..., None] == axes))
    return Entries(kind, group)


def gram(U: Float[ArrayLike, "... d w"]) -> Float[Array, "... d d"]:
    """W = U U^T; U [..., d, d']."""
    U = jnp.asarray(U)
    return U @ jnp.swapaxes(U, -1, -2)


def velocity(W: Float[ArrayLike, "... d d"], a: Float[ArrayLike, " d"]) -> Float[Array, "... d d"]:
    """V(W) = W A + A W - 1/2 (A W^2 + W^2 A + 2 W A W) (eq. D.2); W [..., d, d] symmetric, a [d]."""
    W, a = jnp.asarray(W), jnp.asarray(a)
    rates, square = a[:, None] + a, W @ W
    return rates * (W - square / 2) - (W * a) @ W


def split(W: Float[ArrayLike, "... d d"], a: Float[ArrayLike, " d"]) -> Split:
    """Growth, suppression and noise of every entry (eq. 4.3); W [..., d, d] symmetric, a [d]."""
    W, a = jnp.asarray(W), jnp.asarray(a)
    rates = a[:, None] + a
    diagonal = jnp.diagonal(W, axis1=-2, axis2=-1)
    eye = jnp.eye(a.shape[0], dtype=W.dtype)
    # share[i, j] = w_ii (3 a_i + a_j): what axis i takes from entry (i, j).
    share = diagonal[..., :, None] * (2 * a[:, None] + rates)
    suppression = W / 2 * (share + (1 - eye) * jnp.swapaxes(share, -1, -2))
    # The sum of D.6 leaves out k = i and k = j, so it is formed from W without its diagonal, except
    # that on the diagonal of the result the left-out term is w_ii^2, already absent.
    off = W * (1 - eye)
    noise = rates * (off @ off) / 2 + (off * a) @ off
    return Split(W * rates, suppression, noise)


def output(W: Float[ArrayLike, "... d d"], z: Float[ArrayLike, " d"]) -> Float[Array, "... d"]:
    """f(z) = W z; W [..., d, d], z [d]."""
    return jnp.asarray(W) @ jnp.asarray(z)


def loss_at(W: Float[ArrayLike, "... d d"], z: Float[ArrayLike, " d"]) -> Float[Array, " ..."]:
    """Half the squared error at one point, 1/2 |W z - z|^2; W [..., d, d], z [d]."""
    return jnp.sum((output(W, z) - jnp.asarray(z)) ** 2, axis=-1) / 2


def training_loss(W: Float[ArrayLike, "... d d"], a: Float[ArrayLike, " d"]) -> Float[Array, " ..."]:
    """The population loss 1/2 tr((W-I) A (W-I)^T) (eq. 4.1); W [..., d, d], a [d]."""
    a = jnp.asarray(a)
    return jnp.sum((jnp.asarray(W) - jnp.eye(a.shape[0])) ** 2 * a, axis=(-2, -1)) / 2


def recursion_step(
    W: Float[ArrayLike, "... d d"], a: Float[ArrayLike, " d"], eta: float
) -> Float[Array, "... d d"]:
    """One step of the printed recursion, W + eta V(W) (eq. D.2); it can leave the cone of PSD matrices."""
    return jnp.asarray(W) + eta * velocity(W, a)


def _pull(U: Float[Array, "... d w"], a: Float[Array, " d"]) -> Float[Array, "... d w"]:
    W = gram(U)
    return a[:, None] * U - (W @ (a[:, None] * U) + a[:, None] * (W @ U)) / 2


def gd_step(U: Float[ArrayLike, "... d w"], a: Float[ArrayLike, " d"], eta: float) -> Float[Array, "... d w"]:
    """One step of gradient descent on U in the paper's clock, U - eta M U; W stays PSD.

    U [..., d, d'], a [d].  It is a step of eta/2 on the loss 4.1.
    """
    U = jnp.asarray(U)
    return U + eta * _pull(U, jnp.asarray(a, U.dtype))


def times_to(
    horizon: float, count: int, spacing: str = "linear", first: float | None = None
) -> Float[Array, " T"]:
    """Times from 0 to horizon: `linear`, or 0 and then `log`-spaced from `first` (default horizon/1000)."""
    if spacing == "linear":
        return jnp.linspace(0.0, horizon, count)
    if spacing != "log":
        raise BadInput(f"spacing is 'linear' or 'log', not {spacing!r}")
    return jnp.concatenate([jnp.zeros(1), jnp.geomspace(first or horizon / 1000, horizon, count - 1)])


@partial(jax.jit, static_argnames=("rtol", "atol"))
def _solve(
    U0: Float[Array, "n d w"], a: Float[Array, " d"], times: Float[Array, " T"], rtol: float, atol: float
) -> Float[Array, "n T d w"]:
    def one(U: Float[Array, "d w"]) -> Float[Array, "T d w"]:
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, U, a: _pull(U, a)),
            # Of order 5: an order-8 solver takes longer steps than its own interpolant can follow.
            diffrax.Tsit5(),
            t0=0.0,
            t1=times[-1],
            dt0=None,
            y0=U,
            args=a,
            saveat=diffrax.SaveAt(ts=times),
            stepsize_controller=diffrax.PIDController(rtol=rtol, atol=atol),
            max_steps=None,
            # A solver that gives up leaves non-finite values, which are recorded, not raised.
            throw=False,
        )
        assert solution.ys is not None
        return solution.ys

    return jax.vmap(one)(U0)


def flow(
    U0: Float[ArrayLike, "... d w"],
    a: Float[ArrayLike, " d"],
    times: Float[ArrayLike, " T"],
    rtol: float = 1e-10,
    atol: float = 1e-12,
) -> Float[Array, "... T d w"]:
    """U(t) along the exact flow dU/dt = -M U, by an adaptive solver of order 5.

    U0 [..., d, d'] starts, a [d], times [T] ascending from 0 on.  U is stepped, never W: a
    rank-deficient W loses its rank to rounding and then learns what it should not.  For starts far
    below 1, atol must be far below the start.
    """
    U0 = jnp.asarray(U0, float)
    flat = U0.reshape(-1, *U0.shape[-2:])
    path = _solve(flat, jnp.asarray(a, float), jnp.asarray(times, float), rtol, atol)
    return path.reshape(*U0.shape[:-2], *path.shape[1:])


def logistic(
    times: Float[ArrayLike, " ..."], w0: Float[ArrayLike, " ..."], a: Float[ArrayLike, " ..."]
) -> Float[Array, " ..."]:
    """A single axis, or any axis of a diagonal start: w0 e^{2at} / (1 - w0 + w0 e^{2at}), broadcast.

    times, w0 > 0 and a [...].
    """
    w0 = jnp.asarray(w0, float)
    return w0 / (w0 + (1 - w0) * jnp.exp(-2 * jnp.asarray(a) * jnp.asarray(times)))
