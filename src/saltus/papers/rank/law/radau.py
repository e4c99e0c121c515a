"""Radau IIA of order 5 with dense output, compiled: the stiff solver of every flow of this paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from saltus._jax import jax, jnp
from saltus.papers.rank.law._once import FirstAlone

__all__ = ["Path", "Solver", "first_time"]

# Hairer and Wanner, Solving Ordinary Differential Equations II, Sec. IV.8: A = T diag(real, pair) T^-1.
_S6 = 6**0.5
_E = jnp.asarray([-13 - 7 * _S6, -13 + 7 * _S6, -1]) / 3
_C = jnp.asarray([(4 - _S6) / 10, (4 + _S6) / 10, 1.0])
_MU_REAL = 3 + 3 ** (2 / 3) - 3 ** (1 / 3)
_MU_PAIR = 3 + 0.5 * (3 ** (1 / 3) - 3 ** (2 / 3)) - 0.5j * (3 ** (5 / 6) + 3 ** (7 / 6))
_T = jnp.asarray(
    [
        [0.09443876248897524, -0.14125529502095421, 0.03002919410514742],
        [0.25021312296533332, 0.20412935229379994, -0.38294211275726192],
        [1, 1, 0],
    ]
)
_TI = jnp.asarray(
    [
        [4.17871859155190428, 0.32768282076106237, 0.52337644549944951],
        [-4.17871859155190428, -0.32768282076106237, 0.47662355450055044],
        [0.50287263494578682, -2.57192694985560522, 0.59603920482822492],
    ]
)
_P = jnp.asarray(
    [
        [13 / 3 + 7 * _S6 / 3, -23 / 3 - 22 * _S6 / 3, 10 / 3 + 5 * _S6],
        [13 / 3 - 7 * _S6 / 3, -23 / 3 + 22 * _S6 / 3, 10 / 3 - 5 * _S6],
        [1 / 3, -8 / 3, 10 / 3],
    ]
)
_NEWTON = 7  # iterations before a step is given up
_YES, _NO = jnp.asarray(True), jnp.asarray(False)
CHUNK = 256  # steps between two returns to Python

RUNNING, ENDED, STOPPED, STUCK = range(4)


class _State(NamedTuple):
    t: Any
    y: Any
    f: Any
    h: Any
    h_old: Any  # 0 before the first step
    err_old: Any
    jac: Any
    fresh: Any  # whether jac was taken at y
    wanting: Any  # whether it must be, before the next attempt
    inverse: Any  # of (mu / h - J), real and pair, for the h and J of now
    stale: Any  # whether inverse must be made anew
    q: Any  # dense output of the last step [p, 3]
    h_q: Any
    status: Any
    counts: Any  # gradients, Jacobians, attempts
    saved: Any  # number of steps kept in this chunk
    ts: Any
    ys: Any
    qs: Any


@dataclass(frozen=True)
class Path:
    """A solution: at the ends of steps, and in between by its collocation polynomial.

    **Arguments:** `t` [M+1], `y` [M+1, p], `q` [M, p, 3]; `status` one of `ended`, `stopped` (the stop rule),
    `stuck` (steps too small or too many); `counts` of gradients, Jacobians and attempted steps.
    """

    t: Any
    y: Any
    q: Any
    status: str
    counts: dict[str, int]

    def __call__(self, times: Any, coordinate: int | None = None) -> Any:
        """y [..., p], or one coordinate of it [...], at any times within the path."""
        times = np.asarray(times, float)
        flat = times.ravel()
        step = np.clip(np.searchsorted(self.t, flat, side="right") - 1, 0, len(self.t) - 2)
        x = (flat - self.t[step]) / (self.t[step + 1] - self.t[step])
        # Compensated at the end of a step, where the polynomial is exact only to rounding.
        powers = np.stack([x, x**2, x**3])
        if coordinate is not None:
            y, q = self.y[step, coordinate], self.q[step, coordinate]
            return (y + np.einsum("mk,km->m", q, powers)).reshape(times.shape)
        y = self.y[step] + np.einsum("mpk,km->mp", self.q[step], powers)
        return y.reshape(*times.shape, y.shape[-1])


def first_time(past: Callable[[Any], Any], low: float, high: float) -> float:
    """Where `past` (of many times at once) becomes true between a time at which it is not and one at which it
    is."""
    while True:
        times = np.linspace(low, high, 33)
        after = int(np.argmax(past(times[1:]))) + 1
        if times[after] - times[after - 1] >= high - low:  # to rounding
            return float((low + high) / 2)
        low, high = times[after - 1], times[after]


class Solver:
    """Solves dy/dt = f(y, args), compiled once for each shape.

    **Arguments:** `f(y [p], args) -> [p]`; `jac(y, args) -> [p, p]`, which may leave out what does not
    matter (it only steers Newton's iteration); `stop(y, f, args) -> bool` ends a path early.
    """

    def __init__(
        self,
        f: Callable[[Any, Any], Any],
        jac: Callable[[Any, Any], Any],
        stop: Callable[[Any, Any, Any], Any] | None = None,
    ) -> None:
        self.f, self.jac, self.stop = f, jac, stop
        self._go = FirstAlone(jax.jit(partial(_chunk, self)))

    def __call__(
        self,
        y0: Any,
        args: Any,
        until: float,
        *,
        rtol: float = 0.0,
        atol: float = 1e-6,
        step: float | None = None,
        max_steps: int = 100_000,
        tick: Callable[[float], None] | None = None,
    ) -> Path:
        """From y0 at t = 0 to `until` (it may be infinite when there is a stop rule)."""
        tol = jnp.asarray([rtol, atol])
        state = _begin(np.asarray(y0, float), step or 0.0)
        ts, ys, qs = [np.zeros(1)], [state.y[None]], []
        total = 0
        while int(state.status) == RUNNING and total < max_steps:
            state = self._go(state, args, jnp.asarray(until, float), tol)
            n = int(state.saved)
            ts.append(np.asarray(state.ts)[:n])
            ys.append(np.asarray(state.ys)[:n])
            qs.append(np.asarray(state.qs)[:n])
            total += n
            if tick is not None:
                tick(float(state.t))
        kinds = {ENDED: "ended", STOPPED: "stopped"}
        counts = dict(zip(("gradients", "jacobians", "attempts"), map(int, state.counts), strict=True))
        return Path(
            np.concatenate(ts), np.concatenate(ys), np.concatenate(qs) if qs else np.zeros((0, len(y0), 3)),
            kinds.get(int(state.status), "stuck"), {**counts, "steps": total},
        )  # fmt: skip


def _begin(y: Any, step: float) -> _State:
    """What is known before the first Jacobian; a step of 0 is chosen then."""
    p, eye, zero = len(y), np.eye(len(y)), np.zeros(())
    return _State(
        t=zero, y=y, f=np.zeros(p), h=np.asarray(step, float), h_old=zero, err_old=zero,
        jac=np.zeros((p, p)), fresh=np.asarray(False), wanting=np.asarray(True), inverse=(eye, eye + 0j),
        stale=np.asarray(True), q=np.zeros((p, 3)), h_q=np.ones(()), status=np.asarray(RUNNING),
        counts=np.asarray([0, 0, 0]), saved=np.asarray(0), ts=np.zeros(CHUNK), ys=np.zeros((CHUNK, p)),
        qs=np.zeros((CHUNK, p, 3)),
    )  # fmt: skip


def _chunk(solver: Solver, state: _State, args: Any, until: Any, tol: Any) -> _State:
    """Attempts until CHUNK steps are kept, or the path is at its end."""
    return jax.lax.while_loop(
        lambda s: (s.status == RUNNING) & (s.saved < CHUNK),
        lambda s: _attempt(solver, s, args, until, tol),
        state._replace(saved=jnp.asarray(0)),
    )


def _attempt(solver: Solver, s: _State, args: Any, until: Any, tol: Any) -> _State:
    """One step tried: kept, or tried again with a fresh Jacobian or a smaller step."""
    rtol, atol = tol
    s = jax.lax.cond(s.wanting, lambda s: _with_jacobian(solver, s, args), lambda s: s, s)
    wanted = jnp.minimum(s.h, until - s.t)
    stale = s.stale | (wanted != s.h)
    s = s._replace(h=wanted, inverse=jax.lax.cond(stale, _invert, lambda s: s.inverse, s._replace(h=wanted)))
    x = s.h / s.h_q * _C + 1
    # The last polynomial, extended, is where Newton's iteration starts.
    Z0 = jnp.where(s.h_old > 0, ((s.q @ jnp.stack([x, x**2, x**3])).T - s.q.sum(1)), 0.0)
    scale = atol + rtol * jnp.abs(s.y)
    converged, iterations, Z, rate = _newton(solver.f, s, args, Z0, scale, rtol)
    s = s._replace(
        counts=s.counts + jnp.asarray([3, 0, 0]) * iterations + jnp.asarray([0, 0, 1]),
        stale=_NO,
    )

    def failed(s: _State) -> _State:
        return jax.lax.cond(
            s.fresh,
            lambda s: s._replace(h=s.h / 2, stale=_YES),
            lambda s: s._replace(wanting=_YES),
            s,
        )

    def solved(s: _State) -> _State:
        new = s.y + Z[2]
        ZE = (_E @ Z) / s.h
        error = s.inverse[0] @ (s.f + ZE)
        scale = atol + rtol * jnp.maximum(jnp.abs(s.y), jnp.abs(new))
        norm = _norm(error / scale)
        norm = jnp.where(jnp.isfinite(norm), norm, 1e12)
        safety = 0.9 * (2 * _NEWTON + 1) / (2 * _NEWTON + iterations)
        known = (s.h_old > 0) & (s.err_old > 0)
        ratio = jnp.where(known, s.h / s.h_old * (s.err_old / jnp.maximum(norm, 1e-12)) ** 0.25, 1.0)
        factor = safety * jnp.minimum(1.0, ratio) * jnp.maximum(norm, 1e-12) ** -0.25
        return jax.lax.cond(
            norm > 1,
            lambda s: s._replace(h=s.h * jnp.maximum(0.2, factor), stale=_YES),
            lambda s: _keep(
                solver, s, args, until, Z, new, norm, jnp.minimum(10.0, factor), iterations, rate
            ),
            s,
        )

    s = jax.lax.cond(converged, solved, failed, s)
    tiny = ~(s.h >= 16 * jnp.finfo(float).eps * jnp.maximum(jnp.abs(s.t), 1e-3))
    endless = s.t > 1e100  # at rest, to what the solver can tell, and the stop rule does not say so
    return s._replace(status=jnp.where((s.status == RUNNING) & (tiny | endless), STUCK, s.status))


def _keep(
    solver: Solver, s: _State, args: Any, until: Any, Z: Any, new: Any, norm: Any, factor: Any,
    iterations: Any, rate: Any,
) -> _State:  # fmt: skip
    """The step taken, and what the next one needs."""
    t, q, f = s.t + s.h, Z.T @ _P, solver.f(new, args)
    last = t >= until - 1e-14 * jnp.abs(until)
    status = jnp.where(last, ENDED, RUNNING)
    if solver.stop is not None:
        status = jnp.where(solver.stop(new, f, args), STOPPED, status)
    # At rest steps grow without end: with an old Jacobian, Newton's error would be all that is seen.
    slow = ((iterations > 2) & (rate > 1e-3)) | (s.h > 0.3 * t)
    same = ~slow & (factor < 1.2)
    return s._replace(
        t=t, y=new, f=f, h_old=s.h, err_old=jnp.maximum(norm, 1e-10), q=q, h_q=s.h,
        h=jnp.where(same, s.h, s.h * factor), stale=~same, fresh=_NO, wanting=slow, status=status,
        counts=s.counts + jnp.asarray([1, 0, 0]), saved=s.saved + 1, ts=s.ts.at[s.saved].set(t),
        ys=s.ys.at[s.saved].set(new), qs=s.qs.at[s.saved].set(q),
    )  # fmt: skip


def _with_jacobian(solver: Solver, s: _State, args: Any) -> _State:
    # The slope is made with it, so that the first one needs no program of its own.
    f = solver.f(s.y, args)
    h = jnp.where(s.h > 0, s.h, 1e-2 / (1e-12 + jnp.max(jnp.abs(f))))
    return s._replace(
        f=f, h=h, jac=solver.jac(s.y, args), fresh=_YES, stale=_YES, wanting=_NO,
        counts=s.counts + jnp.asarray([1, 1, 0]),
    )  # fmt: skip


def _invert(s: _State) -> Any:
    eye = jnp.eye(s.y.shape[0])
    return jnp.linalg.inv(_MU_REAL / s.h * eye - s.jac), jnp.linalg.inv(_MU_PAIR / s.h * eye - s.jac)


def _norm(x: Any) -> Any:
    return jnp.sqrt(jnp.mean(x**2))


def _newton(f: Any, s: _State, args: Any, Z0: Any, scale: Any, rtol: Any) -> Any:
    """Simplified Newton on the three collocation equations, in the coordinates in which they decouple."""
    tol = jnp.maximum(10 * jnp.finfo(float).eps / jnp.maximum(rtol, 1e-10), 0.03)
    real, pair = _MU_REAL / s.h, _MU_PAIR / s.h

    def more(c: Any) -> Any:
        k, _, _, _, converged, failed, _ = c
        return (k < _NEWTON) & ~converged & ~failed

    def iterate(c: Any) -> Any:
        k, W, Z, old, _, _, rate = c
        F = jax.lax.map(lambda z: f(s.y + z, args), Z)
        d_real = s.inverse[0] @ (_TI[0] @ F - real * W[0])
        d_pair = s.inverse[1] @ ((_TI[1] + 1j * _TI[2]) @ F - pair * (W[1] + 1j * W[2]))
        dW = jnp.stack([d_real, d_pair.real, d_pair.imag])
        size = _norm(dW / scale)
        rate = jnp.where(k > 0, size / old, rate)
        left = rate ** (_NEWTON - k) / (1 - rate) * size
        failed = ~jnp.isfinite(size) | ((k > 0) & ((rate >= 1) | (left > tol)))
        done = (size == 0) | ((k > 0) & (rate / (1 - rate) * size < tol)) | ((k == 0) & (size < 1e-2 * tol))
        W = W + dW
        return k + 1, W, _T @ W, size, done & ~failed, failed, rate

    zero = jnp.zeros(())
    start = (jnp.asarray(0), _TI @ Z0, Z0, zero, _NO, _NO, zero)
    k, _, Z, _, converged, _, rate = jax.lax.while_loop(more, iterate, start)
    return converged, k, Z, rate
