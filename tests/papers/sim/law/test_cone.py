"""Where the printed recursion leaves the PSD cone: the derived criterion against the recursion itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from saltus.core.errors import BadInput
from saltus.papers.sim.law import cone

LN10 = math.log(10)
FIG8 = np.array([1.0, 1.5, 2.2]) ** 2 / 3 + 0.05**2


@pytest.mark.parametrize(
    ("strong", "log10_omega", "measured", "formula"),
    [(18.0, -64.39509, 0.6952, 0.6928), (5.0, -74.16, 0.7409, 0.7384), (3.1, -90.17778, 0.7701, 0.7677)],
)
def test_critical_correlation(strong: float, log10_omega: float, measured: float, formula: float) -> None:
    eta, ln_omega = 0.999 / (9 * 20 * strong), log10_omega * LN10
    assert cone.rho2_bound(1.0, strong, eta, ln_omega) == pytest.approx(formula, abs=6e-5)
    assert cone.critical_rho2((1.0, strong), eta, ln_omega) == pytest.approx(measured, abs=6e-5)


def test_the_bound_is_leading_order() -> None:
    """Its relative error in ln rho^2 is linear in eta, over a floor O(1/ln(1/omega)) from saturation."""
    ln_omega, etas = math.log(1e-64), (1e-2, 5e-3, 2.5e-3)
    error = []
    for eta in etas:
        found = cone.critical_rho2((1.0, 4.0), eta, ln_omega, tolerance=1e-8)
        error.append(1 - math.log(found) / math.log(cone.rho2_bound(1.0, 4.0, eta, ln_omega)))
    assert (error[0] - error[1]) / (error[1] - error[2]) == pytest.approx(2.0, abs=0.15)
    floor = 2 * error[2] - error[1]
    assert 0 < floor < 1 / -ln_omega


def test_fate_of_one_start() -> None:
    U = np.array([[0.06, 0.03, 0.005], [0.002, 0.08, 0.09], [0.06, 0.07, 0.05]])
    path = cone.follow(FIG8, U @ U.T, 0.01, [0, 1, 2, 10, 100, 529, 1000, 1400])
    assert path.smallest[0, 0] > 0
    assert path.left[0] == 1
    assert path.negative_diagonal[0] == 529
    assert path.diverged[0] == pytest.approx(1298, abs=5)  # there by the loss, here by |w| > 1e6
    # The weakest rate takes over: doubling every ln 2/(2 a_1 eta) steps.
    grown = path.smallest[6, 0] / path.smallest[5, 0]
    assert math.log(grown) > 0.9 * 2 * FIG8[0] * 0.01 * 471
    assert (np.sign(path.correlation[:5, 0]) == np.sign(path.smallest[:5, 0])).all()
    assert np.isfinite(path.W).all()


def test_gradient_flow_limit_never_leaves() -> None:
    """Control: a start with room keeps its rank through the same recursion."""
    path = cone.follow(FIG8, 0.01 * (np.eye(3) + 0.1), 0.001, [0, 100, 1000, 20_000])
    assert path.left.tolist() == path.negative_diagonal.tolist() == path.diverged.tolist() == [-1]
    np.testing.assert_allclose(path.W[-1, 0], np.eye(3), atol=1e-2)


@pytest.mark.parametrize(
    ("width", "predicted"), [(3, [0.421, 0.258, 0.137, 0.084]), (4, [0.168, 0.067, 0.023])]
)
def test_share_predicted_from_the_linear_phase(width: int, predicted: list[float]) -> None:
    U = 0.1 * np.random.default_rng(7).random((20_000, 3, width))
    W = U @ U.transpose(0, 2, 1)
    shares = [
        float(np.mean(cone.doomed_by_linear_phase(FIG8, W, eta)))
        for eta in (0.03, 0.01, 0.003, 0.001)[: len(predicted)]
    ]
    # The digits are of 1024 starts.
    for share, digit in zip(shares, predicted, strict=True):
        assert share == pytest.approx(digit, abs=3 * math.sqrt(digit * (1 - digit) / 1024))


def test_prediction_matches_the_recursion_start_by_start() -> None:
    U = 0.1 * np.random.default_rng(1).random((512, 3, 3))
    W = U @ U.transpose(0, 2, 1)
    path = cone.follow(FIG8, W, 0.01, [10_000])
    lost = path.negative_diagonal >= 0
    assert lost.mean() == pytest.approx(0.25, abs=0.06)
    assert np.mean(lost == cone.doomed_by_linear_phase(FIG8, W, 0.01)) > 0.97


@pytest.mark.parametrize("width", [3, 4])
def test_power_law_of_the_linear_phase(width: int) -> None:
    """The doomed share falls as eta^((d'-d+1)/2): a half at d' = d, one with a spare column."""
    U = 0.1 * np.random.default_rng(2).random((100_000, 3, width))
    W = U @ U.transpose(0, 2, 1)
    etas = np.array([3e-3, 1e-3, 3e-4])
    share = [np.mean(cone.doomed_by_linear_phase(FIG8, W, eta)) for eta in etas]
    slope = np.polyfit(np.log(etas), np.log(share), 1)[0]
    assert slope == pytest.approx(cone.exponent(3, width), abs=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("width", [3, 4])
def test_power_law_of_the_recursion(width: int) -> None:
    """The recursion's own doomed share follows the linear phase down in eta, start by start."""
    U = 0.1 * np.random.default_rng(2).random((4096, 3, width))
    W = U @ U.transpose(0, 2, 1)
    for eta in (0.01, 0.003, 0.001):
        lost = cone.follow(FIG8, W, eta, [int(30 / eta)]).left >= 0
        doomed = cone.doomed_by_linear_phase(FIG8, W, eta)
        assert np.mean(lost != doomed) < 0.2 * doomed.mean() + 4 / len(W)


def test_bad_input_is_named() -> None:
    with pytest.raises(BadInput, match="weak"):
        cone.critical_rho2((2.0, 1.0), 0.01, -10.0)
    with pytest.raises(BadInput, match="increasing"):
        cone.follow((1.0, 2.0), np.eye(2), 0.01, [3, 2])
    with pytest.raises(BadInput, match="axes"):
        cone.follow((1.0, 2.0), np.eye(3), 0.01, [3])
    with pytest.raises(BadInput, match="rank deficient"):
        cone.exponent(3, 2)
