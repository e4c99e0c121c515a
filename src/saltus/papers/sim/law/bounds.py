"""The bounds of lemmas D.1-D.8 inside the compiled loop: every step, every entry, no trajectory kept.

Each bound is a ratio "seen over allowed" that must not pass 1; what is carried is the worst ratio of every
bound, and the first step and entry at which it passed 1.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from saltus._jax import jax, jnp
from saltus.papers.sim.law import unrolled
from saltus.papers.sim.law.unrolled import Entries, Rows, at, pairs

__all__ = ["BOUNDS", "NEVER", "Fixed", "Watch", "run", "start_watch"]

# Name: what it says, over every run, step and entry.
BOUNDS = {
    "Cor D.1": "|N_ij| <= 2 P gamma alpha d beta^2 omega^2",
    "D.1": "|w_ij(t)| <= |w_ij(0)| exp[eta t (a_i+a_j) kappa]",
    "D.2": "|w_ij(t)| >= |w_ij(0)| exp[eta t (a_i+a_j)/kappa], same sign, up to T_1",
    "D.2 phase": "|w_ij(t)| <= P beta omega up to T_1",
    "D.3": "w_ii(t) >= w_ii(0) exp[2 eta t a_i/kappa] up to T_1^(i)",
    "D.3 phase": "w_ii(t) <= P beta omega up to T_1^(i)",
    "D.4": "w_ii(t0+t) >= w_ii(t0) exp[2 eta t a_i (1-lambda)/kappa] once w_ii >= P beta omega",
    "D.5 lower": "w_ii >= 0",
    "D.5 upper": "w_ii <= 1 + 2/K",
    "Cor D.2": "|w_ii(t+1) - w_ii(t)| <= 1/K",
    "D.6": "w_ii >= 1 - 2/K for ever once it is",
    "D.7": "|w_ij(t')| <= max(|w_ij(t0)|, omega) once w_ii(t0) > 0.8",
    "D.8": "|w_ij| <= P beta omega for i != j",
}
# Relative rounding gathered over millions of steps; one step for D.4.
TOLERANCE = {name: 1e-12 if name == "D.4" else 0.0 if name == "D.5 lower" else 1e-8 for name in BOUNDS}
BLOWN = 1e6
BLOCK = 64
NEVER = np.iinfo(np.int64).max


class Fixed(NamedTuple):
    """What does not change along a run; scalars unless said."""

    a: jax.Array
    eta: jax.Array
    kappa: jax.Array
    K: jax.Array
    noise_cap: jax.Array
    phase: jax.Array
    omega: jax.Array
    T1: jax.Array
    T1_own: Entries
    inv0: Entries
    floor: jax.Array


class Watch(NamedTuple):
    """What is carried from step to step beside the state."""

    worst: tuple[jax.Array, ...]
    first: tuple[jax.Array, ...]
    significant: Entries
    cap: Entries
    alive: jax.Array
    stopped: jax.Array


def _resolved(w: Entries, floor: jax.Array) -> Entries:
    """Off-diagonal entries less what rounding of U U^T leaves in them."""
    d = unrolled.size(w)

    def entry(i: int, j: int) -> jax.Array:
        x = at(w, i, j)
        if i == j:
            return x
        noise = floor * jnp.sqrt(jnp.abs(at(w, i, i) * at(w, j, j)))
        return jnp.sign(x) * jnp.maximum(jnp.abs(x) - noise, 0.0)

    return tuple(entry(i, j) for i, j in pairs(d))


def _inverse(q: jax.Array) -> jax.Array:
    """1/q where q > 0: a lower bound that changed sign is missed by any factor."""
    return jnp.where(q > 0, 1.0 / q, jnp.inf)


def observe(
    f: Fixed, watch: Watch, old: Entries, w: Entries, t: jax.Array, up: jax.Array, down: jax.Array
) -> Watch:
    """Hold every bound against step t; `up`, `down`: exp(-eta t (a_i+a_j) kappa), and with 1/kappa."""
    d = unrolled.size(w)
    order = pairs(d)
    diagonal = [e for e, (i, j) in enumerate(order) if i == j]
    off = [e for e, (i, j) in enumerate(order) if i != j]
    zero = jnp.zeros_like(w[0])
    near = 1.0 - 2.0 / f.K
    # Signed by the start: a sign change shows as a negative value. inv0 is 1/w_ij(0).
    grown = [w[e] * f.inv0[e] for e in range(len(w))]
    in_T1 = t <= f.T1
    N = unrolled.noise(w, f.a)
    significant = tuple(s | (w[e] >= near) for s, e in zip(watch.significant, diagonal, strict=True))
    growth: list[jax.Array] = []
    for i, e in enumerate(diagonal):
        top = jnp.maximum(w[e], old[e])
        due = jnp.exp(2.0 * f.eta * f.a[i] * (1.0 - top) / f.kappa) * old[e]
        growth.append(jnp.where((old[e] >= f.phase) & (top < 1.0 - 1.0 / f.K), due * _inverse(w[e]), zero))
    own = [(i, e, t <= f.T1_own[i]) for i, e in enumerate(diagonal)]
    seen: dict[str, list[tuple[int, jax.Array]]] = {
        "Cor D.1": [(e, jnp.abs(N[e]) / f.noise_cap) for e in range(len(w))],
        "D.1": [(e, jnp.abs(g) * up[e]) for e, g in enumerate(grown)],
        "D.2": [(e, jnp.where(in_T1, _inverse(g * down[e]), zero)) for e, g in enumerate(grown)],
        "D.2 phase": [(e, jnp.where(in_T1, jnp.abs(w[e]) / f.phase, zero)) for e in range(len(w))],
        "D.3": [(e, jnp.where(now, _inverse(grown[e] * down[e]), zero)) for _, e, now in own],
        "D.3 phase": [(e, jnp.where(now, w[e] / f.phase, zero)) for _, e, now in own],
        "D.4": list(zip(diagonal, growth, strict=True)),
        "D.5 lower": [(e, -w[e]) for e in diagonal],
        "D.5 upper": [(e, w[e] / (1.0 + 2.0 / f.K)) for e in diagonal],
        "Cor D.2": [(e, jnp.abs(w[e] - old[e]) * f.K) for e in diagonal],
        "D.6": [
            (e, jnp.where(s, near * _inverse(w[e]), zero)) for e, s in zip(diagonal, significant, strict=True)
        ],
        "D.7": [(e, jnp.abs(w[e]) / cap) for e, cap in zip(off, watch.cap, strict=True)],
        "D.8": [(e, jnp.abs(w[e]) / f.phase) for e in off],
    }
    finite = jnp.isfinite(sum(w[1:], w[0]))
    now = watch.alive & finite
    worst, first = [], []
    for k, (name, ratios) in enumerate(seen.items()):
        limit = TOLERANCE[name] + (0.0 if name == "D.5 lower" else 1.0)
        value, code = watch.worst[k], watch.first[k]
        for e, r in ratios:
            value = jnp.where(now, jnp.maximum(value, r), value)
            code = jnp.where(now & (r > limit), jnp.minimum(code, t * len(w) + e), code)
        worst.append(value)
        first.append(code)
    # D.7 holds from every t0 with w_ii > 0.8: the smallest bound so far is the one to keep.
    cap = tuple(
        jnp.where(w[diagonal[order[e][0]]] > 0.8, jnp.minimum(c, jnp.maximum(jnp.abs(w[e]), f.omega)), c)
        for e, c in zip(off, watch.cap, strict=True)
    )
    largest = w[0] * 0.0
    for x in w:
        largest = jnp.maximum(largest, jnp.abs(x))
    alive = now & (largest <= BLOWN)
    stopped = jnp.where(watch.alive & ~alive, t, watch.stopped)
    return Watch(tuple(worst), tuple(first), significant, cap, alive, stopped)


@partial(jax.jit, static_argnames=("kind",))
def run(f: Fixed, state: Entries | Rows, watch: Watch, steps: jax.Array, kind: str) -> tuple[Entries, Watch]:
    """All steps, in blocks that refresh the exponentials so that their rounding does not gather."""
    order = pairs(len(f.T1_own))
    S = jnp.stack([f.a[i] + f.a[j] for i, j in order])
    per_up, per_down = jnp.exp(-f.eta * S * f.kappa), jnp.exp(-f.eta * S / f.kappa)

    def entries(state: Any) -> Entries:
        return _resolved(unrolled.gram(state), f.floor) if kind == "U" else state

    kinds: dict[str, Any] = {"recursion": unrolled.recursion, "W": unrolled.gd, "U": unrolled.gd_factor}
    step = kinds[kind]

    def one(_: jax.Array, carry: Any) -> Any:
        t, state, w, watch, up, down = carry
        t, up, down = t + 1, up * per_up, down * per_down
        state = step(state, f.a, f.eta)
        new = entries(state)
        return t, state, new, observe(f, watch, w, new, t, up, down), up, down

    def block(carry: Any) -> Any:
        t, state, w, watch = carry
        start = (t, state, w, watch, jnp.exp(-f.eta * t * S * f.kappa), jnp.exp(-f.eta * t * S / f.kappa))
        return jax.lax.fori_loop(0, jnp.minimum(BLOCK, steps - t), one, start)[:4]

    def going(carry: Any) -> jax.Array:
        return (carry[0] < steps) & jnp.any(carry[3].alive)

    begin = (jnp.zeros((), jnp.int64), state, entries(state), watch)
    _, _, w, watch = jax.lax.while_loop(going, block, begin)
    return w, watch


def start_watch(n: int, d: int) -> Watch:
    """Nothing seen yet, in `n` runs of `d` axes."""
    full = partial(jnp.full, (n,))
    return Watch(
        worst=tuple(full(-jnp.inf) for _ in BOUNDS),
        first=tuple(full(NEVER) for _ in BOUNDS),
        significant=tuple(full(False) for _ in range(d)),
        cap=tuple(full(jnp.inf) for i, j in pairs(d) if i != j),
        alive=full(True),
        stopped=full(-1),
    )
