"""The detector of stages: its false alarms on nulls it was not calibrated on, its power, its invariants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saltus.core import stages
from saltus.core.errors import BadInput
from saltus.core.stats import share

T = 48
X = np.linspace(0, 1, T)


def noise(rng: Any, n: int, rho: float) -> np.ndarray:
    y = rng.standard_normal((n, T))
    y[:, 1:] *= np.sqrt(1 - rho**2)
    for i in range(1, T):
        y[:, i] += rho * y[:, i - 1]
    return y


def spline(rng: Any) -> np.ndarray:
    return stages._trend(T, 6) @ rng.uniform(-20, 20, 6)


def logistic(rng: Any) -> np.ndarray:
    """Not in the span of the spline: two logistic rises, the quickest over half of the curve."""
    rises = [(rng.uniform(-8, 8), rng.uniform(0.2, 0.8), rng.uniform(0.12, 0.3)) for _ in range(2)]
    return sum((h / (1 + np.exp(-(X - m) / w)) for h, m, w in rises), np.zeros(T))


@pytest.mark.parametrize("n", [1, 6])
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_false_alarms_are_as_rare_as_said(n: int, rho: float) -> None:
    rng = np.random.default_rng(5)
    alarms = [stages.find(spline(rng) + noise(rng, n, rho)).count > 0 for _ in range(300)]
    assert share(alarms, level=0.999).low <= 0.05
    # Trends that the spline only comes near, twenty times as high as the noise, make it 9% at worst.
    alarms = [stages.find(logistic(rng) + noise(rng, n, rho)).count > 0 for _ in range(150)]
    assert share(alarms, level=0.999).low <= 0.09


@pytest.mark.parametrize(("n", "height"), [(1, 12.0), (6, 4.0)])
def test_planted_stages_are_found(n: int, height: float) -> None:
    rng = np.random.default_rng(7)
    planted = np.array([10.5, 22.5, 36.5])
    steps = height * sum((np.arange(T) > p).astype(float) for p in planted)
    hits = 0
    for _ in range(40):
        found = stages.find(logistic(rng) + steps + noise(rng, n, 0.5))
        near = [abs(found.at - p).min(initial=99.0) <= 1.5 for p in planted]
        hits += all(near) and found.count <= 4
    assert hits >= 32


def test_ramps_are_one_stage_each() -> None:
    rng = np.random.default_rng(3)
    look = np.arange(T)
    curve = 5 * np.clip((look - 12) / 4, 0, 1) + 5 * np.clip((look - 30) / 3, 0, 1) - 6 * (look > 40)
    found = stages.find(curve + 0.2 * noise(rng, 8, 0.3), x=10.0**X)
    assert found.count == 3
    assert found.rises == 2
    np.testing.assert_allclose(found.height, [5, 5, -6], atol=0.8)
    np.testing.assert_allclose(found.at, np.interp([14, 31.5, 40.5], look, 10.0**X), rtol=0.05)
    assert (found.statistic > found.threshold).all()
    assert abs(found.fit - curve).max() < 0.7


@given(st.floats(0.01, 1e3), st.floats(-100, 100), st.floats(-50, 50), st.integers(0, 5))
def test_units_and_trends_change_nothing(scale: float, shift: float, slope: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = 4 * (np.arange(T) > 20) + noise(rng, 4, 0.4)
    one, other = stages.find(y), stages.find(scale * (y + shift + slope * X + 3 * X**2))
    assert one.at.tolist() == pytest.approx(other.at.tolist(), abs=1.01)
    assert one.highest == pytest.approx(other.highest, rel=0.05)
    assert other.noise == pytest.approx(scale * one.noise, rel=1e-6)


def test_the_statistic_is_that_of_least_squares() -> None:
    """Squared height over its variance, by the normal equations with the whole covariance."""
    rng = np.random.default_rng(5)
    y = 6 * (np.arange(T) > 20) + noise(rng, 5, 0.4)
    found = stages.find(y, most=1)
    rho, sigma = found.correlation, found.noise
    lag = abs(np.arange(T)[:, None] - np.arange(T))
    inverse = np.linalg.inv(rho**lag / (1 - rho**2))
    ramps, middle = stages._ramps(T)
    column = ramps[:, [k for k in np.flatnonzero(middle == found.at[0])]]
    best = 0.0
    for c in column.T:
        D = np.column_stack([stages._trend(T, 6), c])
        covariance = np.linalg.inv(D.T @ inverse @ D)
        height = (covariance @ D.T @ inverse @ y.mean(0))[-1]
        best = max(best, float(height**2 / covariance[-1, -1] / sigma**2))
    assert found.statistic[0] == pytest.approx(best, rel=1e-6)


def test_nothing_but_a_trend_has_no_stage() -> None:
    for y in (np.zeros(T), np.linspace(0, 3, T), np.repeat((X**2)[None], 3, 0)):
        assert stages.find(y).count == 0


@pytest.mark.parametrize(
    ("y", "options", "says"),
    [
        (np.zeros(10), {}, "24 looks or more"),
        (np.full(40, np.nan), {}, "finite"),
        (np.zeros((2, 3, 40)), {}, "24 looks or more"),
        (np.zeros(40), dict(x=np.zeros(39)), "x has shape"),
        (np.zeros(40), dict(smooth=20), "smooth lies between"),
        (np.zeros(40), dict(alarm=0.0), "alarm lies between"),
    ],
)
def test_bad_curves_are_one_line(y: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        stages.find(y, **options)
