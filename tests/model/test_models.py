"""Models: the function each computes, and how it starts."""

from __future__ import annotations

import equinox as eqx
import numpy as np
import pytest

from saltus import descent, model, probe
from saltus._jax import jax, jnp
from saltus.core.errors import BadInput

KEY = jax.random.key(0)
X = np.random.default_rng(1).normal(size=(6, 4))


def test_a_deep_linear_network_is_its_product():
    net = model.Linear(3, 5, dim=4, out=2)
    params = net.init(KEY)
    assert [layer["weight"].shape for layer in params["layers"]] == [(5, 4), (5, 5), (2, 5)]
    np.testing.assert_allclose(net.apply(params, X), X @ np.asarray(net.product(params)).T, atol=1e-14)
    assert model.Linear(2, 7).init(KEY)["layers"][1]["weight"].shape == (7, 7)


def test_relu_by_hand():
    net = model.MLP(2, 8, dim=4, out=3)
    first, second = net.init(KEY)["layers"]
    hidden = np.maximum(X @ first["weight"].T + first["bias"], 0)
    exact = hidden @ second["weight"].T + second["bias"]
    np.testing.assert_allclose(net.apply(net.init(KEY), X), exact, atol=1e-14)
    np.testing.assert_allclose(net.apply(net.init(KEY), X[0]), exact[0], atol=1e-14)


def test_symmetric():
    net = model.SymmetricLinear(4, 2)
    u = np.asarray(net.init(KEY)["u"])
    assert u.shape == (4, 2)
    assert (u >= 0).all()
    assert (u <= 0.1).all()
    np.testing.assert_allclose(net.apply({"u": u}, X), X @ u @ u.T, atol=1e-14)


@pytest.mark.parametrize(
    ("init_as", "mean", "std", "bound"),
    [
        ("torch", 0, 2 / 8 / 3**0.5, 2 / 8),
        ("lecun", 0, 2 / 8, np.inf),
        ("normal", 0, 2, np.inf),
        ("uniform", 1, 2 / 12**0.5, 2),
    ],
)
def test_initial_weights_have_their_moments(init_as, mean, std, bound):
    net = model.MLP(1, 64, out=2000, init_as=init_as, scale=2.0)
    (layer,) = net.init(KEY)["layers"]
    w = np.asarray(layer["weight"])
    n = w.size**0.5
    assert abs(w.mean() - mean) < 5 * std / n
    assert abs(w.std() - std) < 5 * std / n
    assert np.abs(w).max() <= bound
    b = np.asarray(layer["bias"])
    assert abs(b.std() - (std if init_as == "torch" else 0)) < 0.1 * std
    np.testing.assert_array_equal(
        model.Linear(1, 3, init_as="eye", scale=2.0).init(KEY)["layers"][0]["weight"], 2 * np.eye(3)
    )


def test_equinox_modules_and_plain_functions_train():
    with_equinox = model.from_equinox(lambda key: eqx.nn.MLP(4, 2, 8, 1, key=key))
    params = with_equinox.init(KEY)
    assert "layers.0.weight" in probe.paths(params)
    module = eqx.nn.MLP(4, 2, 8, 1, key=KEY)
    np.testing.assert_allclose(with_equinox.apply(params, X), jax.vmap(module)(jnp.asarray(X)), atol=1e-14)
    plain = model.Model(lambda key: jnp.zeros((2, 4)), lambda w, x: x @ w.T)
    world = descent.Points(X, X[:, :2])
    for net in (with_equinox, plain):
        found = descent.train(net, world, descent.gd(0.1, 50), seeds=2, watch=[probe.loss, probe.norm()])
        assert (found.loss[:, -1] < 0.7 * found.loss[:, 0]).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: model.MLP(0, 3),
        lambda: model.MLP(2, 2.0),
        lambda: model.Linear(1, 2, dim=-1),
        lambda: model.MLP(2, 3, activation="reul"),
        lambda: model.MLP(2, 3, init_as="pytorch"),
        lambda: model.SymmetricLinear(2, scale=float("nan")),
        lambda: model.Model(3, 4),
        lambda: model.from_equinox(eqx.nn.Identity()),
    ],
)
def test_nonsense_is_refused(make):
    with pytest.raises(BadInput):
        make()
