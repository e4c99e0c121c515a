"""The checker of D.1-D.5 against fixed numbers, its own inequalities, and a brute-force grid."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saltus.core.errors import BadInput
from saltus.papers.sim.law import admissible, assumptions
from saltus.papers.sim.law.inequalities import LN10, failing

SHAPE = np.ones((2, 2)) + 0.5 * np.eye(2)  # beta = 1.5
FIXED = {"K": 20.0, "kappa": 1.1001}


@pytest.mark.parametrize(
    ("a", "omega", "x_lo", "x_hi", "decades"),
    [
        ((1, 18), 1e-65, 139.018, 139.211, 0.084),
        ((1, 18), 1e-60, 128.298, 127.698, -0.26),
        ((0.5025, 1.1275), 1e-3, 6.335, -1.467, -3.39),
    ],
)
def test_window_of_P(a: tuple[float, float], omega: float, x_lo: float, x_hi: float, decades: float) -> None:
    found = assumptions.decide(a, omega * SHAPE, 1e-5, **FIXED)
    assert found.window is not None
    assert found.window.x_lo == pytest.approx(x_lo, abs=6e-4)
    assert found.window.x_hi == pytest.approx(x_hi, abs=6e-4)
    assert found.window.decades == pytest.approx(decades, abs=6e-3)
    assert found.admissible is (decades > 0)
    if decades < 0:
        names = {f.name: f.by for f in found.failures}
        assert names["D.4+D.5"] == pytest.approx(-decades, abs=6e-3)
        assert ("D.5 gap" in names) is (a[1] < 3 * a[0])


@pytest.mark.parametrize(
    ("a", "log10_omega", "ln_P", "eta", "d3", "d4", "d5", "gap"),
    [
        ((1, 18), -64.39509, 137.76844, 3.08333e-4, 3.99, 0.022, 0.001, 14.99),
        ((1, 3.1), -90.17778, 198.89423, 1.790323e-3, 3.23, 0.022, 0.0007, 0.09),
    ],
)
def test_explicit_admissible_starts(
    a: tuple[float, float],
    log10_omega: float,
    ln_P: float,
    eta: float,
    d3: float,
    d4: float,
    d5: float,
    gap: float,
) -> None:
    W0 = 10**log10_omega * (np.ones((2, 2)) + 0.45 * np.eye(2))
    c = assumptions.Constants(1.0, a[1] / a[0], 1.5, math.log(10) * log10_omega, 20.0, ln_P, 1.1001, 99.0)
    m = assumptions.margins(a, np.log(W0), eta, c)
    assert failing(m) == []
    got = [m["D.2"], m["D.3"], m["D.4"], m["D.5 growth"], m["D.5 gap"]]
    np.testing.assert_allclose(got, [0.0004, d3, d4, d5, gap], rtol=0.05, atol=5e-5)
    assert assumptions.decide(a, W0, eta, **FIXED, C=99.0).admissible
    assert assumptions.decide(a, W0, eta, **FIXED, C=99.0, P=math.exp(ln_P)).admissible


def test_a_fixed_constant_is_kept_and_can_fail() -> None:
    found = assumptions.decide((1, 18), 1e-70 * SHAPE, 1e-5, K=30, kappa=1.12, C=50, P=1e55)
    c = found.constants
    assert c is not None
    assert (c.K, c.kappa, c.C) == (30, 1.12, 50)
    assert c.ln_P == pytest.approx(55 * LN10)
    assert [f.name for f in found.failures] == ["D.5 growth"]
    assert assumptions.decide((1, 18), 1e-75 * SHAPE, 1e-5, K=19).failures[0].name == "K"
    assert {f.name for f in assumptions.decide((1, 18), 1e-75 * SHAPE, 1e-5, kappa=1.1).failures} == {
        "D.4 kappa"
    }
    assert "C" in {f.name for f in assumptions.decide((1, 18), 1e-75 * SHAPE, 1e-5, C=1.0).failures}
    assert assumptions.decide((1, 18), 1e-75 * SHAPE, 1e-5, K=20, C=500).failures[0].name == "D.4 kappa/C"


@pytest.mark.parametrize(
    ("a", "W0", "name"),
    [
        ((0.0, 1, 18), np.ones((3, 3)) + np.eye(3), "D.1 signal"),
        ((1, 18), np.eye(2), "D.1 zero entry"),
        ((1, 18), np.array([[1.0, 2.0], [2.0, 1.0]]), "psd"),
        ((1, 18), np.array([[1.0, 0.5], [0.6, 1.0]]), "symmetric"),
        ((1, 18), np.array([[1.0, np.nan], [np.nan, 1.0]]), "finite"),
    ],
)
def test_unfit_inputs_are_named(a: tuple[float, ...], W0: np.ndarray, name: str) -> None:
    found = assumptions.decide(a, 1e-120 * W0, 1e-6)
    assert not found.admissible
    assert name in {f.name for f in found.failures}
    assert "\n" not in found.explain()


def test_step_size_and_shapes() -> None:
    found = assumptions.decide((1, 18), 1e-66 * SHAPE, 3.1e-4)
    assert [f.name for f in found.failures] == ["D.2"]
    assert found.failures[0].by == pytest.approx(math.log10(3.1e-4 * 9 * 20 * 18))
    with pytest.raises(BadInput, match="must be"):
        assumptions.decide((1, 18, 20), SHAPE, 1e-4)
    with pytest.raises(BadInput, match="eta"):
        assumptions.decide((1, 18), SHAPE, 0.0)


def test_the_main_text_order_never_works() -> None:
    """With the strongest axis first, a_i - 3a_j is negative for every i > j."""
    up = assumptions.decide((1, 18), 1e-66 * SHAPE, 1e-5)
    down = assumptions.decide((18, 1), 1e-66 * SHAPE, 1e-5)
    assert up.admissible
    assert up.descending_gap == -53
    assert not down.admissible
    assert down.descending_gap == 15
    assert "reverse the axes" in down.explain()


def test_equal_entries_and_one_axis() -> None:
    assert assumptions.decide((1, 18), 1e-62 * np.ones((2, 2)), 1e-5).admissible
    assert assumptions.decide((2.0,), [[1e-5]], 1e-4).admissible


def test_a_smaller_alpha_admits_what_min_a_does_not() -> None:
    """D.1 asks alpha <= a_k only: below a ratio of 3.01 a smaller alpha meets a_i - 3a_j >= alpha/C."""
    found = assumptions.decide((1, 3.004), 1e-103 * np.ones((2, 2)), 1e-4, K=20)
    assert found.admissible
    assert found.constants is not None
    assert found.constants.alpha < 0.5


START = st.tuples(
    st.floats(2.0, 30.0), st.floats(-110.0, -50.0), st.floats(1.01, 4.0), st.sampled_from((-1.0, 1.0))
)


@settings(max_examples=25, deadline=None)
@given(START)
def test_decision_is_what_a_grid_of_constants_finds(case: tuple[float, float, float, float]) -> None:
    R, log10_omega, beta, sign = case
    W0 = 10**log10_omega * np.array([[beta, sign], [sign, beta]])
    found = assumptions.decide((1, R), W0, 1e-6)
    a = np.array([1.0, R])
    ln_omega, ln_P = log10_omega * LN10, np.linspace(0.7, -log10_omega * LN10, 4001)
    worst = max(
        float(np.max(admissible.worst_margin(a, ln_omega, beta, 20.0, kappa, C, alpha, ln_P)))
        for kappa in (1.1 * (1 + 1e-9), 1.15, 1.3, 2.0)
        for C in (1.01, 10.0, 99.99)
        for alpha in (1.0, 0.3, 0.1, 0.01)
    )
    if found.admissible:
        assert found.constants is not None
        assert failing(assumptions.margins(a, np.log(np.abs(W0)), 1e-6, found.constants)) == []
    else:
        assert worst < 0
    if worst > 0:
        assert found.admissible
