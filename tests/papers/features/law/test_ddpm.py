"""The expected loss and its gradient: fixtures, finite differences, other forms, Monte Carlo."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput
from saltus.papers.features.law import ddpm
from saltus.papers.features.model import prefactor

A, B = ddpm.diffusion(0.2)


def instance(seed: int, m: int = 4, d: int = 7, patches: int = 5) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    return 0.4 * rng.normal(size=(m, d)), rng.normal(size=(patches, d)), rng.random(patches)


def test_one_neuron_one_dimension() -> None:
    """w = 1/2, x = 1, c = 1: the moments of a normal variable by hand."""
    one = (jnp.array([[0.5]]), jnp.array([[1.0]]), jnp.array([1.0]), A, B, 1.0)
    assert float(ddpm.loss(*one)) == pytest.approx(0.7977850270353878, abs=1e-14)
    assert float(ddpm.gradient(*one)[0, 0]) == pytest.approx(-1.01628902, abs=1e-8)


def test_the_papers_times() -> None:
    np.testing.assert_allclose(ddpm.diffusion(0.2), (0.81873, 0.57418), atol=5e-6)
    np.testing.assert_allclose(ddpm.diffusion(0.8), (0.44933, 0.89337), atol=5e-6)
    with pytest.raises(BadInput, match="above 0"):
        ddpm.diffusion(0.0)


SHAPES = st.sampled_from([(1, 1), (1, 6), (5, 3), (3, 9)])


@settings(max_examples=15)
@given(st.integers(0, 2**31), SHAPES, st.floats(0.02, 3.0), st.floats(0.1, 2.0))
def test_the_gradient_is_the_derivative(seed: int, shape: tuple[int, int], t: float, c: float) -> None:
    W, X, omega = instance(seed, *shape)
    alpha, beta = ddpm.diffusion(t)
    found = ddpm.gradient(W, X, omega, alpha, beta, c)
    known = jax.grad(lambda w: ddpm.loss(w, X, omega, alpha, beta, c))(jnp.asarray(W))
    np.testing.assert_allclose(found, known, atol=1e-11 * max(1.0, float(np.abs(known).max())))


def test_the_gradient_by_central_differences() -> None:
    W, X, omega = instance(3)
    found, h = np.asarray(ddpm.gradient(W, X, omega, A, B, 0.5)), 1e-5
    for place in np.ndindex(W.shape):
        move = np.zeros_like(W)
        move[place] = h
        ahead, behind = (float(ddpm.loss(W + s * move, X, omega, A, B, 0.5)) for s in (1, -1))
        assert (ahead - behind) / (2 * h) == pytest.approx(found[place], rel=1e-7, abs=1e-7)


@settings(max_examples=10)
@given(st.integers(0, 2**31), st.sampled_from([1, 2, 5]))
def test_neuron_by_neuron_is_the_matrix_form(seed: int, m: int) -> None:
    W, X, omega = instance(seed, m)
    known = np.asarray(ddpm.gradient(W, X, omega, A, B, 0.3))
    found = ddpm.per_neuron(W, X, omega, A, B, 0.3)
    np.testing.assert_allclose(found, known, atol=1e-12 * max(1.0, np.abs(known).max()))


@pytest.mark.parametrize("t", [0.2, 0.8])
def test_monte_carlo_agrees(t: float) -> None:
    """Two hundred thousand noises a patch: within five standard errors, which the batches themselves give."""
    W, X, omega = instance(1, 4, 15, 3)
    alpha, beta = ddpm.diffusion(t)
    drawn = [ddpm.monte_carlo(jax.random.key(k), W, X, omega, alpha, beta, 0.5, 5_000) for k in range(40)]
    for values, known in (
        (np.stack([v for v, _ in drawn]), ddpm.loss(W, X, omega, alpha, beta, 0.5)),
        (np.stack([g for _, g in drawn]), ddpm.gradient(W, X, omega, alpha, beta, 0.5)),
    ):
        error = values.std(0, ddof=1) / np.sqrt(40)
        assert np.all(np.abs(values.mean(0) - np.asarray(known)) <= 5 * error)
    # And the comparison can tell: without the quartic noise term it fails.
    wrong = (
        ddpm.loss(W, X, omega, alpha, beta, 0.5) - 0.25 * 2 * omega.sum() * beta**4 * ((W @ W.T) ** 3).sum()
    )
    values = np.stack([v for v, _ in drawn])
    assert abs(values.mean() - float(wrong)) > 5 * values.std(ddof=1) / np.sqrt(40)


def test_only_the_span_counts_and_d_is_a_constant() -> None:
    W, X, omega = instance(5, 3, 6, 2)
    wide = [np.concatenate([v, np.zeros((len(v), 94))], 1) for v in (W, X)]
    inside = ddpm.loss(W, X, omega, A, B, 0.5, d=100)
    assert float(inside) == pytest.approx(float(ddpm.loss(*wide, omega, A, B, 0.5)), rel=1e-14)
    assert float(ddpm.loss(np.zeros((3, 6)), X, omega, A, B, 0.5)) == pytest.approx(6 * omega.sum())


@settings(max_examples=15)
@given(st.integers(0, 2**31), st.floats(0.1, 1.0))
def test_no_network_predicts_more_than_its_span(seed: int, c: float) -> None:
    """L >= sum(omega) (d - m): an output lies in the span of m weights."""
    W, X, omega = instance(seed, 3, 8, 4)
    assert float(ddpm.change(W, X, omega, A, B, c)) >= -3 * omega.sum() - 1e-9


def test_reductions() -> None:
    assert ddpm.effective(0.5, "sum", 1000) == 0.5
    assert ddpm.effective(0.5, "mean_d", 1000) == 0.0005
    assert ddpm.effective(0.5, "mean_2d", 1000) == 0.00025
    with pytest.raises(BadInput, match="mean_d"):
        ddpm.effective(0.5, "mean", 1000)


@pytest.mark.parametrize(("alpha", "beta"), [(0.8, 0.6), (1.0, 0.0), (0.0, 1.0), (0.3, 1.7)])
@pytest.mark.parametrize("kind", ["sqrt_m", "m"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 2, 4), (4, 3, 2)])
def test_quadrature_agrees(alpha: float, beta: float, kind: str, shape: tuple[int, int, int]) -> None:
    """Gauss-Hermite nodes are exact for polynomials: any patches, weights (one of them 0), and any noise."""
    m, d, P = shape
    rng = np.random.default_rng(sum(shape))
    W, X, omega, c = rng.normal(size=(m, d)), rng.normal(size=(P, d)), 3 * rng.random(P), prefactor(m, kind)
    omega[1:2] = 0
    nodes, shares = np.polynomial.hermite_e.hermegauss(5)
    eps = np.stack(np.meshgrid(*[nodes] * d), -1).reshape(-1, d)
    share = np.prod(np.stack(np.meshgrid(*[shares / shares.sum()] * d), -1), -1).ravel()

    def summed(W: np.ndarray) -> float:
        out = [c * ((alpha * x + beta * eps) @ W.T) ** 2 @ W - eps for x in X]
        return float(sum(w * (share @ (f**2).sum(1)) for w, f in zip(omega, out, strict=True)))

    assert float(ddpm.loss(W, X, omega, alpha, beta, c)) == pytest.approx(summed(W), rel=1e-12)
    g = np.asarray(ddpm.gradient(W, X, omega, alpha, beta, c))
    for at in np.ndindex(*W.shape):
        h = np.zeros_like(W)
        h[at] = 1e-5
        slope = (summed(W + h) - summed(W - h)) / 2e-5
        assert g[at] == pytest.approx(slope, rel=1e-6, abs=1e-6 * np.abs(g).max())
