"""Intervals: how sure a number is, given how many runs it came from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from saltus._lazy import np

LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A statistic with its interval and the number of runs behind it."""

    value: float
    low: float
    high: float
    n: int

    def __post_init__(self) -> None:
        # Plain Python numbers, whatever array library they came from.
        for name in ("value", "low", "high"):
            object.__setattr__(self, name, float(getattr(self, name)))
        object.__setattr__(self, "n", int(self.n))

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}] (n={self.n})"


def exact(value: float, n: int = 1) -> Estimate:
    """A number with no sampling in it: a closed form, or a maximum over all that was computed."""
    return Estimate(float(value), float(value), float(value), n)


def share(hits: Any, level: float = LEVEL) -> Estimate:
    """The fraction of runs in which something happened, with its Wilson interval.

    **Arguments:** `hits`: booleans, one a run.
    """
    hits = np.asarray(hits)
    return share_of(int(np.count_nonzero(hits)), hits.size, level)


def share_of(count: int, n: int, level: float = LEVEL) -> Estimate:
    """`share` from a count; Wilson (1927)."""
    if n == 0:
        return Estimate(math.nan, 0.0, 1.0, 0)
    z = NormalDist().inv_cdf(0.5 + level / 2)
    p = count / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # Exactly 0 and 1 at the ends, where rounding would put the interval beside the share itself.
    return Estimate(
        p, min(p, centre - half) if count else 0.0, max(p, centre + half) if count < n else 1.0, n
    )


def median(values: Any, level: float = LEVEL) -> Estimate:
    """The median with its distribution-free interval from order statistics.

    With fewer than six runs no pair of order statistics covers the median at 95%: the interval is then
    the whole real line, so a claim on so few runs never holds.
    """
    v = np.sort(np.asarray(values, float).ravel())
    n = v.size
    if n == 0 or not np.all(np.isfinite(v)):
        return Estimate(math.nan, -math.inf, math.inf, int(n))
    k = _binomial_rank(n, (1 - level) / 2)
    if k is None:
        return Estimate(float(np.median(v)), -math.inf, math.inf, n)
    return Estimate(float(np.median(v)), float(v[k]), float(v[n - 1 - k]), n)


def _binomial_rank(n: int, tail: float) -> int | None:
    """Largest k with P(Binomial(n, 1/2) <= k) <= tail, so that [x_(k+1), x_(n-k)] covers the median."""
    if n > 5000:  # normal approximation; the difference is below one rank in a thousand
        return int(n / 2 - NormalDist().inv_cdf(1 - tail) * math.sqrt(n) / 2) - 1
    total, k = 0.0, -1
    for i in range(n // 2):
        total += math.exp(math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) - n * math.log(2))
        if total > tail:
            break
        k = i
    return k if k >= 0 else None


def mean(values: Any, level: float = LEVEL) -> Estimate:
    """The mean with a normal interval; use it where runs are many or the spread is light-tailed."""
    v = np.asarray(values, float).ravel()
    n = v.size
    if n < 2 or not np.all(np.isfinite(v)):
        value = float(v[0]) if n == 1 else math.nan
        return Estimate(value, -math.inf, math.inf, int(n))
    half = NormalDist().inv_cdf(0.5 + level / 2) * float(v.std(ddof=1)) / math.sqrt(n)
    return Estimate(float(v.mean()), float(v.mean()) - half, float(v.mean()) + half, n)


def worst(values: Any) -> Estimate:
    """The largest of all values seen: no interval, it is what happened."""
    v = np.asarray(values, float).ravel()
    return exact(float(v.max()), int(v.size)) if v.size else exact(math.nan, 0)


def least(values: Any) -> Estimate:
    """The smallest of all values seen."""
    v = np.asarray(values, float).ravel()
    return exact(float(v.min()), int(v.size)) if v.size else exact(math.nan, 0)


def bootstrap(values: Any, statistic: Any, level: float = LEVEL, draws: int = 2000) -> Estimate:
    """Percentile bootstrap of `statistic(values)` over the first axis, with a fixed seed."""
    v = np.asarray(values, float)
    n = v.shape[0]
    if n == 0:
        return Estimate(math.nan, -math.inf, math.inf, 0)
    rng = np.random.default_rng(20250101)
    picks = rng.integers(0, n, (draws, n))
    found = np.asarray([statistic(v[p]) for p in picks], float)
    tail = (1 - level) / 2
    value = float(statistic(v))
    if n < 6 or not np.all(np.isfinite(found)):
        return Estimate(value, -math.inf, math.inf, n)
    low, high = np.quantile(found, [tail, 1 - tail])
    return Estimate(value, float(low), float(high), n)
