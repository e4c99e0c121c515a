"""Stationary points: tables, the ratio identity, and that training goes there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saltus._jax import jnp
from saltus.core.errors import BadInput
from saltus.papers.features import training, world
from saltus.papers.features.law import ddpm, newton, stationary
from saltus.papers.features.world import TwoPatch

A, B = ddpm.ALPHA_BETA
TABLE = {
    1: {0.01: 0.829, 0.1: 0.819, 0.3: 0.805, 1: 0.840, 3: 1.197, 10: 2.66, 100: 20.2, 1000: 190.6},
    2: {0.01: 0.497, 0.1: 0.515, 0.3: 0.560, 1: 0.737, 3: 1.27, 10: 3.17, 100: 27.9, 1000: 276},
    20: {0.01: 0.031, 0.1: 0.133, 0.3: 0.268, 1: 0.600, 3: 1.39, 10: 4.11, 100: 39.7, 1000: 396},
}


@pytest.mark.parametrize("m", TABLE)
def test_the_table_of_ratios(m: int) -> None:
    chi = np.asarray(list(TABLE[m]))
    point = stationary.symmetric(chi, m, A, B)
    np.testing.assert_allclose(point.a[:, 0] / point.a[:, 1], list(TABLE[m].values()), rtol=0.02)
    assert (point.slope < 1e-9).all()
    assert (point.curvature > 0).all()
    pulls = stationary.pull(point.a, point.q, point.s, m, A, B)
    np.testing.assert_allclose(point.a[:, 0] / point.a[:, 1], chi / 2 * pulls[:, 0] / pulls[:, 1], rtol=1e-8)


def test_the_papers_setting() -> None:
    point = stationary.symmetric([0.75, 6.75], 20, A, B, mu=[5.0, 15.0])
    np.testing.assert_allclose(point.a, [[0.786, 1.009], [1.247, 1.022]], atol=5e-4)
    np.testing.assert_allclose(point.s, [2.162, 2.241], atol=5e-4)


@settings(max_examples=12)
@given(st.integers(0, 2**31), st.sampled_from([1, 2, 5]), st.floats(0.5, 4.0), st.sampled_from([0.2, 0.8]))
def test_a_solved_point_is_stationary_for_the_whole_network(seed: int, m: int, mu: float, t: float) -> None:
    """The weights built from (a, phi) have no gradient in R^D, and the loss is the reduced one."""
    alpha, beta = ddpm.diffusion(t)
    sample, W0 = TwoPatch(4, 40, mu, labels="balanced").draw_in_span(np.random.default_rng(seed), m, 0.1)
    gram = sample.X @ sample.X.T
    point = stationary.solve(sample.omega, gram, m, alpha, beta)
    assert point.slope < 1e-9
    W = stationary.weights(point, sample.X, m)
    assert W.shape == W0.shape
    g = ddpm.gradient(jnp.asarray(W), sample.X, jnp.asarray(sample.omega), alpha, beta, m**-0.5)
    assert float(jnp.abs(g).max()) < 1e-7
    change = ddpm.change(W, sample.X, sample.omega, alpha, beta, m**-0.5)
    assert float(change) == pytest.approx(float(point.change), rel=1e-9)
    np.testing.assert_allclose(stationary.identity(point, sample.omega, gram, m, alpha, beta), 1, atol=1e-7)


def test_the_other_prefactor_and_any_patches() -> None:
    """With 1/m, unequal weights and patches at no right angles: still stationary, and still the identity."""
    rng = np.random.default_rng(5)
    X, omega, m = np.concatenate([2 * rng.normal(size=(5, 9)), np.zeros((5, 4))], 1), rng.random(5), 3
    for c in (1 / m, m**-0.5):
        point = stationary.solve(omega, X @ X.T, m, A, B, c=c)
        W = stationary.weights(point, np.pad(X, ((0, 0), (0, 4))), m)
        g = ddpm.gradient(jnp.asarray(W), np.pad(X, ((0, 0), (0, 4))), jnp.asarray(omega), A, B, c)
        assert float(jnp.abs(g).max()) < 1e-9
        np.testing.assert_allclose(stationary.identity(point, omega, X @ X.T, m, A, B, c), 1, atol=1e-9)


def test_what_cannot_be_solved_is_one_line() -> None:
    X = np.random.default_rng(0).normal(size=(3, 6))
    twice = np.concatenate([X, X[:1]])
    with pytest.raises(BadInput, match="linearly independent"):
        stationary.solve(np.ones(4), twice @ twice.T, 2, A, B)
    point = stationary.solve(np.ones(3), X @ X.T, 5, A, B)
    with pytest.raises(BadInput, match="7 dimensions"):
        stationary.weights(point, X, 5)


def test_training_ends_there_and_newton_stays() -> None:
    m = 4
    sample, W0 = TwoPatch(6, 80, 3.0).draw_in_span(np.random.default_rng(3), m, 0.05)
    W = training.train_denoiser(sample.X[None], sample.omega[None], W0[None], eta=0.02, at=[20_000])["W"][
        0, 0
    ]
    point = stationary.solve(sample.omega, sample.X @ sample.X.T, m, A, B)
    np.testing.assert_allclose(sample.X @ W.T, np.tile(point.a[:, None], m), rtol=1e-6)
    found = stationary.kkt(W, sample.X, sample.omega, A, B)
    assert found.slope < 1e-8
    assert found.spread < 1e-8
    assert found.rank == 1
    assert found.orthogonal < 1e-8
    assert abs(found.least) < 1e-8
    rates = newton.curvatures(W, sample.X, sample.omega, A, B)
    assert rates[0] > -1e-8 * rates[-1]
    # Rotations of what lies outside the patches: m - 1 directions in m dimensions.
    assert (np.abs(rates) < 1e-7 * rates[-1]).sum() == m * (m - 1) // 2
    moved = W + 1e-3 * np.random.default_rng(0).normal(size=W.shape)
    back = newton.polish(moved, sample.X, sample.omega, A, B)
    assert stationary.kkt(back, sample.X, sample.omega, A, B).slope < 1e-10
    np.testing.assert_allclose(sample.X @ back.T, np.tile(point.a[:, None], m), rtol=1e-9)


def test_half_way_nothing_of_it_holds() -> None:
    sample, W0 = TwoPatch(6, 80, 3.0).draw_in_span(np.random.default_rng(3), 4, 0.05)
    found = stationary.kkt(W0, sample.X, sample.omega, A, B)
    assert found.spread > 0.1
    assert found.orthogonal > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mu", "signal", "noise", "size", "loss"),
    [
        (5.0, 0.775, 1.008, 2.163, 1983.6),
        (10.0, 1.101, 1.017, 2.23, None),
        (15.0, 1.247, 1.012, 2.239, 1978.7),
    ],
)
def test_the_reference_table(mu: float, signal: float, noise: float, size: float, loss: float | None) -> None:
    """The paper's setting at 40000 steps, eight draws."""
    it = TwoPatch(mu=mu)
    made = [it.draw_in_span(np.random.default_rng(s), 20, 1e-3) for s in range(8)]
    sample = world.stack([s for s, _ in made])
    seen = training.train_denoiser(
        sample.X,
        sample.omega,
        np.stack([w for _, w in made]),
        eta=5e-4,
        at=[40_000],
        look=training.watch.denoiser,
    )
    assert seen["signal_mean"].mean() == pytest.approx(signal, rel=0.03)
    assert seen["noise_mean"].mean() == pytest.approx(noise, rel=0.02)
    assert seen["size"].mean() == pytest.approx(size, rel=0.01)
    assert (seen["slope"] < 2e-2).all()
    if loss is not None:
        assert 2000 + seen["change"].mean() == pytest.approx(loss, abs=0.5)
    for s in range(8):
        point = stationary.solve(sample.omega[s], sample.X[s] @ sample.X[s].T, 20, A, B)
        assert seen["change"][s, 0] == pytest.approx(float(point.change), abs=1e-4)
