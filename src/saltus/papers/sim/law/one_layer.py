"""One linear layer without bias: Theorem 4.1, exact for any start and any test point."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Array, ArrayLike, Float

from saltus._jax import jnp

__all__ = [
    "OneLayer",
    "discrete_jacobian",
    "discrete_output",
    "discrete_rate",
    "jacobian",
    "output",
    "rate",
    "steps_to",
    "time_to",
    "turning_time",
]


class OneLayer(NamedTuple):
    """The output of a one-layer network and its two terms, each [T, d] (eq. 4.2)."""

    growth: Float[Array, "T d"]
    noise: Float[Array, "T d"]
    output: Float[Array, "T d"]


def rate(
    mu: Float[ArrayLike, " s"], sigma: Float[ArrayLike, " s"], d: int | None = None, origin: bool = False
) -> Float[Array, " d"]:
    """The rates a_k = sigma_k^2 + mu_k^2 / clusters, and 0 beyond the s concepts (eq. 4.1, C.13).

    mu [s], sigma [s]: centres and standard deviations; origin: one more cluster at 0.
    """
    mu, sigma = jnp.broadcast_arrays(jnp.asarray(mu, float), jnp.asarray(sigma, float))
    # The main text also prints (sigma^2 + mu^2)/s; C.13 is the second moment of the data.
    a = sigma**2 + mu**2 / (mu.shape[0] + origin)
    return jnp.pad(a, (0, (mu.shape[0] if d is None else d) - mu.shape[0]))


def discrete_rate(a: Float[ArrayLike, " ..."], eta: float) -> Float[Array, " ..."]:
    """The rate per unit of time of gradient descent, -ln(1 - eta a)/eta; a [...], eta: step size.

    Not a number where eta a > 1: the axis then alternates in sign and has no such rate.
    """
    return -jnp.log1p(-eta * jnp.asarray(a)) / eta


def time_to(fraction: Float[ArrayLike, " ..."], a: Float[ArrayLike, " ..."]) -> Float[Array, " ..."]:
    """The time at which the growth term of an axis of rate a reaches a fraction of its end."""
    return -jnp.log1p(-jnp.asarray(fraction)) / jnp.asarray(a)


def steps_to(
    fraction: Float[ArrayLike, " ..."], a: Float[ArrayLike, " ..."], eta: float
) -> Float[Array, " ..."]:
    """The (real) number of steps of gradient descent after which growth reaches a fraction of its end."""
    return time_to(fraction, discrete_rate(a, eta)) / eta


def _rates(a: Float[ArrayLike, " d"], s: int | None) -> Float[Array, " d"]:
    a = jnp.asarray(a, float)
    return a if s is None else jnp.where(jnp.arange(a.shape[0]) < s, a, 0.0)


def _split(
    decay: Float[Array, "T d"],
    W0: Float[ArrayLike, "d d"],
    z: Float[ArrayLike, " d"],
    grown: Float[Array, "T d"],
) -> OneLayer:
    z = jnp.asarray(z, float)
    # The theorem prints this sum up to s, which is exact only for z supported on the first s axes.
    noise = jnp.einsum("ti,ki,i->tk", decay, jnp.asarray(W0, float), z)
    growth = grown * z
    return OneLayer(growth, noise, growth + noise)


def output(
    times: Float[ArrayLike, " T"],
    a: Float[ArrayLike, " d"],
    W0: Float[ArrayLike, "d d"],
    z: Float[ArrayLike, " d"],
    s: int | None = None,
) -> OneLayer:
    """The output at z along gradient flow on the population loss (Theorem 4.1), summed over all axes.

    times [T], a [d] rates, W0 [d, d] start, z [d] test point; s: axes from s on have rate 0 whatever
    a says, which is the theorem's indicator (None: a as given).
    """
    exponent = jnp.asarray(times, float)[:, None] * _rates(a, s)
    return _split(jnp.exp(-exponent), W0, z, -jnp.expm1(-exponent))


def jacobian(
    times: Float[ArrayLike, " T"], a: Float[ArrayLike, " d"], W0: Float[ArrayLike, "d d"]
) -> Float[Array, "T d d"]:
    """W(t) = I + (W(0) - I) exp(-A t) (eq. C.17); times [T], a [d], W0 [d, d]."""
    decay = jnp.exp(-jnp.asarray(times, float)[:, None] * jnp.asarray(a, float))
    start = jnp.asarray(W0, float)
    eye = jnp.eye(start.shape[-1])
    return eye + (start - eye) * decay[:, None, :]


def discrete_output(
    steps: Float[ArrayLike, " T"],
    eta: float,
    a: Float[ArrayLike, " d"],
    W0: Float[ArrayLike, "d d"],
    z: Float[ArrayLike, " d"],
    s: int | None = None,
) -> OneLayer:
    """The output at z after n steps of gradient descent, exact: exp(-a t) becomes (1 - eta a)^n.

    steps [T] whole numbers, eta: step size; the rest as in `output`.
    """
    decay = (1.0 - eta * _rates(a, s)) ** jnp.asarray(steps, float)[:, None]
    return _split(decay, W0, z, 1.0 - decay)


def discrete_jacobian(
    steps: Float[ArrayLike, " T"], eta: float, a: Float[ArrayLike, " d"], W0: Float[ArrayLike, "d d"]
) -> Float[Array, "T d d"]:
    """W after n steps of gradient descent, I + (W(0) - I)(I - eta A)^n; steps [T], a [d], W0 [d, d]."""
    decay = (1.0 - eta * jnp.asarray(a, float)) ** jnp.asarray(steps, float)[:, None]
    start = jnp.asarray(W0, float)
    eye = jnp.eye(start.shape[-1])
    return eye + (start - eye) * decay[:, None, :]


def turning_time(
    a: Float[ArrayLike, " 2"], W0: Float[ArrayLike, "2 2"], z: Float[ArrayLike, " 2"], axis: int
) -> Float[Array, ""]:
    """The only time at which output `axis` can turn when s = 2; not a number when it never does.

    a [2], W0 [2, 2], z [2].  The derivative is a sum of two exponentials, hence has at most one
    zero: one layer without bias cannot go up, down and up again.
    """
    a, z = jnp.asarray(a, float), jnp.asarray(z, float)
    slope = -a * (jnp.asarray(W0, float)[axis] - jnp.eye(2)[axis]) * z
    time = jnp.log(-slope[1] / slope[0]) / (a[1] - a[0])
    return jnp.where(jnp.isfinite(time) & (time > 0), time, jnp.nan)
