"""The first stage: its closed form against an integrator, its invariant, its end."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saltus._jax import jnp
from saltus.papers.features.law import ddpm, stage_one
from saltus.papers.features.world import TwoPatch


def rk4(W: np.ndarray, xbar: np.ndarray, kappa: float, until: float, steps: int) -> np.ndarray:
    h = until / steps
    for _ in range(steps):
        a = stage_one.velocity(W, xbar, kappa)
        b = stage_one.velocity(W + h / 2 * a, xbar, kappa)
        c = stage_one.velocity(W + h / 2 * b, xbar, kappa)
        d = stage_one.velocity(W + h * c, xbar, kappa)
        W = W + h / 6 * (a + 2 * b + 2 * c + d)
    return W


@given(st.integers(0, 2**31), st.floats(0.2, 3.0), st.floats(0.05, 0.9))
def test_the_closed_form_solves_it(seed: int, kappa: float, share: float) -> None:
    rng = np.random.default_rng(seed)
    W, xbar = 0.1 * rng.normal(size=(3, 6)), rng.normal(size=6)
    until = share * stage_one.blow_up(W, xbar, kappa).min()
    found = stage_one.solve(W, xbar, kappa, [0.0, until])
    np.testing.assert_allclose(found[0], W, atol=1e-9)
    known = rk4(W, xbar, kappa, until, 2000)
    np.testing.assert_allclose(found[1], known, atol=1e-6 * np.abs(known).max())
    before = stage_one.invariant(W, xbar)
    np.testing.assert_allclose(stage_one.invariant(found[1], xbar), before, rtol=1e-7)
    np.testing.assert_allclose(stage_one.invariant(known, xbar), before, rtol=1e-5)


@given(st.integers(0, 2**31))
def test_it_is_infinite_at_the_blow_up(seed: int) -> None:
    rng = np.random.default_rng(seed)
    W, xbar = 0.1 * rng.normal(size=(1, 5)), rng.normal(size=5)
    end = float(stage_one.blow_up(W, xbar, 1.0)[0])
    near = stage_one.solve(W, xbar, 1.0, [0.999 * end, 0.999999 * end, 1.001 * end])
    sizes = np.linalg.norm(near, axis=-1)[:, 0]
    assert sizes[1] > 10 * sizes[0] > 10 * np.linalg.norm(W)
    assert not np.isfinite(sizes[2])


def test_a_right_angle_has_the_short_formula() -> None:
    W, xbar = np.array([[0.0, 0.2]]), np.array([3.0, 0.0])
    assert stage_one.blow_up(W, xbar, 2.0)[0] == pytest.approx(np.pi / (4 * 2.0 * 3.0 * 0.2))


def test_it_is_the_gradient_of_small_weights() -> None:
    rng = np.random.default_rng(0)
    sample = TwoPatch(5, 30, 2.0).draw(rng)
    W, (a, b) = 1e-5 * rng.normal(size=(4, 30)), ddpm.ALPHA_BETA
    g = np.asarray(ddpm.gradient(jnp.asarray(W), sample.X, sample.omega, a, b, 0.5))
    said = stage_one.velocity(W, stage_one.mean_patch(sample.X, sample.omega), 4 * a * b * 0.5)
    np.testing.assert_allclose(-g, said, rtol=1e-6, atol=1e-18)


def test_orders() -> None:
    alpha, beta = ddpm.ALPHA_BETA
    found = stage_one.orders(30, 1000, 20, 5.0, 1.0, 1e-3, 5e-4, alpha, beta)
    assert max(found.T_mu, found.T_xi) == found.T_1
    assert found.onset == pytest.approx(17450, rel=0.01)
    twice = stage_one.orders(30, 1000, 20, 5.0, 1.0, 2e-3, 5e-4, alpha, beta)
    assert found.onset / twice.onset == pytest.approx(2)
    assert pytest.approx(4) == found.T_2 / twice.T_2


@pytest.mark.slow
def test_anchors_of_the_papers_setting() -> None:
    alpha, beta = ddpm.ALPHA_BETA
    for mu, low, high in ((5.0, 15000, 19500), (15.0, 8000, 10800)):
        for seed in range(4):
            sample, W0 = TwoPatch(mu=mu).draw_in_span(np.random.default_rng(seed), 20, 1e-3)
            xbar = stage_one.mean_patch(sample.X, sample.omega)
            ends = stage_one.blow_up(W0, xbar, 4 * alpha * beta / np.sqrt(20)) / 5e-4
            assert low < ends.min() < ends.max() < high


def test_orders_by_hand_and_with_the_other_prefactor() -> None:
    """Lemmas D.5, D.8 as printed at c = 1/sqrt(m); with 1/m, m = 16, the first are 4 times as long."""
    given = dict(n=6, d=100, m=16, mu=2.0, sigma_xi=0.5, sigma0=0.01, eta=0.1, alpha=0.8, beta=0.6)
    found, other = stage_one.orders(**given), stage_one.orders(**given, c=1 / 16)
    assert found.T_mu == pytest.approx(4 * np.log(16 * 16 / 0.1) ** 0.5 / (0.01 * 100 * 2 * 0.1 * 0.48))
    t_xi = 6 * 4 * np.log(16 * 16 * 6 / 0.1) ** 0.5 / (0.01 * 0.5 * 1000 * 0.1 * 0.48)
    assert found.T_xi == pytest.approx(t_xi)
    assert pytest.approx(16 ** (1 / 3) / (0.1 * 1e-4) * max(1 / 100, 6 / (0.25 * 1e4))) == found.T_2
    for name in ("T_mu", "T_xi", "T_1", "onset"):
        assert getattr(other, name) / getattr(found, name) == pytest.approx(4)
    assert pytest.approx(4 * 4 ** (1 / 3)) == other.T_2 / found.T_2


def test_the_blow_up_by_the_cosine() -> None:
    """(pi/4 - F(u)) / (kappa |x̄| |w| (1 - u^2)^(3/2)) with F(u) = (u sqrt(1 - u^2) + arcsin u) / 2."""
    rng = np.random.default_rng(3)
    W, xbar, kappa = rng.normal(size=(20, 4)), rng.normal(size=4), 0.7
    length, size = np.linalg.norm(xbar), np.linalg.norm(W, axis=1)
    u = W @ xbar / size / length
    F = (u * np.sqrt(1 - u**2) + np.arcsin(u)) / 2
    said = (np.pi / 4 - F) / (kappa * length * size * (1 - u**2) ** 1.5)
    np.testing.assert_allclose(stage_one.blow_up(W, xbar, kappa), said, rtol=1e-12)
