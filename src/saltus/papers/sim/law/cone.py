"""When the printed recursion on W leaves the cone of positive semidefinite matrices, where no U U^T is.

Recursion D.2 drops eta^2 M W M from gradient descent on U. While entries are small, entry (i, j) grows by
1 + eta(a_i + a_j) a step, which is no product of a factor of i and one of j: the squared correlation of a
pair of axes gains exp[eta^2 (a_i - a_j)^2] a step, and a start close enough to singular ends up indefinite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import ArrayLike, Bool, Float, Int
from numpy import ndarray as Array

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput
from saltus.papers.sim.law import unrolled
from saltus.papers.sim.law.unrolled import Entries

__all__ = [
    "ConePath",
    "critical_rho2",
    "doomed_by_linear_phase",
    "exponent",
    "follow",
    "linear_phase",
    "rho2_bound",
    "saturation_steps",
]


def rho2_bound(
    a_weak: Float[ArrayLike, "*n"],
    a_strong: Float[ArrayLike, "*n"],
    eta: Float[ArrayLike, "*n"],
    ln_omega: Float[ArrayLike, "*n"],
) -> Float[Array, "*n"]:
    """The squared correlation w12^2/(w11 w22) of the start above which recursion D.2 turns indefinite.

    exp[-eta (a_s - a_w)^2 ln(1/omega)/(2 a_s)]: the spurious growth of the correlation during the
    ln(1/omega)/(2 a_s eta) steps that the strong axis takes to saturate. To leading order in eta.

    - `a_weak`, `a_strong`: the pair's signal strengths; `eta`: step; `ln_omega`: ln of the start's size.
    """
    aw, a_s = np.asarray(a_weak, float), np.asarray(a_strong, float)
    return np.asarray(np.exp(np.asarray(eta) * (a_s - aw) ** 2 * np.asarray(ln_omega) / (2.0 * a_s)))


def saturation_steps(a_strong: float, eta: float, ln_omega: float, extra: float = 40.0) -> int:
    """Steps until the strong axis has grown to 1, and `extra` of its time constants more."""
    return math.ceil((extra - ln_omega) / (2.0 * a_strong * eta))


@jax.jit
def _turns_indefinite(w: Entries, a: jax.Array, eta: jax.Array, steps: jax.Array) -> jax.Array:
    """Whether w11 w22 < w12^2 (or a diagonal entry < 0) after `steps` of the recursion, two axes."""

    def one(_: jax.Array, w: Entries) -> Entries:
        return unrolled.recursion(w, a, eta)

    w11, w12, w22 = jax.lax.fori_loop(0, steps, one, w)
    # Divided rather than multiplied out: entries span hundreds of decades.
    return ~((w22 > 0) & (w11 > 0) & (w11 - w12 * (w12 / w22) > 0))


def critical_rho2(
    a: tuple[float, float],
    eta: float,
    ln_omega: float,
    *,
    steps: int | None = None,
    runs: int = 64,
    tolerance: float = 1e-5,
) -> float:
    """The same threshold found on the recursion itself, by bisection with `runs` trials a round.

    - `a`: weak and strong signal; `eta`: step; `ln_omega`: of the start omega [[1/rho, 1], [1, 1/rho]], whose
      smallest entry is omega; `steps`: until well after the strong axis saturates, unless said.
    """
    weak, strong = a
    if not 0 < weak < strong:
        raise BadInput(f"a must be (weak, strong) with 0 < weak < strong, not {a}")
    n = steps or saturation_steps(strong, eta, ln_omega)
    low, high = 0.0, 1.0
    while high - low > tolerance:
        rho2 = low + (high - low) * (np.arange(runs) + 1.0) / (runs + 1.0)
        off = jnp.full(runs, math.exp(ln_omega))
        own = off / jnp.sqrt(jnp.asarray(rho2))
        w = (own, off, own)
        lost = np.asarray(_turns_indefinite(w, jnp.asarray(a, float), jnp.asarray(eta), jnp.asarray(n)))
        kept, gone = rho2[~lost], rho2[lost]
        if len(kept) and len(gone) and kept.max() > gone.min():
            raise BadInput("the fate is not monotone in rho^2 here: take fewer steps or a smaller eta")
        low = max([low, *kept.tolist()])
        high = min([high, *gone.tolist()])
    return 0.5 * (low + high)


@dataclass(frozen=True)
class ConePath:
    """The recursion watched at chosen steps: smallest eigenvalue, and when each run left the cone.

    `smallest` is of W itself, `correlation` of W scaled to a unit diagonal (same sign, readable at any scale;
    NaN once a diagonal entry is <= 0). `negative_diagonal` and `diverged` are first steps, -1 for never.
    """

    at: Int[Array, " t"]
    smallest: Float[Array, "t n"]
    correlation: Float[Array, "t n"]
    negative_diagonal: Int[Array, " n"]
    diverged: Int[Array, " n"]
    W: Float[Array, "t n d d"]

    @property
    def left(self) -> Int[Array, " n"]:
        """The first watched step with a negative smallest eigenvalue or diagonal entry, -1 for none."""
        size = np.abs(self.W).max(axis=(2, 3))
        out = ~(self.smallest >= -1e-15 * size * self.W.shape[-1])
        return np.where(out.any(0), self.at[out.argmax(0)], -1)


@jax.jit
def _advance(
    w: Entries,
    events: tuple[jax.Array, jax.Array],
    a: jax.Array,
    eta: jax.Array,
    t0: jax.Array,
    t1: jax.Array,
) -> tuple[Entries, tuple[jax.Array, jax.Array]]:
    d = unrolled.size(w)

    def one(t: jax.Array, carry: tuple[Entries, tuple[jax.Array, jax.Array]]):  # type: ignore[no-untyped-def]
        w, (negative, diverged) = carry
        new = unrolled.recursion(w, a, eta)
        low, top = new[0], jnp.abs(new[0])
        for i in range(d):
            low = jnp.minimum(low, unrolled.at(new, i, i))
        for x in new:
            top = jnp.maximum(top, jnp.abs(x))
        gone = ~(top <= 1e6)
        negative = jnp.where((negative < 0) & (low < 0) & (diverged < 0), t + 1, negative)
        # A run past the pole stays where it was last seen, so that every eigenvalue asked for exists.
        kept = tuple(jnp.where((diverged < 0) & ~gone, x, y) for x, y in zip(new, w, strict=True))
        return kept, (negative, jnp.where((diverged < 0) & gone, t + 1, diverged))

    return jax.lax.fori_loop(t0, t1, one, (w, events))


def follow(
    a: Float[ArrayLike, " d"], W0: Float[ArrayLike, "n d d"], eta: float, at: Int[ArrayLike, " t"]
) -> ConePath:
    """Recursion D.2 from many starts, its smallest eigenvalue at the steps `at`.

    - `a`: signal strengths; `W0`: starts, symmetric; `eta`: step; `at`: increasing step numbers.
    """
    a, W0, at = np.asarray(a, float), np.asarray(W0, float), np.asarray(at, np.int64)
    W0 = W0[None] if W0.ndim == 2 else W0
    if W0.shape[1:] != (len(a), len(a)):
        raise BadInput(f"a has {len(a)} axes, so W0 must be (n, {len(a)}, {len(a)}), not {W0.shape}")
    if not np.all(np.isfinite(W0)):
        raise BadInput("W0 must be finite")
    if np.any(np.diff(at) <= 0) or np.any(at < 0):
        raise BadInput("`at` must be increasing steps, from 0 on")
    w = unrolled.pack(jnp.asarray(W0))
    events = (jnp.full(len(W0), -1), jnp.full(len(W0), -1))
    seen, t = [], 0
    for stop in at.tolist():
        w, events = _advance(w, events, jnp.asarray(a), jnp.asarray(eta), jnp.asarray(t), jnp.asarray(stop))
        seen.append(np.asarray(unrolled.unpack(w)))
        t = stop
    W = np.stack(seen)
    diagonal = np.diagonal(W, axis1=2, axis2=3)
    good = (diagonal > 0).all(-1)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    unit = W / scale[..., :, None] / scale[..., None, :]
    smallest = np.linalg.eigvalsh(W)[..., 0]
    correlation = np.where(good, np.linalg.eigvalsh(unit)[..., 0], np.nan)
    return ConePath(at, smallest, correlation, np.asarray(events[0]), np.asarray(events[1]), W)


def linear_phase(
    a: Float[ArrayLike, " d"], W0: Float[ArrayLike, "n d d"], eta: float
) -> Float[Array, "n d d"]:
    """The start from which the exact flow looks as the recursion does once the strongest axis saturates.

    Entry (i, j) times exp{[ln(1 + eta S)/eta - S] t1}: S = a_i + a_j, t1 = ln(1/w_ss)/(2 a_s), s strongest.
    """
    a, W0 = np.asarray(a, float), np.asarray(W0, float)
    s = int(np.argmax(a))
    S = a[:, None] + a[None, :]
    t1 = -np.log(W0[:, s, s]) / (2.0 * a[s])
    return np.asarray(W0 * np.exp((np.log1p(eta * S) / eta - S) * t1[:, None, None]))


def doomed_by_linear_phase(
    a: Float[ArrayLike, " d"], W0: Float[ArrayLike, "n d d"], eta: float
) -> Bool[Array, " n"]:
    """Whether each start is predicted to leave the cone, from the linear phase alone."""
    return np.asarray(np.linalg.eigvalsh(linear_phase(a, W0, eta))[:, 0] < 0)


def exponent(d: int, width: int) -> float:
    """The doomed share falls as eta to this power, (d' - d + 1)/2: the chance of a Schur ratio below c eta.

    - `d`: axes; `width`: columns d' of U with continuous random entries.
    """
    if width < d:
        raise BadInput(
            f"U of width {width} < d = {d} is rank deficient: every start is doomed, there is no law"
        )
    return 0.5 * (width - d + 1)
