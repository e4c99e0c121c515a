"""Descents of a curve, counted with hysteresis, and measures of swing-by built on them.

A curve is read as a zigzag of legs.  A leg is confirmed once the curve has moved by more than the
threshold from its last extreme; it begins at that extreme (its first occurrence) and ends at the
extreme before the next confirmed leg, the last one at the extreme reached so far.  Legs alternate
and each is longer than the threshold.  Values that are not numbers are passed over.

Two forms: `legs` reads stored curves (numpy) and says where the turns are; `begin` and `update` count
legs as the values come, elementwise over any batch, without storing a curve.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int

from saltus._jax import jnp

__all__ = [
    "Legs",
    "Swing",
    "Zigzag",
    "begin",
    "begin_swing",
    "centre_distance",
    "drawdown",
    "legs",
    "loss_legs",
    "rise",
    "s_loss",
    "s_rev",
    "update",
    "update_swing",
]


class Legs(NamedTuple):
    """The zigzag of each curve: leg n runs from index turns[n] to turns[n + 1]."""

    turns: Int[np.ndarray, "... L+1"]  # ascending, padded with -1
    number: Int[np.ndarray, " ..."]
    falls_first: Bool[np.ndarray, " ..."]

    @property
    def falling(self) -> Int[np.ndarray, " ..."]:
        """How many legs fall: the number of descents."""
        return (self.number + self.falls_first) // 2

    @property
    def rising(self) -> Int[np.ndarray, " ..."]:
        """How many legs rise."""
        return self.number - self.falling


def _candidates(curve: Float[np.ndarray, " T"]) -> Int[np.ndarray, " k"]:
    """Indices of both ends and of every local extreme (where a flat stretch begins)."""
    index = np.flatnonzero(~np.isnan(curve))
    values = curve[index]
    moved = np.flatnonzero(np.r_[True, values[1:] != values[:-1]]) if len(values) else np.arange(0)
    direction = np.sign(values[moved][1:] - values[moved][:-1])
    turning = (
        np.r_[True, direction[1:] != direction[:-1], True] if len(moved) > 1 else np.ones(len(moved), bool)
    )
    return index[moved[turning]]


def _turns(curve: Float[np.ndarray, " T"], threshold: float) -> tuple[list[int], bool]:
    # Only ends and local extremes can be turning points or confirm one.
    path = [(int(i), float(curve[i])) for i in _candidates(curve)]
    if not path:
        return [], False
    low = high = path[0]
    turns: list[tuple[int, float]] = []
    falling = False
    for point in path[1:]:
        if not turns:
            low, high = min(low, point, key=lambda p: p[1]), max(high, point, key=lambda p: p[1])
            if point[1] > low[1] + threshold:
                turns, falling = [low, point], False
            elif point[1] < high[1] - threshold:
                turns, falling = [high, point], True
            continue
        extreme = turns[-1][1]
        if (point[1] < extreme) if falling else (point[1] > extreme):
            turns[-1] = point
        elif (point[1] > extreme + threshold) if falling else (point[1] < extreme - threshold):
            turns.append(point)
            falling = not falling
    return [i for i, _ in turns], bool(turns) and curve[turns[1][0]] < curve[turns[0][0]]


def legs(curve: Float[ArrayLike, "... T"], threshold: Float[ArrayLike, " ..."]) -> Legs:
    """The legs of each curve [..., T] that are longer than a threshold [...] (absolute, > 0)."""
    curves = np.asarray(curve, float)
    flat = curves.reshape(-1, curves.shape[-1])
    limits = np.broadcast_to(np.asarray(threshold, float), curves.shape[:-1]).reshape(-1)
    found = [_turns(one, float(limit)) for one, limit in zip(flat, limits, strict=True)]
    turns = np.full((len(found), max([2, *(len(t) for t, _ in found)])), -1)
    for row, (one, _) in zip(turns, found, strict=True):
        row[: len(one)] = one
    shape = curves.shape[:-1]
    count = np.array([max(len(t) - 1, 0) for t, _ in found], int).reshape(shape)
    first = np.array([down for _, down in found], bool).reshape(shape)
    return Legs(turns.reshape(*shape, turns.shape[1]), count, first)


def loss_legs(loss: Float[ArrayLike, "... T"], theta: float = 0.01) -> Legs:
    """The legs of a loss curve [..., T] longer than theta times its first value."""
    loss = np.asarray(loss, float)
    return legs(loss, theta * loss[..., 0])


def s_loss(loss: Float[ArrayLike, "... T"], theta: float = 0.01) -> Bool[np.ndarray, " ..."]:
    """Whether the loss at the test point goes down, up and down, each by more than theta L(0)."""
    return loss_legs(loss, theta).falling >= 2


def s_rev(g: Float[ArrayLike, "... T"], theta: float = 0.05) -> Bool[np.ndarray, " ..."]:
    """Whether the weak axis goes up, down and up, each by more than theta.

    g [..., T]: output of the weak axis in units of its target, o_k / mu_k.  One layer without bias
    never does (s = 2): its g has at most one turning point.
    """
    return legs(g, theta).rising >= 2


def _after(curve: Float[np.ndarray, "... T"], began: Bool[np.ndarray, "... T"]) -> Float[np.ndarray, " ..."]:
    began = np.logical_or.accumulate(began, axis=-1)
    lowest = np.fmin.accumulate(np.where(began, curve, np.inf), axis=-1)
    with np.errstate(invalid="ignore"):  # a curve that has blown up: inf - inf is passed over
        climb = np.subtract(curve, lowest, out=np.zeros_like(curve), where=began)
    return np.fmax.reduce(climb, axis=-1, initial=0.0)


def rise(loss: Float[ArrayLike, "... T"], after: float = 0.01) -> Float[np.ndarray, " ..."]:
    """The largest rise of L / L(0) from an earlier value, once L has fallen by `after` L(0) (else 0).

    loss [..., T].
    """
    loss = np.asarray(loss, float)
    relative = loss / loss[..., :1]
    return _after(relative, relative < 1 - after)


def drawdown(g: Float[ArrayLike, "... T"], after: float = 0.05) -> Float[np.ndarray, " ..."]:
    """The largest fall of the weak axis from an earlier value, once it has risen by `after` (else 0).

    g [..., T]: output of the weak axis in units of its target.
    """
    g = np.asarray(g, float)
    return _after(-g, g > g[..., :1] + after)


def centre_distance(
    output: Float[ArrayLike, "... d"], target: Float[ArrayLike, " d"], strongest: int
) -> Float[np.ndarray, " ..."]:
    """The distance of the output to the strongest cluster's centre, in units of that of the target.

    output [..., d], target [d]: the test point, strongest: the cluster's axis.  Its minimum over
    time is the depth of a swing-by; 1 is as far as the target.
    """
    target = np.asarray(target, float)
    centre = np.where(np.arange(target.shape[0]) == strongest, target, 0.0)
    return np.linalg.norm(np.asarray(output, float) - centre, axis=-1) / np.linalg.norm(target - centre)


class Zigzag(NamedTuple):
    """A counter of legs: everything it needs to know of the values it has seen, [K, ...] each."""

    threshold: Float[Array, "K ..."]
    low: Float[Array, "K ..."]  # lowest since the last turn (since the start before the first)
    high: Float[Array, "K ..."]
    direction: Int[Array, "K ..."]  # -1 falling, +1 rising, 0 not yet known
    falling: Int[Array, "K ..."]
    rising: Int[Array, "K ..."]


def begin(value: Float[ArrayLike, " ..."], theta: Float[ArrayLike, " K"], relative: bool = True) -> Zigzag:
    """A counter that has seen one value [...] of each curve, for K thresholds at once.

    theta [K]: thresholds, in units of that first value if `relative`, else absolute.
    """
    value, theta = jnp.asarray(value), jnp.atleast_1d(jnp.asarray(theta))
    steps = theta.reshape(-1, *(1,) * value.ndim).astype(value.dtype)
    threshold = steps * (value if relative else jnp.ones_like(value))
    seen = jnp.broadcast_to(value, threshold.shape)
    none = jnp.zeros(threshold.shape, jnp.int32)
    return Zigzag(threshold, seen, seen, none, none, none)


def update(state: Zigzag, value: Float[ArrayLike, " ..."]) -> Zigzag:
    """The counter after one more value [...] of each curve; elementwise, so any layout will do."""
    value = jnp.asarray(value)
    # Comparisons with a value that is not a number are false: it changes nothing.
    low = jnp.where((state.direction <= 0) & (value < state.low), value, state.low)
    high = jnp.where((state.direction >= 0) & (value > state.high), value, state.high)
    up = (state.direction <= 0) & (value > low + state.threshold)
    down = (state.direction >= 0) & (value < high - state.threshold)
    return Zigzag(
        threshold=state.threshold,
        low=jnp.where(down, value, low),
        high=jnp.where(up, value, high),
        direction=jnp.where(up, 1, jnp.where(down, -1, state.direction)),
        falling=state.falling + down,
        rising=state.rising + up,
    )


class Swing(NamedTuple):
    """A running measure of the largest fall after a first rise, [...] each; see `drawdown`."""

    gate: Float[Array, " ..."]
    highest: Float[Array, " ..."]  # since the gate was passed; -inf before
    depth: Float[Array, " ..."]


def begin_swing(g: Float[ArrayLike, " ..."], after: float = 0.05) -> Swing:
    """`drawdown` as the values come: the state after one value [...]; for `rise`, give -L / L(0) and .01."""
    g = jnp.asarray(g)
    return Swing(g + after, jnp.full_like(g, -jnp.inf), jnp.zeros_like(g))


def update_swing(state: Swing, g: Float[ArrayLike, " ..."]) -> Swing:
    """The measure after one more value [...] of each curve."""
    g = jnp.asarray(g)
    began = (state.highest > -jnp.inf) | (g > state.gate)
    highest = jnp.where(began & (g > state.highest), g, state.highest)
    fall = jnp.where(began, highest - g, 0.0)
    return Swing(state.gate, highest, jnp.where(fall > state.depth, fall, state.depth))
