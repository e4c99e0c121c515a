"""Stages of a two-layer trajectory, found without looking: initial growth, first suppression, ...

The definition. Between two samples, entry (i, j) with i, j among the s concepts moves by delta_ij =
|w_ij| (now) - |w_ij| (before), counted twice off the diagonal, where (j, i) moves too. A major
entry counts up to 1/2 only, unless it is the last to get there: beyond 1/2 it slows itself down
(S_kk > G_kk / 2), and what follows is the doing of others. The *dominant* move of the interval is
the delta of largest size; M(t) is the running sum of dominant moves. M rises while what mainly
happens is growth and falls while it is suppression. A stage is a leg of M in the sense of
`descents`, longer than theta (in units of the learnt value 1). So stages share time out without
gaps, growth and suppression alternate, small or noisy moves neither make a stage nor end one, and
nothing depends on how samples are spaced as long as they resolve the moves.

A major entry that gets to 1/2 is learnt in the growth leg that holds most of its counted rise.  A leg
in which several are learnt, with no suppression between them, is cut where the next one's speed
overtakes: each growth stage learns at most one.

What drives a stage: the major entry learnt in a growth stage, else the entry that moved most in
the stage's own sense.  What causes a suppression: the axis k whose term w_ki w_kj (a_i + a_j + 2 a_k)/2
of D.3 takes most from the driver over the stage.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import ArrayLike, Float, Int

from saltus.papers.sim.law import descents

__all__ = ["LossLeg", "Stage", "dominant", "find", "loss_legs", "shares"]

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


@dataclass(frozen=True)
class Stage:
    """One stage; axes are numbered from 0."""

    kind: str  # "growth" or "suppression"
    number: int  # the how-manieth of its kind, from 1
    start: float
    end: float
    driver: tuple[int, int]  # row <= column
    change: float  # of |w| of the driver
    cause: int | None  # the axis that suppresses; None for growth

    @property
    def name(self) -> str:
        """`initial growth`, `first suppression`, `second growth`, ... as the paper names them."""
        if self.kind == "growth" and self.number == 1:
            return "initial growth"
        ordinal = _ORDINALS[self.number - 1] if self.number <= len(_ORDINALS) else f"{self.number}th"
        return f"{ordinal} {self.kind}"


@dataclass(frozen=True)
class LossLeg:
    """One leg of the loss at the test point, and what it is made of."""

    start: float
    end: float
    change: float
    driver: tuple[int, int]  # the entry whose movement contributes most to the change
    kind: str  # what that entry does meanwhile: "growth" or "suppression"
    stage: int | None  # index of the stage it lines up with
    shares: Float[np.ndarray, "d d"]  # change of the loss due to each entry; sums to `change`


def _finite(
    times: Float[ArrayLike, " T"], W: Float[ArrayLike, "T d d"]
) -> tuple[Float[np.ndarray, " T"], Float[np.ndarray, "T d d"]]:
    times, W = np.asarray(times, float), np.asarray(W, float)
    # Squares of entries are formed below, so anything that would overflow has blown up as well.
    good = np.logical_and.accumulate((np.abs(W) < 1e100).all(axis=(1, 2)))
    return times[good], W[good]


def _arrivals(W: Float[np.ndarray, "T d d"], s: int) -> Int[np.ndarray, " s"]:
    """The first sample with w_kk >= 1/2; T if there is none."""
    over = np.diagonal(W, axis1=1, axis2=2)[:, :s] >= 0.5
    return np.where(over.any(axis=0), over.argmax(axis=0), len(W))


def _moves(W: Float[np.ndarray, "T d d"], s: int) -> Float[np.ndarray, "T-1 s s"]:
    """How far each pair of entries moves away from zero (+) or towards it (-); upper triangle."""
    arrival = _arrivals(W, s)
    last = arrival == np.max(arrival, where=arrival < len(W), initial=-1)
    cap = np.where(np.diag(~last), 0.5, np.inf)
    size = np.minimum(np.abs(W[:, :s, :s]), cap)
    return np.diff(size, axis=0) * (np.triu(np.full((s, s), 2.0), 1) + np.eye(s))


def dominant(W: Float[ArrayLike, "T d d"], s: int) -> Float[np.ndarray, " T"]:
    """The curve M whose legs are the stages: the running sum of dominant moves; W [T, d, d]."""
    moves = _moves(np.asarray(W, float), s).reshape(-1, s * s)
    largest = np.argmax(np.abs(moves), axis=1)
    return np.r_[0.0, np.cumsum(np.take_along_axis(moves, largest[:, None], axis=1)[:, 0])]


def _cuts(
    W: Float[np.ndarray, "T d d"], first: int, last: int, learnt: list[tuple[int, int]]
) -> list[tuple[int, int, int | None]]:
    """A growth leg as intervals (first, last, axis learnt in it); learnt: (sample, axis) ascending."""
    diagonal = np.diagonal(W, axis1=1, axis2=2)
    intervals, begun = [], first
    for (here, k), (there, following) in pairwise((min(n, last), k) for n, k in learnt):
        speed = np.diff(diagonal[here : there + 1], axis=0)
        overtaken = np.flatnonzero(speed[:, following] > speed[:, k])
        cut = here + int(overtaken[0]) if overtaken.size else there
        intervals.append((begun, cut, k))
        begun = cut
    return [*intervals, (begun, last, learnt[-1][1] if learnt else None)]


def _cause(
    times: Float[np.ndarray, " T"],
    W: Float[np.ndarray, "T d d"],
    a: Float[np.ndarray, " d"],
    driver: tuple[int, int],
) -> int:
    i, j = driver
    taken = np.sign(W[:, i, j])[:, None] * W[:, :, i] * W[:, :, j] * (a[i] + a[j] + 2 * a) / 2
    return int(np.argmax(np.trapezoid(taken, times, axis=0)))


def find(
    times: Float[ArrayLike, " T"],
    W: Float[ArrayLike, "T d d"],
    a: Float[ArrayLike, " d"],
    s: int | None = None,
    theta: float = 0.01,
) -> list[Stage]:
    """The stages of one trajectory, in order, from the first sample to the last.

    times [T] ascending, W [T, d, d], a [d], s: concepts (default: the axes with a > 0), theta:
    the smallest dominant move that counts, in units of the learnt value 1.  A trajectory that
    never moves by theta has no stage; one that blows up is read up to its last finite sample.
    """
    times, W = _finite(times, W)
    a = np.asarray(a, float)
    s = int(np.count_nonzero(a)) if s is None else s
    zigzag = descents.legs(dominant(W, s), theta)
    turns = zigzag.turns[: int(zigzag.number) + 1].tolist() if zigzag.number else []
    falls = bool(zigzag.falls_first)
    # Before the first turn and after the last nothing of size theta happens: it joins its neighbour.
    turns[:1], turns[-1:] = ([0], [len(times) - 1]) if turns else ([], [])
    moves, arrival = _moves(W, s), _arrivals(W, s)
    spans = list(pairwise(turns))
    home: dict[int, list[tuple[int, int]]] = {}
    for k in np.argsort(arrival, kind="stable"):
        if arrival[k] < len(W) and any(growing := [(n % 2 == 0) != falls for n in range(len(spans))]):
            rises = [moves[first:last, k, k].sum() for first, last in spans]
            home.setdefault(int(np.argmax(np.where(growing, rises, -np.inf))), []).append(
                (int(arrival[k]), int(k))
            )
    parts: list[tuple[int, int, int | None, bool]] = []
    for n, (first, last) in enumerate(spans):
        falling = (n % 2 == 0) == falls
        cuts = [(first, last, None)] if falling else _cuts(W, first, last, home.get(n, []))
        parts += [(*cut, falling) for cut in cuts]

    found, numbers = [], {"growth": 0, "suppression": 0}
    for first, last, learnt, falling in parts:
        kind = "suppression" if falling else "growth"
        total = np.abs(moves[first:last].sum(axis=0).clip(*((None, 0) if falling else (0, None))))
        i, j = divmod(int(np.argmax(total)), s) if learnt is None else (learnt, learnt)
        numbers[kind] += 1
        here = slice(first, last + 1)
        found.append(
            Stage(
                kind=kind,
                number=numbers[kind],
                start=float(times[first]),
                end=float(times[last]),
                driver=(i, j),
                change=float(abs(W[last, i, j]) - abs(W[first, i, j])),
                cause=_cause(times[here], W[here], a, (i, j)) if falling else None,
            )
        )
    return found


def shares(W: Float[ArrayLike, "T d d"], target: Float[ArrayLike, " d"]) -> Float[np.ndarray, "T-1 d d"]:
    """What each entry's movement contributes to each change of the loss at the test point.

    W [T, d, d], target [d].  The loss is quadratic in W, so with the mean residual of the interval
    the entries' shares sum to its change exactly, however far apart the samples.
    """
    W, target = np.asarray(W, float), np.asarray(target, float)
    residual = W @ target - target
    middle = (residual[1:] + residual[:-1]) / 2
    return middle[:, :, None] * np.diff(W, axis=0) * target


def loss_legs(
    times: Float[ArrayLike, " T"],
    W: Float[ArrayLike, "T d d"],
    target: Float[ArrayLike, " d"],
    stages: list[Stage],
    theta: float = 0.01,
) -> list[LossLeg]:
    """The legs of the loss at the test point: the entry that makes each, and the stage it lines up with.

    times [T], W [T, d, d], target [d], stages: from `find`, theta: smallest leg in units of the
    first loss.  The driver is the pair (i, j), (j, i) with the largest share of the leg's sign.
    The stage is, among those of the driver's kind, the one during which the driver contributed
    most to the leg; None if there is none.
    """
    times, W = _finite(times, W)
    residual = W @ np.asarray(target, float) - np.asarray(target, float)
    loss = np.sum(residual**2, axis=-1) / 2
    parts = shares(W, target)
    pairs = np.triu(parts + np.swapaxes(parts, 1, 2), 1) + parts * np.eye(W.shape[-1])
    zigzag = descents.loss_legs(loss, theta)
    turns = zigzag.turns[: int(zigzag.number) + 1].tolist()
    found = []
    for first, last in pairwise(turns):
        change = float(loss[last] - loss[first])
        total = np.sign(change) * pairs[first:last].sum(axis=0)
        i, j = divmod(int(np.argmax(total)), W.shape[-1])
        kind = "growth" if abs(W[last, i, j]) > abs(W[first, i, j]) else "suppression"
        middle = (times[first:last] + times[first + 1 : last + 1]) / 2
        own = np.sign(change) * pairs[first:last, i, j]
        given = [
            own[(middle >= one.start) & (middle < one.end)].sum() if one.kind == kind else 0.0
            for one in stages
        ]
        best = int(np.argmax(given)) if given and max(given) > 0 else None
        found.append(
            LossLeg(
                start=float(times[first]),
                end=float(times[last]),
                change=change,
                driver=(i, j),
                kind=kind,
                stage=best,
                shares=parts[first:last].sum(axis=0),
            )
        )
    return found
