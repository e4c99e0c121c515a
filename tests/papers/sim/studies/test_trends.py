"""What is read off a path, against paths whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saltus.papers.sim.studies import _trends

STEPS = np.arange(2000)


def exponential(rates: list[float], eta: float = 0.01) -> np.ndarray:
    return 1 - np.exp(-np.asarray(rates) * eta * STEPS[:, None])


def test_bulge_has_the_sign_of_the_leading_axis() -> None:
    paths = np.stack([exponential([1, 3]), exponential([3, 1]), exponential([2, 2])])
    up, down, none = _trends.bulge(paths)
    # The extreme of x - x^3 with x = exp(-t) is at x = 1/sqrt(3).
    assert up == pytest.approx(2 / 3**1.5, abs=1e-4)
    assert down == pytest.approx(-up)
    assert none == 0


def test_bulge_of_a_diverged_path_is_nan() -> None:
    path = exponential([1, 3])
    path[-1] = np.inf
    assert np.isnan(_trends.bulge(path))


@given(st.floats(0.2, 20), st.floats(0.001, 0.01))
@settings(max_examples=40, deadline=None)
def test_fitted_rate_of_an_exponential(rate: float, eta: float) -> None:
    g = 1 - np.exp(-rate * eta * STEPS)
    if rate * eta * STEPS[-1] > 1:
        assert _trends.fitted_rate(STEPS, g, eta) == pytest.approx(rate, rel=1e-6)


def test_fitted_rate_needs_a_window() -> None:
    assert np.isnan(_trends.fitted_rate(STEPS, np.full(2000, 0.1), 0.01))
    assert np.isnan(_trends.fitted_rate(np.arange(4), np.asarray([0.0, 0.3, 0.6, 0.99]), 1.0))


def test_passage_interpolates_and_is_nan_when_never() -> None:
    x = np.stack([np.linspace(0, 1, 11), np.linspace(0, 0.5, 11), np.ones(11)])
    found = _trends.passage(np.arange(11), x, np.asarray([0.75, 0.75, 0.5]))
    np.testing.assert_allclose(found, [7.5, np.nan, 0.0])


def test_slowing_of_an_exponential_and_of_a_straight_fall() -> None:
    loss = np.stack([np.exp(-0.01 * STEPS), np.maximum(1 - STEPS / 1999, 0)])
    slow, straight = _trends.slowing(STEPS, loss, 0.25, 0.05)
    assert slow == pytest.approx(np.log(5) / np.log(1 / 0.8), rel=1e-3)
    assert straight == pytest.approx(1.0, rel=1e-3)


def test_slowing_of_a_run_cut_short_is_a_lower_bound() -> None:
    loss = np.exp(-0.01 * STEPS)
    whole = _trends.slowing(STEPS, loss, 0.25, 0.05)
    assert 0 < _trends.slowing(STEPS[:200], loss[:200], 0.25, 0.05) < whole


def test_crossing_is_found_with_an_interval_and_nan_where_there_is_none() -> None:
    at, rng = np.linspace(0, 2, 9), np.random.default_rng(0)
    values = (1.2 - at)[:, None] + 0.1 * rng.standard_normal((9, 64))
    found = _trends.crossing(at, values)
    assert found.low < 1.2 < found.high
    assert found.high - found.low < 0.2
    assert _trends.crossing(at, values, 1.2).value == pytest.approx(found.value / 1.2)
    assert np.isnan(_trends.root(at, at + 1))
