"""Probes against numpy, by brute force or closed form."""

from __future__ import annotations

import numpy as np
import pytest

from saltus import descent, model, probe
from saltus._jax import jax, jnp
from saltus.core.errors import BadInput

NET = model.MLP(3, 5, dim=2, out=3, activation="tanh")
RANDOM = np.random.default_rng(0)
X, Y = RANDOM.normal(size=(9, 2)), RANDOM.normal(size=(9, 3))


def state(params=None, net=NET):
    params = net.init(jax.random.key(1)) if params is None else params
    x, y = jnp.asarray(X), jnp.asarray(Y)

    def objective(p):
        return jnp.mean(0.5 * jnp.sum((net.apply(p, x) - y) ** 2, -1))

    return probe.State(params, 0, 0.0, net, None, x, y, jax.random.key(2), objective)


def test_spectra():
    s = state()
    matrices = [np.asarray(layer["weight"]) for layer in s.params["layers"]]
    values = [np.linalg.svd(m, compute_uv=False) for m in matrices]
    found = probe.singular_values("layers.*.weight")(s)
    assert found.shape == (3, 5)
    for row, exact in zip(found, values, strict=True):
        np.testing.assert_allclose(row[: len(exact)], exact, atol=1e-12)
        assert np.isnan(row[len(exact) :]).all()
    ranks = [(v**2).sum() / v[0] ** 2 for v in values]
    np.testing.assert_allclose(probe.stable_rank("**.weight")(s), ranks, rtol=1e-12)
    np.testing.assert_allclose(probe.stable_rank("layers.1.weight")(s), ranks[1], rtol=1e-12)
    np.testing.assert_allclose(
        probe.norm("layers.?.weight")(s), [np.linalg.norm(m) for m in matrices], rtol=1e-12
    )
    assert probe.norm()(s).shape == (6,)
    assert list(probe.norm("*.0.*").coords(s.params)["matrix"]) == ["layers.0.bias", "layers.0.weight"]


@pytest.mark.parametrize("scale", [1e-170, 1.0, 1e170])
def test_stable_rank_knows_no_scale(scale):
    assert probe.stable_rank("params")(state(scale * jnp.diag(jnp.array([2.0, 1.0])))) == pytest.approx(1.25)


def test_a_matrix_that_is_not_finite_has_no_spectrum():
    broken = jnp.array([[1.0, jnp.inf], [0.0, 1.0]])
    assert np.isnan(probe.singular_values("params")(state(broken))).all()
    assert np.isnan(probe.stable_rank("params")(state(broken)))


def test_weights_and_paths():
    s = state()
    np.testing.assert_array_equal(probe.weights("layers.1.bias")(s), s.params["layers"][1]["bias"])
    assert set(probe.weights("layers.*.bias")(s)) == {f"layers_{i}_bias" for i in range(3)}
    with pytest.raises(BadInput, match=r"did you mean layers\.0\.weight"):
        probe.weights("layers.0.wieght")(s)
    with pytest.raises(BadInput, match="is a matrix"):
        probe.stable_rank("**.bias")(s)


def test_outputs_and_jacobian():
    s = state()
    np.testing.assert_allclose(probe.output_at(X)(s), NET.apply(s.params, X), atol=1e-15)
    at, h = np.array([0.3, -0.2]), 1e-6
    columns = [
        (NET.apply(s.params, at + h * e) - NET.apply(s.params, at - h * e)) / (2 * h) for e in np.eye(2)
    ]
    np.testing.assert_allclose(probe.jacobian_at(at)(s), np.stack(columns, 1), atol=1e-9)
    assert probe.jacobian_at(at).dims == ("out", "in")
    assert probe.output_at(at).dims == ("out",)
    assert probe.output_at(X) is probe.output_at(X.tolist())  # the same probe: compiled once


def test_sharpness_of_a_linear_layer_is_the_second_moment():
    net = model.Linear(1, 2, dim=2, out=3)
    top = np.linalg.eigvalsh(X.T @ X / len(X))[::-1]
    for method in ("dense", "lanczos"):
        s = state(net.init(jax.random.key(0)), net)
        assert probe.sharpness(method=method)(s) == pytest.approx(top[0], rel=1e-10)
    # Each is as many-fold as there are outputs; Lanczos, from one start, finds each once.
    np.testing.assert_allclose(probe.sharpness(6, method="dense")(s), np.repeat(top, 3), rtol=1e-10)
    found = probe.sharpness(3, method="lanczos")(s)
    np.testing.assert_allclose(found[:2], top, rtol=1e-10)
    assert np.isnan(found[2])


def test_lanczos_agrees_with_the_whole_hessian():
    s = state()
    whole = np.linalg.eigvalsh(probe.hessian(s.objective, s.params))[::-1]
    np.testing.assert_allclose(probe.sharpness(4, method="dense")(s), whole[:4], rtol=1e-10)
    np.testing.assert_allclose(probe.sharpness(4, method="lanczos")(s), whole[:4], rtol=1e-7)


def test_sharpness_of_a_network_that_blew_up_is_nan():
    broken = jax.tree.map(lambda leaf: leaf * jnp.inf, state().params)
    for method in ("dense", "lanczos"):
        assert np.isnan(probe.sharpness(method=method)(state(broken)))


def test_named_axes_reach_the_record():
    @probe.probe("corner", "axis", units="m", name="at_corners")
    def whatever(state):
        """Where it is."""
        return state.model.apply(state.params, jnp.eye(2))

    found = descent.train(
        NET, descent.Points(X, Y), descent.gd(0.1, 5), seeds=2,
        watch=[whatever, probe.stable_rank("layers.*.weight"), probe.weights("**.bias")],
    )  # fmt: skip
    assert found.at_corners.dims == ("seed", "step", "corner", "axis")
    assert found.at_corners.attrs == {"long_name": "Where it is", "units": "m"}
    assert found.stable_rank.sel(matrix="layers.2.weight").shape == (2, found.sizes["step"])
    assert found.weights_layers_2_bias.shape[-1] == 3


@pytest.mark.parametrize(
    "make",
    [
        lambda: probe.sharpness(method="guess"),
        lambda: probe.sharpness(0),
        lambda: probe.sharpness(40, iterations=10),
        lambda: probe.Probe("seed", lambda s: 0),
        lambda: probe.Probe("two words", lambda s: 0),
        lambda: probe.Probe("a", lambda s: 0, ("step",)),
        lambda: probe.Probe("a", 3),
        lambda: probe.jacobian_at(X)(state()),
        lambda: probe.sharpness(1000, iterations=1000)(state()),
    ],
)
def test_nonsense_is_refused(make):
    with pytest.raises(BadInput):
        make()
