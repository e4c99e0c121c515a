"""The toy's numbers, which any language can make again, and the networks' formulas."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput
from saltus.papers import rank
from saltus.papers.rank import model
from saltus.papers.rank.law.objective import Network, square
from saltus.papers.rank.world import Toy, normals


def test_reference_numbers() -> None:
    toy = Toy()
    np.testing.assert_allclose(
        toy.inputs().ravel()[:4], [-1.29016421, -1.69122842, -0.67981266, 0.56438006], atol=5e-9
    )
    u, v = toy.start()
    np.testing.assert_allclose(u[:3], [0.164434, 0.614021, 1.506273], atol=5e-7)
    np.testing.assert_allclose(v[:3], [-0.078821, 0.490199, 0.556259], atol=5e-7)
    assert (u > abs(v)).all()
    assert toy.teacher()[[8 + 2, 0]] == pytest.approx([-2.775347, -0.412089], abs=1e-6)
    problem = toy.problem()
    zero = jnp.zeros(16)
    assert float(problem.objective.value(zero, problem.data)) == pytest.approx(2.355502499548, abs=1e-12)
    pull = np.asarray(problem.objective.pull(zero, problem.data))
    np.testing.assert_allclose(pull[8:12], [-0.03936249, -0.0058623, -0.41971054, 0.36458955], atol=5e-9)
    assert (pull[:8] == 0).all()


def test_the_generator_by_hand() -> None:
    mask = 2**64 - 1
    for seed, j in ((1, 1), (3, 17), (50_003, 5)):
        z = ((seed * 2**40 + j) * 0x9E3779B97F4A7C15) & mask
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        z ^= z >> 31
        want = NormalDist().inv_cdf(((z >> 11) + 0.5) / 2**53)
        assert normals(seed, (j,))[-1] == pytest.approx(want, rel=1e-11)


def test_a_sharp_teacher_has_larger_logits_and_the_same_values() -> None:
    plain, sharp = Toy().teacher(), Toy(sharp=True).teacher()
    np.testing.assert_allclose(sharp[:8], plain[:8] * np.sqrt(8))
    np.testing.assert_array_equal(sharp[8:], plain[8:])
    with pytest.raises(BadInput):
        Toy(dim=0)


def by_hand(X: Any, m: Any) -> Any:
    """Equation 1 with matrices and loops."""
    d = X.shape[1]
    K, V = np.diag(m[:d]), np.diag(m[d:])
    logits = X @ K @ X.T
    rows = np.exp(logits - logits.max(1, keepdims=True))
    return (rows / rows.sum(1, keepdims=True)) @ X @ V


def test_the_head_is_equation_1() -> None:
    X, m = normals(7, (5, 3)), normals(8, (6,))
    np.testing.assert_allclose(model.head(jnp.asarray(X), jnp.asarray(m)), by_hand(X, m), atol=1e-13)


def test_the_written_gradient_is_the_gradient() -> None:
    problem = Toy(4, 3, 20, run=5).problem()
    m = jnp.asarray(normals(9, (8,)))
    objective, data = problem.objective, problem.data
    np.testing.assert_allclose(objective.pull(m, data), -jax.grad(objective.value)(m, data), atol=1e-14)
    X, _, Y = data
    other = Network(model.head, square)
    assert float(other.value(m, (X, Y))) == pytest.approx(float(objective.value(m, data)), rel=1e-13)


def test_wanted_columns_of_the_hessian() -> None:
    problem = Toy(6, 3, 20).problem()
    m = jnp.asarray(normals(9, (12,)))
    whole = jax.hessian(problem.objective.value)(m, problem.data)
    for wanted in (np.ones(12, bool), np.arange(12) % 5 == 1, np.zeros(12, bool)):
        found = problem.objective.hessian(m, problem.data, jnp.asarray(wanted))
        np.testing.assert_allclose(found, whole * wanted, atol=1e-14)


@pytest.mark.parametrize(("tokens", "samples"), [(1, 7), (4, 100), (3, 230)])
def test_the_written_hessian_whatever_the_number_of_samples(tokens: int, samples: int) -> None:
    problem = Toy(5, tokens, samples, run=2).problem()
    m = jnp.asarray(normals(11, (10,)))
    whole = jax.jit(jax.hessian(problem.objective.value))(m, problem.data)
    found = problem.objective.hessian(m, problem.data, jnp.ones(10, bool))
    np.testing.assert_allclose(found, whole, atol=1e-13)


def test_a_transformer_of_one_layer_and_no_feed_forward_is_a_head() -> None:
    one = model.Transformer(3)
    X, m = jnp.asarray(normals(7, (5, 3))), jnp.asarray(normals(8, (6,)))
    out = one.apply(m, X, jnp.zeros((1, 2, 3, 4)))
    np.testing.assert_allclose(out, X + model.head(X, m), atol=1e-14)


def test_a_deep_transformer_layer_by_layer() -> None:
    deep = model.Transformer(3, layers=2, heads=2)
    X, m, frozen = normals(7, (5, 3)), normals(8, (24,)), normals(9, (2, 2, 3, 4))
    Z = X
    for layer in range(2):
        Z = Z + sum(by_hand(Z, m[12 * layer + 6 * h :][:6]) for h in range(2))
        Z = Z + np.asarray(jax.nn.gelu(Z @ frozen[layer, 0])) @ frozen[layer, 1].T
    np.testing.assert_allclose(deep.apply(jnp.asarray(m), jnp.asarray(X), jnp.asarray(frozen)), Z, atol=1e-12)
    assert deep.name(12 + 6 + 3 + 1) == "layer 2 head 2 VO 1"


def test_the_room_is_lazy() -> None:
    assert rank.law.__name__.endswith("rank.law")
    with pytest.raises(AttributeError):
        rank.nothing  # noqa: B018
