"""When each axis is learnt, what is never learnt, and when the recursion leaves the PSD cone: closed forms.

The clock is the paper's.  `a` need not be sorted; axes are ordered by strength inside, and formulas
for one axis involve only the axes stronger than it.  Axes of equal strength have no order of their
own: the formulas then hold for no choice of it.
"""

from __future__ import annotations

from jaxtyping import Array, ArrayLike, Bool, Float, Int

from saltus._jax import jax, jnp

__all__ = [
    "critical_correlation",
    "end_loss",
    "end_point",
    "gaussian_survival",
    "half_time",
    "leaves_cone",
    "linear_phase",
    "rank",
    "schur",
    "tail_exponent",
]


def schur(U0: Float[ArrayLike, "... d w"], a: Float[ArrayLike, " d"]) -> Float[Array, "... d"]:
    """Each axis' Schur complement in W(0) = U U^T with respect to all stronger axes; 0 beyond the rank.

    U0 [..., d, d'], a [d].  sigma_k = det W[stronger and k] / det W[stronger]: the part of u_k
    orthogonal to the rows that are learnt before it, squared.
    """
    U0, a = jnp.asarray(U0, float), jnp.asarray(a, float)
    order = jnp.argsort(-a)
    # From U, not from W: squaring the condition number would lose small complements.
    triangle = jnp.linalg.qr(jnp.swapaxes(U0[..., order, :], -1, -2), mode="r")
    diagonal = jnp.diagonal(triangle, axis1=-2, axis2=-1) ** 2
    missing = a.shape[0] - diagonal.shape[-1]
    padded = jnp.concatenate([diagonal, jnp.zeros((*diagonal.shape[:-1], missing))], axis=-1)
    return padded[..., jnp.argsort(order)]


def half_time(U0: Float[ArrayLike, "... d w"], a: Float[ArrayLike, " d"]) -> Float[Array, "... d"]:
    """The time at which w_kk passes 1/2, ln(1 / sigma_k) / (2 a_k); infinite beyond the rank of U.

    U0 [..., d, d'], a [d].  Leading order for small starts with separate axes; it overestimates a
    little.  An axis with a = 0 is never learnt.
    """
    a = jnp.asarray(a, float)
    return jnp.where(a > 0, -jnp.log(schur(U0, a)) / (2 * jnp.where(a > 0, a, 1.0)), jnp.inf)


def rank(U0: Float[ArrayLike, "... d w"]) -> Int[Array, " ..."]:
    """The numerical rank of U0 [..., d, d']."""
    return jnp.linalg.matrix_rank(jnp.asarray(U0, float))


def end_point(U0: Float[ArrayLike, "... d w"], a: Float[ArrayLike, " d"]) -> Float[Array, "... d d"]:
    """Where the exact flow ends from a generic U0: the projector on its rank's number of strongest axes.

    U0 [..., d, d'], a [d] distinct.  A u (2 - |u|^2) = (u.Au) u has only solutions along axes, and the
    weaker ones are strict saddles.  The block of axes with a = 0 depends on the start when the rank
    exceeds the number of the others, and is then given as not-a-number.
    """
    a = jnp.asarray(a, float)
    q = rank(U0)[..., None]
    place = jnp.argsort(jnp.argsort(-a))
    learnt = jnp.where((place < q) & (a > 0), 1.0, 0.0)
    free = (a == 0) & (q > jnp.sum(a > 0))
    eye = jnp.eye(a.shape[0])
    return jnp.where(free[..., :, None] & free[..., None, :], jnp.nan, learnt[..., None] * eye)


def end_loss(
    U0: Float[ArrayLike, "... d w"], a: Float[ArrayLike, " d"], mu: Float[ArrayLike, " s"]
) -> Float[Array, " ..."]:
    """The loss at the test point at the end of the flow, half the sum of mu^2 over the axes never learnt.

    U0 [..., d, d'], a [d], mu [s].
    """
    mu = jnp.asarray(mu, float)
    learnt = jnp.diagonal(end_point(U0, a), axis1=-2, axis2=-1)[..., : mu.shape[0]]
    return jnp.sum((1 - learnt) * mu**2, axis=-1) / 2


def tail_exponent(a: Float[ArrayLike, " d"], width: int) -> Float[Array, ""]:
    """The rate c in P(T > t) ~ exp(-c t), T: the time until every axis with a > 0 is learnt.

    a [d], width: d'.  sigma_k < x has probability of order x^{(d'-k+1)/2} for the k-th strongest
    axis, hence c = a_1 (d' - s + 1) for the weakest of s.  0 when d' < s: such a network never learns.
    """
    a = jnp.asarray(a, float)
    place = jnp.argsort(jnp.argsort(-a))
    each = a * jnp.maximum(width - place, 0)
    return jnp.min(jnp.where(a > 0, each, jnp.inf))


def gaussian_survival(
    times: Float[ArrayLike, " T"], a: Float[ArrayLike, " d"], width: int, scale: float
) -> Float[Array, "T d"]:
    """P(t_1/2 > t) of each axis for entries of U(0) from N(0, scale^2), under the law of `half_time`.

    times [T], a [d], width: d'.  sigma_k / scale^2 is chi-squared with d' - k + 1 degrees of freedom
    for the k-th strongest axis.  1 for an axis that is never learnt.
    """
    times, a = jnp.asarray(times, float), jnp.asarray(a, float)
    freedom = width - jnp.argsort(jnp.argsort(-a))
    sigma = jnp.exp(-2 * times[:, None] * a)
    chance = jax.scipy.special.gammainc(jnp.maximum(freedom, 1) / 2, sigma / (2 * scale**2))
    return jnp.where((freedom > 0) & (a > 0), chance, 1.0)


def linear_phase(
    W0: Float[ArrayLike, "... d d"], a: Float[ArrayLike, " d"], eta: float
) -> Float[Array, "... d d"]:
    """W(0) with the recursion's own error of the linear phase written into it.

    W0 [..., d, d], a [d], eta: step size of D.2.  Until the strongest axis is learnt, entry (i, j)
    grows by 1 + eta S a step, S = a_i + a_j, where a congruence would give exp(eta S).  The ratio of
    the two at t_1 = ln(1/w_ss) / (2 a_s) multiplies W(0): the missing eta^2 M W M.
    """
    W0, a = jnp.asarray(W0, float), jnp.asarray(a, float)
    strongest = jnp.argmax(a)
    t1 = -jnp.log(W0[..., strongest, strongest]) / (2 * a[strongest])
    total = a[:, None] + a
    return W0 * jnp.exp((jnp.log1p(eta * total) / eta - total) * t1[..., None, None])


def leaves_cone(
    W0: Float[ArrayLike, "... d d"], a: Float[ArrayLike, " d"], eta: float
) -> Bool[Array, " ..."]:
    """Whether the recursion D.2 is predicted to leave the PSD cone (and so to diverge), from W(0) alone.

    W0 [..., d, d], a [d], eta: step size.  The prediction is a negative eigenvalue of `linear_phase`.
    """
    return jnp.linalg.eigvalsh(linear_phase(W0, a, eta))[..., 0] < 0


def critical_correlation(
    eta: float, a_strong: ArrayLike, a_weak: ArrayLike, omega: ArrayLike
) -> Float[Array, " ..."]:
    """The squared correlation w_12^2 / (w_11 w_22) of the start above which D.2 leaves the PSD cone.

    eta: step size, omega: size of the start.  exp(-eta (a_s - a_w)^2 ln(1/omega) / (2 a_s)), to first
    order in eta of `leaves_cone` for two axes.
    """
    strong, weak = jnp.asarray(a_strong), jnp.asarray(a_weak)
    return jnp.exp(eta * (strong - weak) ** 2 * jnp.log(jnp.asarray(omega)) / (2 * strong))
