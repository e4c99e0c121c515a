"""The networks against their definitions in loops, and derivatives against automatic ones."""

from __future__ import annotations

import numpy as np
import pytest

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput
from saltus.papers.features import model
from saltus.papers.features.world import TwoPatch


@pytest.fixture(scope="module")
def small() -> tuple[object, np.ndarray]:
    rng = np.random.default_rng(0)
    return TwoPatch(6, 9, 2.0).draw(rng), 0.5 * rng.normal(size=(2, 3, 9))


def test_the_denoiser_by_hand() -> None:
    rng = np.random.default_rng(1)
    W, x = rng.normal(size=(3, 5)), rng.normal(size=(4, 2, 5))
    known = np.zeros_like(x)
    for place in np.ndindex(4, 2):
        known[place] = sum((w @ x[place]) ** 2 * w for w in W) / np.sqrt(3)
    np.testing.assert_allclose(model.denoise(W, x, model.prefactor(3)), known, atol=1e-12)
    clean = (x - 0.5 * known) / 0.8
    np.testing.assert_allclose(model.reconstruct(W, x, model.prefactor(3), 0.8, 0.5), clean, atol=1e-12)
    assert model.prefactor(4, "m") == 0.25
    with pytest.raises(BadInput, match="sqrt_m"):
        model.prefactor(4, "none")


def test_the_classifier_by_hand(small: tuple) -> None:
    sample, W = small
    signals = sample.X[np.where(sample.labels > 0, 0, 1)]
    points = np.stack([signals, sample.X[2:]], axis=1)

    def of_class(w: np.ndarray, x: np.ndarray) -> float:
        return sum((v @ p) ** 2 for v in w for p in x) / 3

    known = [of_class(W[0], x) - of_class(W[1], x) for x in points]
    np.testing.assert_allclose(model.classify(W, points), known, atol=1e-12)
    f, _ = model.classifier_outputs(W, sample.X, sample.members)
    np.testing.assert_allclose(f, known, atol=1e-12)
    assert float(model.accuracy(W, points, sample.labels)) == pytest.approx(
        np.mean(np.sign(known) == sample.labels)
    )


def test_the_classifiers_gradient_is_exact(small: tuple) -> None:
    sample, W = small
    given = (sample.X, sample.members, jnp.asarray(sample.labels, float))
    known = jax.grad(model.classifier_loss)(jnp.asarray(W), *given)
    np.testing.assert_allclose(model.classifier_gradient(jnp.asarray(W), *given), known, atol=1e-13)


def test_input_gradients(small: tuple) -> None:
    sample, W = small
    x = sample.X[2:4]

    def of_class(x: jax.Array) -> jax.Array:
        return ((x @ W[0].T) ** 2).sum() / 3

    np.testing.assert_allclose(model.input_gradient(W[0], x), jax.grad(of_class)(x), atol=1e-12)


def test_many_classes() -> None:
    rng = np.random.default_rng(2)
    sample = TwoPatch(5, 8, 1.0).draw(rng)
    V, W = model.head(rng, 7, 10), rng.normal(size=(7, 8))
    assert set(np.unique(V)) == {-1.0, 1.0}
    labels = np.arange(5)
    x = np.stack([np.stack([sample.X[0], xi]) for xi in sample.X[2:]])
    logits = np.asarray(model.class_logits(W, V, x))
    known = sum(np.einsum("r,rk->k", (W @ x[1, p]) ** 2, V) for p in range(2)) / 7
    np.testing.assert_allclose(logits[1], known, atol=1e-12)
    members = np.zeros((5, 7))
    members[:, 0] = members[np.arange(5), np.arange(5) + 2] = 1
    loss = float(model.class_loss(W, V, sample.X, members, labels))
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    assert loss == pytest.approx(-np.mean(np.log(shares[labels, labels])))

    def true_logit(x: jax.Array) -> jax.Array:
        return model.class_logits(W, V, x)[labels, labels].sum()

    found = model.class_input_gradient(W, V, x, labels)
    np.testing.assert_allclose(found, jax.grad(true_logit)(jnp.asarray(x)), atol=1e-12)
