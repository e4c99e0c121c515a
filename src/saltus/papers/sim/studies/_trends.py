"""What is read off a path: which axis leads, how fast it ends, and where the lead changes hands."""

from __future__ import annotations

from typing import Any

from saltus._lazy import np
from saltus.core import stats
from saltus.core.stats import Estimate

__all__ = ["bulge", "crossing", "fitted_rate", "passage", "slowing"]


def bulge(g: Any) -> Any:
    """The extreme of g_2 - g_1 along each path, with its sign; g [..., step, 2].

    Positive when the path runs above the diagonal: axis 2 leads.
    """
    with np.errstate(invalid="ignore"):
        gap = np.asarray(g[..., 1] - g[..., 0], float)
    widest = np.argmax(np.nan_to_num(np.abs(gap), nan=-1.0, posinf=np.inf), axis=-1)
    found = np.take_along_axis(gap, widest[..., None], -1)[..., 0]
    return np.where(np.isfinite(gap).all(-1), found, np.nan)


def passage(step: Any, x: Any, level: Any) -> Any:
    """The (real) step at which x first reaches `level` from below, NaN if never; x [..., step]."""
    x, step = np.asarray(x, float), np.asarray(step, float)
    over = x >= np.asarray(level)[..., None]
    first = np.argmax(over, axis=-1)
    before = np.maximum(first - 1, 0)

    def at(index: Any) -> Any:
        return np.take_along_axis(x, index[..., None], -1)[..., 0]

    with np.errstate(invalid="ignore", divide="ignore"):
        part = np.where(first > 0, (np.asarray(level) - at(before)) / (at(first) - at(before)), 0.0)
    found = step[before] + part * (step[first] - step[before])
    return np.where(over.any(-1), found, np.nan)


def fitted_rate(step: Any, g: Any, eta: float, high: float = 0.5, low: float = 0.02) -> Any:
    """The rate per unit of time at which 1 - g decays between `high` and `low`; g [..., step].

    Least squares on ln(1 - g), from its first passage of `high` to its first passage of `low`; NaN with
    fewer than four looks in between.
    """
    rest = 1 - np.asarray(g, float)
    begun = np.maximum.accumulate(rest < high, axis=-1)
    ended = np.maximum.accumulate(~(rest > low), axis=-1)
    inside = begun & ~ended
    y = np.log(np.where(inside, rest, 1.0))
    n = inside.sum(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        time = eta * np.asarray(step, float)
        middle_t = (inside * time).sum(-1) / n
        middle_y = y.sum(-1) / n
        off = inside * (time - middle_t[..., None])
        slope = (off * (y - middle_y[..., None])).sum(-1) / (off**2).sum(-1)
    return np.where(n >= 4, -slope, np.nan)


def slowing(step: Any, loss: Any, start: float, end: float) -> Any:
    """Steps that take the loss from `start` to `end`, over those for its first fall of the same size.

    loss [..., step]; levels in units of the loss before training.  A run that ends before counts with the
    steps it had: a lower bound.
    """
    loss = np.asarray(loss, float)
    fallen, whole = 1 - loss / loss[..., :1], np.isfinite(loss).all(-1)

    def reached(level: float) -> Any:
        found = passage(step, fallen, np.full(loss.shape[:-1], 1 - level))
        return np.where(np.isnan(found) & whole, np.asarray(step)[-1], found)

    with np.errstate(invalid="ignore", divide="ignore"):
        return (reached(end) - reached(start)) / reached(1 - (start - end))


def crossing(at: Any, values: Any, over: float = 1.0) -> Estimate:
    """Where the mean over seeds changes sign, divided by `over`, with its bootstrap interval.

    at [setting] ascending; values [setting, seed].  Seeds are drawn again together: each is the same
    network in every setting.
    """
    at, values = np.asarray(at, float), np.asarray(values, float)
    return stats.bootstrap(values.T, lambda v: root(at, v.mean(axis=0)) / over)


def root(at: Any, y: Any) -> float:
    """The place where y changes sign, by linear interpolation; the middle one of several, NaN of none."""
    turn = np.flatnonzero((y[:-1] > 0) != (y[1:] > 0))
    if turn.size == 0 or not np.isfinite(y).all():
        return float("nan")
    i = turn[turn.size // 2]
    return float(at[i] + (at[i + 1] - at[i]) * y[i] / (y[i] - y[i + 1]))
