"""Stages in a curve, found without an eye: rises too quick for a smooth trend, at a stated false-alarm rate.

The null model of a curve y_1 .. y_T, evenly spaced (as looks at log-spaced steps are in the logarithm), is

    y_i = trend_i + noise_i

with the trend a natural cubic spline of `smooth` degrees of freedom and the noise Gaussian, autoregressive of
order one. A stage is a ramp over one to six looks that the curve has besides. Of several curves (heads,
seeds) the mean is looked at, and how they differ gives the noise; of one curve, medians of its
differences do. The threshold is calibrated on simulated nulls that go through all of this,
estimates included, so that a curve without stages has one found in it with probability `alarm`. A trend
that the spline cannot follow is taken for stages a little more often: for logistic rises of scale 0.12 of
the curve and twenty times the noise, 9% instead of 5%.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.core.errors import BadInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

__all__ = ["Stages", "find"]

WIDTHS = (1, 2, 3, 4, 6)  # looks that a ramp takes
APART = 3  # looks between two stages
GRID = (0.0, 0.3, 0.6, 0.8, 0.9, 0.95, 0.98)  # correlations of neighbouring noise that are calibrated
LEAST = 24  # looks


@dataclass(frozen=True)
class Stages:
    """What was found in one curve.

    - `at`, `height`, `statistic`: of each stage in order of `at`: the look at its middle (a number of looks,
      or where it lies along `x`), the size of its step, and its squared size in units of its own standard
      deviation; `threshold`: what each had to exceed; `highest`: the largest one of the curve.
    - `noise`, `correlation`: the estimates for the curve; `fit` [T]: trend and stages.
    """

    at: Array
    height: Array
    statistic: Array
    threshold: float
    highest: float
    noise: float
    correlation: float
    fit: Array

    @property
    def count(self) -> int:
        return len(self.at)

    @property
    def rises(self) -> int:
        """Stages that go up."""
        return int((self.height > 0).sum())


def find(
    y: Any, x: Any = None, *, smooth: int = 6, alarm: float = 0.05, most: int = 12, draws: int = 600
) -> Stages:
    """The stages of a curve, or of the mean of several.

    **Arguments:** `y` [T] or [n, T], at evenly spaced looks; `x` [T]: where the looks lie, for `at`;
    `smooth`: degrees of freedom of the trend; `alarm`: probability of finding any stage where there is none;
    `most`: how many stages are looked for; `draws`: simulated nulls for each correlation.
    """
    y = np.atleast_2d(np.asarray(y, float))
    _check(y, x, smooth, alarm)
    n, T = y.shape
    place = np.arange(T) if x is None else np.asarray(x, float)
    scale = float(np.ptp(y)) or 1.0
    curve, design = y.mean(0) / scale, _trend(T, smooth)
    ramps, middle = _ramps(T)
    rho, sigma = (float(v[0]) for v in _noise(y[None] / scale, smooth))
    if sigma < 1e-12:  # the trend and a few ramps say it all: rounding is no evidence
        return _none(place, curve * scale, rho)
    threshold = float(_threshold(rho, *_calibrated(T, smooth, n, alarm, draws)))
    search = _Search(curve, design, ramps, middle, rho, sigma)
    chosen = search.forward(threshold, most)
    D = np.column_stack([search.base, search.ramps[:, chosen]])
    weights = np.linalg.lstsq(D, search.curve, rcond=None)[0]
    order = np.argsort(middle[chosen]) if chosen else np.zeros(0, int)
    picked = np.asarray(chosen, int)[order]
    return Stages(
        at=np.interp(middle[picked], np.arange(T), place),
        height=weights[smooth:][order] * scale,
        statistic=np.asarray([search.alone(chosen, int(k)) for k in order], float),
        threshold=threshold,
        highest=search.highest,
        noise=sigma * scale,
        correlation=rho,
        fit=np.column_stack([design, ramps[:, chosen]]) @ weights * scale,
    )


class _Search:
    """Ramps chosen one after another, each moved to its best place once the others are there."""

    def __init__(self, curve: Array, trend: Array, ramps: Array, middle: Array, rho: float, sigma: float):
        self.curve, self.middle, self.sigma, self.highest = _whiten(curve, rho), middle, sigma, 0.0
        self.base, self.ramps = _whiten(trend.T, rho).T, _whiten(ramps.T, rho).T

    def statistics(self, chosen: list[int]) -> Array:
        """Of every ramp, given those chosen; none where one of them is near."""
        D = np.column_stack([self.base, self.ramps[:, chosen]])
        found = _gains(self.curve[None], D[None], self.ramps[None])[0] / self.sigma**2
        for k in chosen:
            found[abs(self.middle - self.middle[k]) < APART] = -np.inf
        return found

    def alone(self, chosen: list[int], k: int) -> float:
        """The statistic of the k-th ramp chosen, given the others."""
        return float(self.statistics([c for i, c in enumerate(chosen) if i != k])[chosen[k]])

    def forward(self, threshold: float, most: int) -> list[int]:
        chosen: list[int] = []
        while len(chosen) < most:
            found = self.statistics(chosen)
            best = int(found.argmax())
            if not chosen:
                self.highest = float(found[best])
            if found[best] <= threshold:
                break
            chosen = self.settled([*chosen, best])
        while chosen:
            least = min(range(len(chosen)), key=lambda k: self.alone(chosen, k))
            if self.alone(chosen, least) > threshold:
                break
            chosen = self.settled(chosen[:least] + chosen[least + 1 :])
        return chosen

    def settled(self, chosen: list[int]) -> list[int]:
        """Each ramp in turn where it explains most, until none moves."""
        for _ in range(10):
            before = list(chosen)
            for k in range(len(chosen)):
                others = chosen[:k] + chosen[k + 1 :]
                chosen[k] = int(self.statistics(others).argmax())
            if chosen == before:
                break
        return chosen


def _check(y: Array, x: Any, smooth: int, alarm: float) -> None:
    if y.ndim != 2 or y.shape[1] < LEAST:
        raise BadInput(f"stages need a curve of {LEAST} looks or more [T], or several [n, T]; got {y.shape}")
    if not np.isfinite(y).all():
        raise BadInput("stages need finite numbers; leave out the looks without them")
    if x is not None and np.shape(x) != y.shape[1:]:
        raise BadInput(f"stages: x has shape {np.shape(x)}, the curve {y.shape[1:]}")
    if not 3 <= smooth <= y.shape[1] // 3:
        raise BadInput(f"stages: smooth lies between 3 and a third of the looks, not {smooth}")
    if not 0.001 <= alarm <= 0.5:
        raise BadInput(f"stages: alarm lies between 0.001 and 0.5, not {alarm:g}")


def _none(place: Array, curve: Array, rho: float) -> Stages:
    nothing = np.zeros(0)
    return Stages(nothing, nothing, nothing, np.inf, 0.0, 0.0, rho, curve)


@lru_cache
def _trend(T: int, df: int) -> Array:
    """A natural cubic spline's basis [T, df], orthonormal (Hastie et al. 2009, eq. 5.4)."""
    x, knots = np.linspace(0, 1, T), np.linspace(0, 1, df)

    def d(k: int) -> Array:
        cubes = np.maximum(x - knots[k], 0) ** 3 - np.maximum(x - knots[-1], 0) ** 3
        return cubes / (knots[-1] - knots[k])

    columns = [np.ones(T), x, *[d(k) - d(df - 2) for k in range(df - 2)]]
    return np.linalg.qr(np.column_stack(columns))[0]


@lru_cache
def _ramps(T: int) -> tuple[Array, Array]:
    """Every ramp [T, m] from 0 to 1, and the look at its middle [m]; none within two looks of an end."""
    look = np.arange(T)
    found = [(w, a) for w in WIDTHS for a in range(1, T - w - 2)]
    columns = [np.clip((look - a) / w, 0, 1) for w, a in found]
    return np.stack(columns, 1), np.asarray([a + w / 2 for w, a in found])


def _whiten(y: Array, rho: Any) -> Array:
    """What is left of y [..., T] once each look is predicted from the last; of variance 1 - rho^2."""
    rho = np.asarray(rho)[..., None]
    first = y[..., :1] * np.sqrt(1 - rho**2)
    return np.concatenate([first, y[..., 1:] - rho * y[..., :-1]], axis=-1)


def _gains(y: Array, D: Array, C: Array) -> Array:
    """By how much each further column of C reduces the squared residual of y on D.

    y [B, T], D [B, T, p], C [B, T, m] -> [B, m]
    """
    Q = np.linalg.qr(D)[0]
    y = y - (Q @ (y[:, None] @ Q).transpose(0, 2, 1))[..., 0]
    across = (y[:, None] @ C)[:, 0]
    size = (C**2).sum(1) - ((Q.transpose(0, 2, 1) @ C) ** 2).sum(1)
    whole = (C**2).sum(1)
    return np.where(size > 1e-6 * whole, across**2 / np.maximum(size, 1e-300), 0.0)


def _noise(y: Array, df: int) -> tuple[Array, Array]:
    """Correlation and innovation of the noise in the mean curve [B], from y [B, n, T]."""
    n, T = y.shape[1:]
    Q = _trend(T, df)
    if n == 1:
        return _robust(y[:, 0] - y[:, 0] @ Q @ Q.T)
    # Where curves differ by more than a line they differ by noise: slow differences are noise too.
    left = (y - y.mean(1, keepdims=True)) * np.sqrt(n / (n - 1))
    left = left - left @ Q[:, :2] @ Q[:, :2].T
    total, cross = (left**2).sum((1, 2)), (left[..., 1:] * left[..., :-1]).sum((1, 2))
    rho = np.clip(cross / np.maximum(total, 1e-300), -0.3, max(GRID))
    return rho, np.sqrt((_whiten(left, rho[:, None]) ** 2).mean((1, 2)) / n * T / (T - 2))


def _robust(left: Array) -> tuple[Array, Array]:
    """Of what the trend leaves of single curves [B, T]: medians, which a few stages do not move much."""
    one, two = (np.median(abs(left[:, k:] - left[:, :-k]), axis=1) for k in (1, 2))
    # Of noise, differences over one and two looks have variances 2 (1 - rho) and 2 (1 - rho^2).
    rho = np.clip((two / np.maximum(one, 1e-300)) ** 2 - 1, -0.3, max(GRID))
    return rho, 1.4826 * np.median(abs(_whiten(left, rho)), axis=1)


@lru_cache(maxsize=64)
def _calibrated(T: int, df: int, n: int, alarm: float, draws: int) -> tuple[Array, Array]:
    """The correlation as estimated, and the threshold there, for every true correlation of the grid.

    A second set of nulls then raises all thresholds together until no correlation has more false alarms.
    """
    estimated, threshold = [], []
    for k, rho in enumerate(GRID):
        rho_hat, highest = _nulls(T, df, n, rho, draws, seed=k)
        estimated.append(float(np.median(rho_hat)))
        threshold.append(float(np.quantile(highest, 1 - alarm)))
    table = np.maximum.accumulate(estimated), np.maximum.accumulate(threshold)
    more = 1.0
    for k, rho in enumerate(GRID[:-1]):
        rho_hat, highest = _nulls(T, df, n, rho, draws, seed=100 + k)
        ratio = highest / _threshold(rho_hat, *table)
        more = max(more, float(np.quantile(ratio, 1 - alarm)))
    return table[0], table[1] * more


def _threshold(rho: Any, estimated: Array, threshold: Array) -> Any:
    return np.interp(rho, estimated, threshold)


def _nulls(T: int, df: int, n: int, rho: float, draws: int, seed: int) -> tuple[Array, Array]:
    """Curves of nothing but noise: correlation as estimated and largest statistic [draws].

    A trend in the span of the spline would change neither.
    """
    rng = np.random.default_rng([seed, T, df, n])
    y = rng.standard_normal((draws, n, T))
    y[..., 1:] *= np.sqrt(1 - rho**2)
    for i in range(1, T):
        y[..., i] += rho * y[..., i - 1]
    found = [_highest(part, df) for part in np.array_split(y, max(1, draws // 50))]
    return np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found])


def _highest(y: Array, df: int) -> tuple[Array, Array]:
    rho, sigma = _noise(y, df)
    T = y.shape[-1]
    D, C = (_whiten(a.T[None], rho[:, None]).transpose(0, 2, 1) for a in (_trend(T, df), _ramps(T)[0]))
    return rho, _gains(_whiten(y.mean(1), rho), D, C).max(1) / sigma**2
