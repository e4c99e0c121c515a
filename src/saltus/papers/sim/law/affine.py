"""One linear layer with biases: the rates are the eigenvalues of the second moment of (x, 1).

Theorem 4.1 does not apply here.  Without a cluster at the origin the training points lie near the
hyperplane sum_p y_p / mu_p = 1, which makes one eigenvalue of order sigma^2: an affine model need
not generalise in any practical time.
"""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Array, ArrayLike, Float

from saltus._jax import jnp
from saltus.papers.sim.law import one_layer

__all__ = ["Affine", "discrete_output", "discrete_parameters", "moment", "output", "parameters", "rates"]


class Affine(NamedTuple):
    """The map x -> W x + b at T times."""

    W: Float[Array, "T d d"]
    b: Float[Array, "T d"]


def moment(
    mu: Float[ArrayLike, " s"], sigma: Float[ArrayLike, " s"], d: int | None = None, origin: bool = False
) -> Float[Array, "d+1 d+1"]:
    """The population second moment of (x, 1).

    mu [s], sigma [s]: centres and standard deviations; d: dimension of x (default s); origin: one
    more cluster at 0.
    """
    a = one_layer.rate(mu, sigma, d, origin)
    mu = jnp.asarray(mu, float)
    mean = jnp.pad(mu / (mu.shape[0] + origin), (0, a.shape[0] - mu.shape[0]))
    return jnp.block([[jnp.diag(a), mean[:, None]], [mean[None, :], jnp.ones((1, 1))]])


def rates(M: Float[ArrayLike, "n n"]) -> Float[Array, " n"]:
    """The rates of learning, ascending: the eigenvalues of the augmented second moment M [d+1, d+1]."""
    return jnp.linalg.eigvalsh(jnp.asarray(M, float))


def _augment(W0: Float[ArrayLike, "d d"], b0: Float[ArrayLike, " d"]) -> tuple[Array, Array]:
    W0, b0 = jnp.asarray(W0, float), jnp.asarray(b0, float)
    target = jnp.concatenate([jnp.eye(W0.shape[0]), jnp.zeros((W0.shape[0], 1))], axis=1)
    return jnp.concatenate([W0, b0[:, None]], axis=1), target


def _decay(exponents: Float[Array, "T n"], vectors: Float[Array, "n n"]) -> Float[Array, "T n n"]:
    return jnp.einsum("in,tn,jn->tij", vectors, exponents, vectors)


def _flow(times: Float[ArrayLike, " T"], M: Float[ArrayLike, "n n"]) -> Float[Array, "T n n"]:
    values, vectors = jnp.linalg.eigh(jnp.asarray(M, float))
    return _decay(jnp.exp(-jnp.asarray(times, float)[:, None] * values), vectors)


def _descent(steps: Float[ArrayLike, " T"], eta: float, M: Float[ArrayLike, "n n"]) -> Float[Array, "T n n"]:
    values, vectors = jnp.linalg.eigh(jnp.asarray(M, float))
    return _decay((1.0 - eta * values) ** jnp.asarray(steps, float)[:, None], vectors)


def _parameters(
    decay: Float[Array, "T n n"], W0: Float[ArrayLike, "d d"], b0: Float[ArrayLike, " d"]
) -> Affine:
    start, target = _augment(W0, b0)
    now = target + (start - target) @ decay
    return Affine(now[..., :-1], now[..., -1])


def _output(
    decay: Float[Array, "T n n"],
    W0: Float[ArrayLike, "d d"],
    b0: Float[ArrayLike, " d"],
    z: Float[ArrayLike, " d"],
) -> one_layer.OneLayer:
    start, target = _augment(W0, b0)
    point = jnp.append(jnp.asarray(z, float), 1.0)
    faded = decay @ point
    growth, noise = (point - faded) @ target.T, faded @ start.T
    return one_layer.OneLayer(growth, noise, growth + noise)


def parameters(
    times: Float[ArrayLike, " T"],
    M: Float[ArrayLike, "n n"],
    W0: Float[ArrayLike, "d d"],
    b0: Float[ArrayLike, " d"],
) -> Affine:
    """W(t) and b(t) along gradient flow: [W|b] = [I|0] + ([W|b](0) - [I|0]) exp(-M t).

    times [T], M [d+1, d+1] from `moment`, W0 [d, d], b0 [d].
    """
    return _parameters(_flow(times, M), W0, b0)


def discrete_parameters(
    steps: Float[ArrayLike, " T"],
    eta: float,
    M: Float[ArrayLike, "n n"],
    W0: Float[ArrayLike, "d d"],
    b0: Float[ArrayLike, " d"],
) -> Affine:
    """W and b after n steps of gradient descent of size eta, exact: exp(-M t) becomes (I - eta M)^n."""
    return _parameters(_descent(steps, eta, M), W0, b0)


def output(
    times: Float[ArrayLike, " T"],
    M: Float[ArrayLike, "n n"],
    W0: Float[ArrayLike, "d d"],
    b0: Float[ArrayLike, " d"],
    z: Float[ArrayLike, " d"],
) -> one_layer.OneLayer:
    """The output at z along gradient flow, split into growth and what is left of the start.

    times [T], M [d+1, d+1] from `moment`, W0 [d, d], b0 [d], z [d].
    """
    return _output(_flow(times, M), W0, b0, z)


def discrete_output(
    steps: Float[ArrayLike, " T"],
    eta: float,
    M: Float[ArrayLike, "n n"],
    W0: Float[ArrayLike, "d d"],
    b0: Float[ArrayLike, " d"],
    z: Float[ArrayLike, " d"],
) -> one_layer.OneLayer:
    """The output at z after n steps of gradient descent of size eta, exact; the rest as in `output`."""
    return _output(_descent(steps, eta, M), W0, b0, z)
