"""How large the region admitted by assumptions D.1-D.5 is: the largest start, the closest signals, the share.

The closed form and a search over a grid of constants that only evaluates the inequalities as written stand
side by side, so that one checks the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from jaxtyping import ArrayLike, Bool, Float, Int
from numpy import ndarray as Array

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput
from saltus.papers.sim.law.inequalities import (
    JUST_ABOVE,
    K_MIN,
    KAPPA_MIN,
    LN10,
    ln_omega_limit,
    pair_gap,
)

__all__ = [
    "best_ratio",
    "geometric",
    "is_admissible",
    "log10_omega_max",
    "log10_omega_search",
    "random_starts",
    "ratio_infimum",
    "share_admissible",
    "share_psd",
    "table",
    "worst_margin",
]

RATIOS = (3.01, 3.1, 4.0, 5.0, 10.0, 20.0, 100.0)


def geometric(s: int, ratio: float) -> Float[Array, " s"]:
    """Signal strengths 1, R, R^2, ... on `s` axes, the strongest last."""
    return float(ratio) ** np.arange(s)


def _alpha(a: Float[Array, " d"], K: float, kappa: float) -> float:
    """The alpha of least cost: min a, or less where a_i - 3a_j >= alpha/C asks it; C <= K/(2(kappa-1))."""
    return min(float(np.min(a)), pair_gap(a)[1] * 0.5 * K / (kappa - 1.0))


def log10_omega_max(
    a: Float[ArrayLike, " d"],
    beta: Float[ArrayLike, "*n"] = JUST_ABOVE,
    *,
    K: float = K_MIN,
    kappa: float = KAPPA_MIN * JUST_ABOVE,
) -> Float[Array, "*n"]:
    """log10 of the largest omega that assumptions D.1-D.5 admit (closed form); -inf where none is.

    - `a`: signal strengths, larger index stronger; `beta`: max|W0|/min|W0|, may be an array.
    """
    a = np.asarray(a, float)
    if np.min(a) <= 0 or pair_gap(a)[1] <= 0:
        return np.full(np.shape(beta), -np.inf)
    gamma = max(float(np.max(a)) / _alpha(a, K, kappa), JUST_ABOVE)
    beta = np.maximum(np.asarray(beta, float), JUST_ABOVE)
    return ln_omega_limit(pair_gap(a)[0], len(a), gamma, beta, K, kappa) / LN10


def worst_margin(
    a: Float[Array, " d"],
    ln_omega: float,
    beta: float,
    K: Float[Array, "*n"],
    kappa: Float[Array, "*n"],
    C: Float[Array, "*n"],
    alpha: Float[Array, "*n"],
    ln_P: Float[Array, "*n"],
) -> Float[Array, "*n"]:
    """The smallest margin of D.3, D.4 and D.5 exactly as printed, over arrays of constants that broadcast."""
    d, ln_b = len(a), math.log(beta)
    gamma = np.max(a) / alpha
    ln_PB = ln_P + ln_b + ln_omega
    least = np.minimum(kappa - 1.0, 1.0 - kappa**-0.5)
    d9 = np.minimum(np.log(least / (K * gamma * d * beta**2)) - ln_P, -0.5 * math.log(2.0 * beta)) - ln_omega
    worst = np.minimum(math.log(0.4) - ln_PB, np.minimum(d9, ln_P - math.log(2.0)))
    worst = np.minimum(worst, 1.0 + 0.5 * K / C - kappa)
    denominator = -10.0 * kappa**2 * ln_PB + ln_P + ln_b
    for i in range(d):
        for j in range(i):
            # D.10 with its denominator, positive wherever D.3 holds, multiplied out.
            worst = np.minimum(worst, ln_P - denominator * (a[i] + a[j]) / (2.0 * a[i]))
            worst = np.minimum(worst, a[i] - 3.0 * a[j] - alpha / C)
    return worst


def log10_omega_search(
    a: Float[ArrayLike, " d"],
    beta: float = JUST_ABOVE,
    *,
    K: Sequence[float] = (K_MIN, 25.0, 50.0, 200.0),
    kappa: Sequence[float] = (KAPPA_MIN * JUST_ABOVE, 1.105, 1.12, 1.2, 1.5, 3.0),
    C: Sequence[float] = (1.001, 2.0, 10.0, 50.0, 99.9999),
    decades: float = 160.0,
    tolerance: float = 1e-3,
) -> float:
    """The same by brute force: the printed inequalities on a grid of constants, with no algebra done on them.

    - `a`: signal strengths; `beta`: of the start; `K`, `kappa`, `C`: values tried, with alpha up to min a;
      `decades`: how far down omega is looked for; `tolerance`: of the answer, in decades.
    """
    a = np.asarray(a, float)
    grid = np.meshgrid(K, kappa, C, np.min(a) * np.geomspace(0.01, 1.0, 9), indexing="ij")
    K_, kappa_, C_, alpha_ = (g.reshape(-1, 1) for g in grid)

    def admits(ln_omega: float) -> bool:
        # The best ln P of every combination by three zooms of a 101-point grid.
        low, high = np.zeros_like(K_), np.full_like(K_, -ln_omega)
        for _ in range(4):
            ln_P = low + (high - low) * np.linspace(0.0, 1.0, 101)
            worst = worst_margin(a, ln_omega, beta, K_, kappa_, C_, alpha_, ln_P)
            if np.any(worst >= 0.0):
                return True
            best = np.take_along_axis(ln_P, np.argmax(worst, axis=1)[:, None], axis=1)
            width = (high - low) / 50.0
            low, high = best - width, best + width
        return False

    low, high = -decades, 0.0
    if not admits(low * LN10):
        return -math.inf
    while high - low > tolerance:
        mid = 0.5 * (low + high)
        low, high = (mid, high) if admits(mid * LN10) else (low, mid)
    return low


def best_ratio(s: int, beta: float = JUST_ABOVE) -> tuple[float, float]:
    """The ratio R of geometric signals on `s` axes that admits the largest omega: (R, log10 omega)."""

    def value(ln_R: float) -> float:
        return float(log10_omega_max(geometric(s, math.exp(ln_R)), beta))

    low, high, golden = math.log(3.02), math.log(1e3), 0.5 * (math.sqrt(5.0) - 1.0)
    while high - low > 1e-7:
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if value(left) > value(right) else (left, high)
    return math.exp(0.5 * (low + high)), value(0.5 * (low + high))


def table(
    ratios: Sequence[float] = RATIOS, s: Sequence[int] = (2, 3, 4), beta: float = JUST_ABOVE
) -> Float[Array, "s ratio"]:
    """log10 of the largest admissible omega for geometric signals: rows s, columns ratio."""
    return np.array([[float(log10_omega_max(geometric(n, R), beta)) for R in ratios] for n in s])


def ratio_infimum(
    log10_omega: float, s: int = 2, beta: float = JUST_ABOVE, *, alpha_is_min: bool = False, K: float = K_MIN
) -> float:
    """The smallest ratio of neighbouring signals that admits a start of this size; inf where none does.

    With `alpha_is_min` the constant alpha is held at min a, where D.5 and kappa <= 1 + K/(2C) keep the ratio
    above 3 + 2(kappa - 1)/K whatever omega is; a smaller alpha lets it approach 3 as omega goes to 0.
    """
    kappa = KAPPA_MIN * JUST_ABOVE
    floor = 3.0 + (2.0 * (kappa - 1.0) / K if alpha_is_min else 0.0)
    low, high = math.log(floor * (1 + 1e-15)), math.log(best_ratio(s, beta)[0])

    def admits(ln_R: float) -> bool:
        return float(log10_omega_max(geometric(s, math.exp(ln_R)), beta, K=K)) >= log10_omega

    if not admits(high):
        return math.inf
    for _ in range(100):
        mid = 0.5 * (low + high)
        low, high = (low, mid) if admits(mid) else (mid, high)
    return math.exp(high)


def is_admissible(a: Float[ArrayLike, " d"], W0: Float[ArrayLike, "n d d"], eta: float) -> Bool[Array, " n"]:
    """Whether each start satisfies D.1-D.5 for some constants: `assumptions.decide`, for many starts at once.

    - `a`: signal strengths, larger index stronger; `W0`: starts; `eta`: step.
    """
    a, W0 = np.asarray(a, float), np.asarray(W0, float)
    size = np.abs(W0).reshape(len(W0), -1)
    low, high = size.min(1), size.max(1)
    ok = (low > 0) & np.isfinite(high) & (eta <= 1.0 / (9.0 * K_MIN * np.max(a)))
    ok &= np.all(np.isclose(W0, W0.transpose(0, 2, 1), rtol=0, atol=1e-12 * high[:, None, None]), axis=(1, 2))
    unit = np.where(ok[:, None, None], W0 / np.where(high > 0, high, 1.0)[:, None, None], np.eye(len(a)))
    ok &= np.linalg.eigvalsh(unit)[:, 0] >= -len(a) * 1e-13
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(ok & (np.log10(low) <= log10_omega_max(a, np.where(ok, high / low, 2.0))))


def share_admissible(
    a: Float[ArrayLike, " d"],
    eta: float,
    scale: float,
    *,
    width: int | None = None,
    n: int = 4096,
    seed: int = 0,
) -> float:
    """The share of starts W = U U^T with U uniform on (0, scale) that satisfies D.1-D.5.

    - `a`: signal strengths; `eta`: step; `width`: columns d' of U, d unless said.
    """
    d = len(np.asarray(a))
    U = scale * np.random.default_rng(seed).random((n, d, width or d))
    return float(np.mean(is_admissible(a, U @ U.transpose(0, 2, 1), eta)))


@partial(jax.jit, static_argnames=("d", "tries"))
def _draw(keys: jax.Array, d: int, beta: float, tries: int) -> jax.Array:
    """Symmetric matrices per key, (n, tries, d, d): sizes uniform on [1, beta], random off-diagonal signs."""
    rows, cols = np.tril_indices(d)

    def one(key: jax.Array) -> jax.Array:
        sizes, signs = jax.random.split(key)
        entries = 1.0 + (beta - 1.0) * jax.random.uniform(sizes, (tries, len(rows)), jnp.float64)
        flip = jnp.where(jax.random.bernoulli(signs, shape=(tries, len(rows))), 1.0, -1.0)
        entries = jnp.where(rows == cols, entries, entries * flip)
        return jnp.zeros((tries, d, d)).at[:, rows, cols].set(entries).at[:, cols, rows].set(entries)

    return jax.vmap(one)(keys)


def _keys(seed: int, runs: Int[Array, " n"], block: int) -> jax.Array:
    base = jax.random.key(seed)
    return jax.vmap(lambda k: jax.random.fold_in(jax.random.fold_in(base, k), block))(jnp.asarray(runs))


def share_psd(d: int, beta: float, *, n: int = 20000, seed: int = 0) -> tuple[float, float]:
    """The share of random sizes and signs that is PSD, and among those of w12 w13 w23 > 0 (d >= 3)."""
    W = np.asarray(_draw(_keys(seed, np.zeros(1, int), 0), d, beta, n))[0]
    good = np.linalg.eigvalsh(W)[:, 0] >= 0.0
    kept = W[good]
    positive = kept[:, 0, 1] * kept[:, 0, 2] * kept[:, 1, 2] > 0 if d >= 3 else np.ones(len(kept))
    return float(np.mean(good)), float(np.mean(positive)) if len(kept) else math.nan


def random_starts(
    a: Float[ArrayLike, " d"],
    n: int,
    *,
    beta: float = 1.5,
    kappa: float = 1.1001,
    slack: float = 0.6,
    seed: int = 0,
    tries: int = 512,
) -> Float[Array, "n d d"]:
    """PSD starts of random sizes and signs, `slack` decades below the largest omega that D.1-D.5 admit.

    - `a`: signal strengths, larger index stronger; `beta`: sizes are uniform on [1, beta] omega; `tries`:
      draws per round. Run k depends on (seed, k) only.
    """
    a = np.asarray(a, float)
    d = len(a)
    # The start's own min|W0| is at least omega, so its own limit is never below the one for beta.
    omega = 10.0 ** (float(log10_omega_max(a, beta, kappa=kappa)) - slack)
    if not omega > 0:
        raise BadInput(f"no omega is admissible for a = {a.tolist()}: every a_i must exceed 3 a_j for i > j")
    out, done = np.zeros((n, d, d)), np.zeros(n, bool)
    left: Array = np.arange(n)
    for block in range(400):
        for begin in range(0, len(left), 32):
            # Always 32 runs, so that one compiled draw serves every call.
            chunk = np.resize(left[begin : begin + 32], 32)
            W = np.asarray(_draw(_keys(seed, chunk, block), d, beta, tries))
            good = np.linalg.eigvalsh(W)[..., 0] >= 0.0
            out[chunk] = np.take_along_axis(W, good.argmax(1)[:, None, None, None], axis=1)[:, 0]
            done[chunk] = good.any(1)
        left = np.flatnonzero(~done)
        if len(left) == 0:
            return np.asarray(omega * out)
    raise BadInput(
        f"no positive semidefinite start found for d = {d}, beta = {beta}: a larger beta finds one"
    )
