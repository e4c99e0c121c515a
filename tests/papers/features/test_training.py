"""Training in the span is training in space; looks, steps and blocks change nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput
from saltus.papers.features import model, training, world
from saltus.papers.features.law import ddpm
from saltus.papers.features.world import TwoPatch

A, B = ddpm.ALPHA_BETA


def drawn(seeds: int, heads: int = 1, m: int = 3) -> tuple[world.Sample, np.ndarray]:
    it = TwoPatch(5, 60, 3.0)
    made = [it.draw_in_span(np.random.default_rng(s), heads * m, 0.05) for s in range(seeds)]
    start = np.stack([w for _, w in made])
    return world.stack([s for s, _ in made]), start.reshape(seeds, 2, m, -1) if heads == 2 else start


def test_the_denoiser_in_the_span_is_the_one_in_space() -> None:
    rng = np.random.default_rng(0)
    sample = TwoPatch(4, 50, 3.0).draw(rng)
    W0 = world.start(rng, 3, 50, 0.05)
    x, w, basis = world.into_span(sample.X, W0)
    at, given = [0, 50, 400], dict(eta=0.01, at=[0, 50, 400])
    inside = training.train_denoiser(x[None], sample.omega[None], w[None], **given)["W"][0] @ basis.T
    plain = W0
    for step in range(1, 401):
        plain = plain - 0.01 * np.asarray(ddpm.gradient(plain, sample.X, sample.omega, A, B, 3**-0.5))
        if step in at:
            np.testing.assert_allclose(inside[at.index(step)], plain, atol=1e-12)
    assert np.abs(plain - W0).max() > 0.1, "nothing was learnt, so nothing is compared"


def test_the_classifier_in_the_span_is_the_one_in_space() -> None:
    rng = np.random.default_rng(1)
    sample = TwoPatch(4, 50, 3.0).draw(rng)
    W0 = world.start(rng, 6, 50, 0.05).reshape(2, 3, 50)
    x, w, basis = world.into_span(sample.X, W0)
    one = world.stack([sample._replace(X=x)])
    inside = training.train_classifier(one, w[None], eta=0.1, at=[0, 100])["W"][0] @ basis.T
    plain, y = jnp.asarray(W0), jnp.asarray(sample.labels, float)
    for _ in range(100):
        plain = plain - 0.1 * jax.grad(model.classifier_loss)(plain, sample.X, sample.members, y)
    np.testing.assert_allclose(inside[1], plain, atol=1e-12)
    assert np.abs(plain - W0).max() > 0.1


def test_two_classes_by_the_general_head() -> None:
    """With logits (f, 0) the softmax is the logistic loss: a head of +1 and -1 is the binary network."""
    sample, W0 = drawn(2, 2)
    flat = W0.reshape(2, 6, -1)
    V = np.zeros((2, 6, 2))
    V[:, :3, 0], V[:, 3:, 0] = 2.0, -2.0  # the general network averages over all six neurons
    labels = np.where(sample.labels > 0, 0, 1)
    many = training.train_classes(sample._replace(labels=labels), V, flat, eta=0.1, at=[60])["W"][:, 0]
    two = training.train_classifier(sample, W0, eta=0.1, at=[60])["W"][:, 0]
    np.testing.assert_allclose(many.reshape(two.shape), two, atol=1e-12)


def test_looks_blocks_and_company_change_no_bit() -> None:
    sample, W0 = drawn(5)
    few = training.train_denoiser(sample.X, sample.omega, W0, eta=0.005, at=[100], block=2)["W"][:, -1]
    many = training.train_denoiser(sample.X, sample.omega, W0, eta=0.005, at=np.arange(101), block=2)["W"][
        :, -1
    ]
    np.testing.assert_array_equal(few, many)
    alone = training.train_denoiser(sample.X[:2], sample.omega[:2], W0[:2], eta=0.005, at=[100], block=2)[
        "W"
    ][:, -1]
    np.testing.assert_array_equal(alone, few[:2])


def test_every_run_may_have_its_own_step_and_time() -> None:
    sample, W0 = drawn(2)
    alpha, beta = np.transpose([ddpm.diffusion(0.2), ddpm.diffusion(0.8)])
    both = training.train_denoiser(
        sample.X, sample.omega, W0, eta=[0.004, 0.002], at=[80], alpha=alpha, beta=beta, block=1
    )["W"]
    for s, (eta, t) in enumerate(((0.004, 0.2), (0.002, 0.8))):
        a, b = ddpm.diffusion(t)
        own = training.train_denoiser(
            sample.X[s : s + 1],
            sample.omega[s : s + 1],
            W0[s : s + 1],
            eta=eta,
            at=[80],
            alpha=a,
            beta=b,
            block=1,
        )["W"]
        np.testing.assert_allclose(own[0], both[s], atol=1e-13)


def test_backtracking_never_raises_the_loss() -> None:
    """With a step that diverges when taken as it is."""
    sample, W0 = drawn(3)
    given: dict[str, Any] = dict(eta=1.0, at=np.arange(0, 200, 5), look=training.watch.denoiser)
    wild = training.train_denoiser(sample.X, sample.omega, W0, **given)
    assert not np.isfinite(wild["change"][:, -1]).all()
    tame = training.train_denoiser(sample.X, sample.omega, W0, **given, backtrack=True)
    assert (np.diff(tame["change"], axis=1) <= 1e-12).all()
    assert (tame["change"][:, -1] < -0.1).all()


def test_what_is_watched() -> None:
    sample, W0 = drawn(2, m=4)
    seen = training.train_denoiser(
        sample.X, sample.omega, W0, eta=0.01, at=[150], look=training.watch.denoiser
    )
    W = training.train_denoiser(sample.X, sample.omega, W0, eta=0.01, at=[150])["W"][:, 0]
    for s in range(2):
        products = sample.X[s] @ W[s].T
        assert seen["noise"][s, 0] == pytest.approx(np.abs(products[2:]).max())
        assert seen["signal_mean"][s, 0] == pytest.approx(products[:2].mean())
        assert seen["size"][s, 0] == pytest.approx((W[s] ** 2).sum(1).mean())
        units = W[s] / np.linalg.norm(W[s], axis=1, keepdims=True)
        assert seen["cosine"][s, 0] == pytest.approx((units @ units.T)[np.triu_indices(4, 1)].mean())
        g = ddpm.gradient(W[s], sample.X[s], sample.omega[s], A, B, 0.5)
        assert seen["slope"][s, 0] == pytest.approx(np.linalg.norm(g))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (dict(at=[]), "ascending"),
        (dict(at=[3, 3]), "ascending"),
        (dict(at=[-1, 3]), "ascending"),
        (dict(eta=0.0), "above 0"),
        (dict(eta=float("nan")), "finite"),
        (dict(omega=np.ones((1, 7))), "runs"),
        (dict(prefactor="none"), "prefactor"),
    ],
)
def test_bad_trainings_are_one_line(changes: dict, says: str) -> None:
    sample, W0 = drawn(2)
    given: dict[str, Any] = dict(X=sample.X, omega=sample.omega, W0=W0, eta=0.1, at=[1])
    with pytest.raises(BadInput, match=says):
        training.train_denoiser(**{**given, **changes})
