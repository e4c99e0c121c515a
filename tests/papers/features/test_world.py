"""Two-patch data: its law, and that coordinates of the span lose nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saltus.core.errors import BadInput
from saltus.papers.features import world
from saltus.papers.features.world import TwoPatch


def test_the_numbers_of_the_paper() -> None:
    for mu, chi in ((5, 0.75), (8, 1.92), (10, 3.0), (12, 4.32), (15, 6.75)):
        assert TwoPatch(mu=mu).chi == pytest.approx(chi)


@given(
    st.integers(0, 2**31), st.integers(1, 9), st.integers(3, 40), st.booleans(), st.sampled_from(world.LABELS)
)
def test_a_draw_is_what_it_says(seed: int, n: int, d: int, project: bool, labels: str) -> None:
    it = TwoPatch(n, d, 2.0, 0.5, project, labels)
    rng = np.random.default_rng(seed)
    for sample in (it.draw(rng), it.draw_in_span(rng, 3, 0.1)[0]):
        signals, noises = sample.X[:2], sample.X[2:]
        np.testing.assert_allclose(signals @ signals.T, 4 * np.eye(2), atol=1e-12)
        assert noises.shape == (n, sample.X.shape[1])
        assert sample.omega.sum() == pytest.approx(2)
        np.testing.assert_array_equal(sample.members.sum(1), 2)
        np.testing.assert_array_equal(sample.members[:, 0] == 1, sample.labels > 0)
        if project:
            np.testing.assert_allclose(noises @ signals.T, 0, atol=1e-12)
        if labels == "balanced":
            assert abs(int(sample.labels.sum())) <= 1


def test_drawing_in_the_span_has_the_law_of_drawing_in_space() -> None:
    """Means and spreads of all inner products over many draws of both kinds, to five standard errors."""
    it, m, sigma0, runs = TwoPatch(3, 12, 1.5, 0.7), 2, 0.4, 4000
    rng = np.random.default_rng(0)
    grams = []
    for _ in range(runs):
        X = it.draw(rng).X
        full = np.concatenate([X, world.start(rng, m, 12, sigma0)])
        sample, W = it.draw_in_span(rng, m, sigma0)
        inside = np.concatenate([sample.X, W])
        grams.append((full @ full.T, inside @ inside.T))
    full, inside = (np.stack(g) for g in zip(*grams, strict=True))
    for power in (1, 2):
        a, b = full**power, inside**power
        error = np.sqrt((a.var(0) + b.var(0)) / runs)
        assert np.all(np.abs(a.mean(0) - b.mean(0)) <= 5 * error + 1e-12)


@given(st.integers(0, 2**31), st.integers(1, 6), st.integers(2, 30))
def test_into_span_keeps_every_inner_product(seed: int, patches: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(patches, d)), rng.normal(size=(2, 3, d))
    x, w, basis = world.into_span(X, W)
    assert basis.shape == (d, min(d, patches + 6))
    rows, short = np.concatenate([X, W.reshape(6, d)]), np.concatenate([x, w.reshape(6, -1)])
    np.testing.assert_allclose(short @ short.T, rows @ rows.T, atol=1e-10)
    np.testing.assert_allclose(x @ basis.T, X, atol=1e-10)
    np.testing.assert_allclose(np.triu(x[:, :patches], 1), 0, atol=1e-10)


def test_new_points_look_like_the_training_points() -> None:
    it = TwoPatch(5, 400, 3.0, 0.5)
    x, y = it.fresh(np.random.default_rng(1), 20_000, 9)
    assert abs(y.mean()) < 0.03
    np.testing.assert_allclose(x[:, 0].sum(1), 3.0)
    np.testing.assert_allclose(x[:, 1].std(0), 0.5, rtol=0.03)
    flat, _ = TwoPatch(5, 400, 3.0, 0.5, project_noise=True).fresh(np.random.default_rng(1), 10, 9)
    np.testing.assert_array_equal(flat[:, 1, :2], 0)


def test_points_with_patches_of_their_own() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(4, 6)), rng.normal(size=(4, 6))
    sample = world.sample_of([first, second], np.array([1, -1, 1, -1]))
    np.testing.assert_array_equal(sample.members @ sample.X, first + second)
    np.testing.assert_allclose(sample.omega, 1 / 4)
    with pytest.raises(BadInput, match="every patch"):
        world.sample_of([first, second[:3]], np.ones(4))


@pytest.mark.parametrize(
    "bad", [dict(n=0), dict(d=2), dict(mu=0.0), dict(sigma_xi=-1.0), dict(labels="half")]
)
def test_what_is_not_a_world(bad: dict) -> None:
    with pytest.raises(BadInput):
        TwoPatch(**bad)
