"""Data of many patches: who holds what, the paper's data as a case, and the pull of each patch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from saltus.core.errors import BadInput
from saltus.papers.features import law
from saltus.papers.features.many import ManyPatch, pull

THREE = ManyPatch(n=12, d=80, mu=(4.0, 4.0, 2.0), share=(1.0, 0.34, 1.0), noises=2)


def test_every_point_has_its_patches_and_every_feature_its_holders() -> None:
    sample = THREE.draw(np.random.default_rng(0))
    assert sample.X.shape == (THREE.distinct, 80)
    np.testing.assert_array_equal(sample.members.sum(1), THREE.patches)
    np.testing.assert_allclose(sample.omega, sample.members.mean(0))
    assert sample.omega.sum() == pytest.approx(THREE.patches)
    np.testing.assert_allclose(sample.omega[:6] * 12, [6, 6, 2, 2, 6, 6])
    np.testing.assert_allclose(sample.omega[6:], 1 / 12)
    for k in range(3):
        for c, label in ((0, 1), (1, -1)):
            assert (sample.labels[sample.members[:, 2 * k + c] > 0] == label).all()


def test_features_are_orthogonal_and_have_their_lengths() -> None:
    X = THREE.draw(np.random.default_rng(1)).X[:6]
    np.testing.assert_allclose(X @ X.T, np.diag([16.0, 16, 16, 16, 4, 4]), atol=1e-12)


def test_one_feature_that_all_hold_is_the_data_of_the_paper() -> None:
    world = ManyPatch(n=6, d=30, mu=(3.0,), share=(1.0,))
    sample = world.draw(np.random.default_rng(0))
    assert world.patches == 2
    np.testing.assert_allclose(sample.omega, [0.5, 0.5, *[1 / 6] * 6])


def test_the_pull_is_frequency_times_squared_length_where_patches_are_orthogonal() -> None:
    rng = np.random.default_rng(2)
    X, omega = np.diag(rng.random(5) + 0.5), rng.random(5)
    np.testing.assert_allclose(pull(X, omega), omega * (X**2).sum(1), rtol=1e-14)
    sample = THREE.draw(rng)
    toward = sample.X @ (sample.omega @ sample.X)
    np.testing.assert_allclose(pull(sample.X[None], sample.omega[None])[0], toward, rtol=1e-12)


def test_early_growth_goes_along_the_pull() -> None:
    """Of the first stage's velocity the part that is linear in time is |w|^2 of the pull for every patch."""
    sample = THREE.draw(np.random.default_rng(3))
    W = 1e-4 * np.random.default_rng(4).standard_normal((3, 80))
    W -= W @ np.linalg.pinv(sample.X) @ sample.X  # starts that see no patch
    alpha, beta = law.ddpm.ALPHA_BETA
    c = 3**-0.5
    g = np.asarray(law.ddpm.gradient(W, sample.X, sample.omega, alpha, beta, c))
    said = 4 * alpha * beta * c * (W**2).sum(1)[:, None] * pull(sample.X, sample.omega)
    np.testing.assert_allclose(-g @ sample.X.T, said, rtol=1e-6)


def test_new_points_hold_what_is_asked() -> None:
    sample = THREE.draw(np.random.default_rng(5))
    x, y = THREE.fresh(np.random.default_rng(6), 40, sample.X, (False, True, False))
    assert x.shape == (40, THREE.patches, 80)
    np.testing.assert_array_equal(x[y > 0, 1], np.tile(sample.X[2], ((y > 0).sum(), 1)))
    np.testing.assert_array_equal(x[y < 0, 1], np.tile(sample.X[3], ((y < 0).sum(), 1)))
    assert abs(x[:, 0].std() - 1) < 0.05


@pytest.mark.parametrize(
    "wrong",
    [
        dict(mu=(1.0,), share=(1.0, 0.5)),
        dict(mu=(1.0, -1.0)),
        dict(share=(1.0, 1.5)),
        dict(n=1),
        dict(mu=(1.0,), share=(1.0,), noises=0),
        dict(d=20),
    ],
)
def test_impossible_data_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        ManyPatch(**wrong)
