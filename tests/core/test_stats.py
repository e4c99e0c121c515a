from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saltus.core import stats

Z = 1.959963984540054  # the normal distribution's 97.5% point


def binomial_cdf(k: int, n: int) -> float:
    term = total = 1
    for i in range(k):
        term = term * (n - i) // (i + 1)
        total += term
    return total / 2**n


@given(st.integers(1, 400), st.data())
def test_wilson_solves_its_own_equation(n: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, n))
    e = stats.share_of(count, n)
    assert e.value == count / n
    assert 0 <= e.low <= e.value <= e.high <= 1
    # The ends are where the score test just rejects: |p - q| = z sqrt(q (1 - q) / n).
    for q in (e.low, e.high):
        if 0 < q < 1:
            assert abs(count / n - q) == pytest.approx(Z * math.sqrt(q * (1 - q) / n), rel=1e-9)


def test_wilson_against_published_numbers() -> None:
    # Newcombe (1998), Statistics in Medicine 17, table I, method 3.
    for count, n, low, high in [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611)]:
        e = stats.share_of(count, n)
        assert (round(e.low, 4), round(e.high, 4)) == (low, high)
    assert stats.share([True, False, True, True]).value == 0.75
    assert math.isnan(stats.share([]).value)


@pytest.mark.parametrize("n", [*range(1, 80), 200, 999])
def test_median_interval_is_the_tightest_that_covers(n: int) -> None:
    e = stats.median(np.arange(n, dtype=float))
    if n < 6:
        assert (e.low, e.high) == (-math.inf, math.inf)
        return
    k = round(e.low)
    assert e.high == n - 1 - k
    assert binomial_cdf(k, n) <= 0.025 < binomial_cdf(k + 1, n)


@pytest.mark.parametrize("n", [5001, 8000])
def test_median_interval_of_many_runs(n: int) -> None:
    e = stats.median(np.arange(n, dtype=float))
    k = round(e.low)
    assert 0.0235 < binomial_cdf(k, n) <= 0.025


def test_median_interval_covers_in_simulation() -> None:
    rng = np.random.default_rng(0)
    drawn = rng.standard_cauchy((2000, 25))
    ends = [(e.low, e.high) for e in map(stats.median, drawn)]
    covered = np.mean([low <= 0 <= high for low, high in ends])
    assert 0.945 < covered < 0.975  # exact: 0.9567


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [1.0] * 9 + [math.inf]])
def test_no_median_where_a_run_left_the_numbers(values: list[float]) -> None:
    e = stats.median(values)
    assert math.isnan(e.value)
    assert (e.low, e.high, e.n) == (-math.inf, math.inf, len(values))


def test_mean_covers_and_needs_two() -> None:
    rng = np.random.default_rng(1)
    ends = [(e.low, e.high) for e in map(stats.mean, rng.standard_normal((2000, 50)))]
    assert 0.925 < np.mean([low <= 0 <= high for low, high in ends]) < 0.965  # normal, not t: a little short
    assert stats.mean([3.0]).low == -math.inf
    assert stats.mean([1.0, 3.0]).value == 2.0
    assert math.isnan(stats.mean([1.0, math.nan]).value)


def test_extremes_and_exact() -> None:
    assert stats.worst([1.0, 5.0, 2.0]) == stats.exact(5.0, 3)
    assert stats.least([1.0, 5.0, 2.0]) == stats.exact(1.0, 3)
    assert math.isnan(stats.worst([1.0, math.nan]).value)
    assert math.isnan(stats.worst([]).value)
    assert str(stats.exact(0.5)) == "0.5 [0.5, 0.5] (n=1)"


def test_bootstrap_agrees_with_the_normal_interval_of_a_mean() -> None:
    values = np.random.default_rng(2).standard_normal(400)
    by_draws, by_formula = stats.bootstrap(values, np.mean), stats.mean(values)
    assert by_draws.value == by_formula.value
    assert by_draws.low == pytest.approx(by_formula.low, abs=0.01)
    assert by_draws.high == pytest.approx(by_formula.high, abs=0.01)
    assert stats.bootstrap(values, np.mean) == by_draws  # its seed is fixed
    assert stats.bootstrap(values[:5], np.mean).high == math.inf
    assert math.isnan(stats.bootstrap([], np.mean).value)
    # Rows are runs: whole rows are drawn.
    pairs = np.stack([values, 2 * values], 1)
    assert stats.bootstrap(pairs, lambda v: np.ptp(v @ [2, -1]), draws=20).high == 0
