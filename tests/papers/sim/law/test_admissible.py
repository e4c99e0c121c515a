"""The size of the admissible region: closed form, brute force, and fixed digits."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from saltus.core.errors import BadInput
from saltus.papers.sim.law import admissible, assumptions

DIGITS = [
    [-85.8, -84.4, -74.9, -69.6, -62.1, -60.9, -65.8],
    [-102.3, -100.8, -91.3, -86.3, -80.7, -82.1, -94.9],
    [-117.4, -116.0, -106.7, -102.1, -98.4, -102.6, -123.2],
]


def test_table() -> None:
    # The digits are rounded to .1 (half a unit, and a little for -98.45).
    np.testing.assert_allclose(admissible.table(), DIGITS, atol=0.0501)


@pytest.mark.parametrize(
    ("s", "ratio", "log10_omega"), [(2, 18.0, -60.85), (3, 11.3, -80.59), (4, 8.87, -98.33)]
)
def test_best_ratio(s: int, ratio: float, log10_omega: float) -> None:
    R, best = admissible.best_ratio(s)
    assert pytest.approx(ratio, rel=4e-3) == R
    assert best == pytest.approx(log10_omega, abs=6e-3)
    around = [float(admissible.log10_omega_max(admissible.geometric(s, R * f))) for f in (0.99, 1.01)]
    assert max(around) < best


@pytest.mark.parametrize(
    ("a", "beta"),
    [
        ((1, 18), 1.0),
        ((1, 3.1), 1.0),
        ((1, 18), 2.0),
        ((1, 18), 10.0),
        ((1, 11.3, 127.69), 1.0),
        ((1, 8.87, 78.68, 697.9), 1.0),
        ((0.4, 1.9, 9.0), 1.5),
    ],
)
def test_closed_form_is_what_brute_force_finds(a: tuple[float, ...], beta: float) -> None:
    """The search evaluates the printed inequalities on a grid of (K, kappa, C, alpha, P) and nothing else."""
    beta = max(beta, 1 + 1e-9)
    closed = float(admissible.log10_omega_max(a, beta))
    assert admissible.log10_omega_search(a, beta) == pytest.approx(closed, abs=4e-3)


def test_what_constants_and_sizes_cost() -> None:
    best = float(admissible.log10_omega_max((1, 18)))
    assert best - admissible.log10_omega_max((1, 18), 2.0) == pytest.approx(5.0, abs=0.1)
    assert best - admissible.log10_omega_max((1, 18), 10.0) == pytest.approx(16.6, abs=0.1)
    assert best - admissible.log10_omega_max((1, 18), kappa=1.2) == pytest.approx(6.1, abs=0.1)
    assert best - admissible.log10_omega_max((1, 18), kappa=1.5) == pytest.approx(33.1, abs=0.1)
    assert best > admissible.log10_omega_max((1, 18), K=25.0)


def test_decide_agrees_at_the_edge() -> None:
    for a in ((1, 18), (1, 11, 121), (0.4, 1.9, 9.0)):
        edge = float(admissible.log10_omega_max(a, 1.5))
        W = np.ones((len(a),) * 2) + 0.5 * np.eye(len(a))
        assert assumptions.decide(a, 10 ** (edge - 0.01) * W, 1e-6).admissible
        assert not assumptions.decide(a, 10 ** (edge + 0.01) * W, 1e-6).admissible


def test_no_signal_no_region() -> None:
    assert admissible.log10_omega_max((1, 2.9)) == -math.inf
    assert admissible.log10_omega_max((18, 1)) == -math.inf
    assert admissible.log10_omega_max((0, 1)) == -math.inf
    assert admissible.log10_omega_search((1, 2.9)) == -math.inf
    # The worlds of figures 5, 8 and 9 break a_i > 3 a_j; that of figure 10 asks for omega < 1e-107.
    for mu in ((1, 1.5), (1, 1.5, 2.2), (1, 1.5, 2.2, 2.7)):
        a = np.array(mu) ** 2 / len(mu) + 0.05**2
        assert admissible.log10_omega_max(a) == -math.inf
    figure10 = np.array((0.7, 1.7, 3.0)) ** 2 / 3 + 0.05**2
    assert admissible.log10_omega_max(figure10) == pytest.approx(-107.3, abs=0.3)


def test_infimum_of_the_ratio() -> None:
    """3 with alpha free, 3 + 2(kappa-1)/K with alpha = min a; neither is reached."""
    held = [admissible.ratio_infimum(x, alpha_is_min=True) for x in (-86.0, -150.0)]
    free = [admissible.ratio_infimum(x) for x in (-70.0, -86.0, -100.0, -150.0)]
    assert held[1] == pytest.approx(3.01, abs=1e-6)
    assert all(x > y > 3 for x, y in itertools.pairwise(free))
    assert free[3] < 3.0001
    assert admissible.ratio_infimum(-60.0) == math.inf


def test_share_of_random_matrices_that_is_psd() -> None:
    share, positive = admissible.share_psd(3, 1.5, n=20000)
    assert share == pytest.approx(0.061, abs=0.006)
    assert positive == 1.0


def test_share_of_random_starts() -> None:
    a, eta = (1.0, 18.0), 1e-4
    shares = [admissible.share_admissible(a, eta, scale, n=1000) for scale in (0.1, 1e-31, 1e-33, 1e-36)]
    assert shares[0] == 0.0
    assert shares == sorted(shares)
    assert shares[-1] > 0.6
    assert admissible.share_admissible(a, 1e-3, 1e-36, n=50) == 0.0  # eta breaks D.2
    assert admissible.share_admissible((1.0, 18.0, 19.0), 1e-5, 1e-60, n=50) == 0.0


def test_is_admissible_is_decide_for_many() -> None:
    rng = np.random.default_rng(3)
    U = 10.0 ** rng.uniform(-34, -31, (60, 1, 1)) * rng.normal(size=(60, 2, 2))
    W = U @ U.transpose(0, 2, 1)
    W[0, 0, 1] = 0.0
    W[1] = -W[1]
    many = admissible.is_admissible((1.0, 18.0), W, 1e-4)
    one = [assumptions.decide((1.0, 18.0), w, 1e-4).admissible for w in W]
    np.testing.assert_array_equal(many, one)
    assert 5 < many.sum() < 55


@pytest.mark.parametrize("a", [(1.0, 18.0), (1.0, 11.0, 121.0)])
def test_random_starts_are_admissible_and_do_not_depend_on_how_many(a: tuple[float, ...]) -> None:
    W = admissible.random_starts(a, 8, seed=5)
    eta = 0.999 / (9 * 20 * max(a))
    assert admissible.is_admissible(a, W, eta).all()
    assert len(np.unique(W[:, 0, 0])) == 8
    np.testing.assert_array_equal(W[:3], admissible.random_starts(a, 3, seed=5))
    assert (np.abs(W).max((1, 2)) / np.abs(W).min((1, 2)) <= 1.5).all()
    if len(a) == 3:
        assert (W[:, 0, 1] * W[:, 0, 2] * W[:, 1, 2] > 0).all()
    with pytest.raises(BadInput, match="exceed 3"):
        admissible.random_starts((1.0, 2.0), 2)
