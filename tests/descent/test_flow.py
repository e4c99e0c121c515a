"""Exact gradient flow against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from saltus import descent, model, probe
from saltus._jax import jax, jnp
from saltus.core.errors import BadInput

X = np.array([[1.0, 0.2], [-0.5, 1.0], [0.3, -0.8], [2.0, 0.1]])
WORLD = descent.Points(X, X)
NET = model.Linear(1, 2, dim=2)


@pytest.mark.parametrize("solver", ["Tsit5", pytest.param("Dopri8", marks=pytest.mark.slow), "Kvaerno5"])
def test_one_linear_layer_relaxes_exponentially(solver):
    found = descent.train(
        NET,
        WORLD,
        descent.flow(6.0, rtol=1e-9, atol=1e-11, solver=solver),
        seeds=(2,),
        at=descent.at.linear(7),
        watch=probe.weights("layers.0.weight"),
    )
    assert found.weights.dims[:2] == ("seed", "time")
    w0 = NET.init(jax.random.fold_in(jax.random.fold_in(jax.random.key(0), 2), 0))["layers"][0]["weight"]
    a = X.T @ X / len(X)
    for t in found.time.values:
        exact = np.eye(2) + (np.asarray(w0) - np.eye(2)) @ expm(-a * t)
        np.testing.assert_allclose(found.weights.sel(time=t).squeeze("seed"), exact, rtol=0, atol=2e-8)


def test_a_single_product_is_logistic_and_stops_at_its_level():
    # f = u^2 x on x = 1: dw/dt = 4 w (1 - w) for w = u^2.
    net = model.SymmetricLinear(1, init_as="eye", scale=0.1)
    ones = descent.Points([[1.0]], [[1.0]])

    def w(state):
        return state.params["u"][0, 0] ** 2

    found = descent.train(
        net, ones, descent.flow(4.0, rtol=1e-10), seeds=1, watch=w, at=descent.at.linear(41),
        stop=descent.stop.loss_below(1e-3),
    )  # fmt: skip
    t = found.time.values
    exact = 0.01 * np.exp(4 * t) / (1 - 0.01 + 0.01 * np.exp(4 * t))
    level = 1 - np.sqrt(2e-3)
    reaches = np.log(level / (1 - level) * 0.99 / 0.01) / 4
    # The rule is read after each solver step, and the solver steps onto every moment looked at.
    stopped = found.stopped_at.item()
    assert reaches <= stopped <= reaches + 0.1
    before = t < reaches
    np.testing.assert_allclose(found.w.values[0, before], exact[before], rtol=0, atol=1e-8)
    frozen = found.w.values[0, t > stopped]
    assert len(frozen) > 5
    assert (frozen == frozen[0]).all()
    assert 0.5 * (1 - frozen[0]) ** 2 < 1e-3
    assert np.isnan(found.diverged_at.item())


def test_a_flow_that_blows_up_is_recorded_with_its_time():
    # L = -u^4/4 from u = 1 has u' = u^3: infinite at t = 1/2.
    net = model.Model(lambda key: np.ones(()), lambda u, x: u * x)
    found = descent.train(
        net,
        descent.Points([[1.0]], [[0.0]]),
        descent.flow(1.0, max_steps=3000),
        seeds=2,
        watch=probe.loss,
        at=descent.at.linear(5),
        loss=lambda out, y: -(out[0] ** 4) / 4,
    )
    np.testing.assert_allclose(found.diverged_at, 0.5, atol=1e-3)
    assert found.loss.values[0, 1] == pytest.approx(-1 / 4 / (1 - 2 * 0.25) ** 2, rel=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda: descent.flow(-1.0),
        lambda: descent.flow(1.0, rtol=0.0),
        lambda: descent.flow(1.0, rtol=1e-20),
        lambda: descent.flow(1.0, solver="Tsit6"),
        lambda: descent.flow(1.0, max_steps=0),
        lambda: descent.train(NET, WORLD, descent.flow(1.0), at=descent.at.all),
        lambda: descent.train(NET, WORLD, descent.flow(1.0), at=descent.at.given([2.0])),
        lambda: descent.train(NET, WORLD, descent.flow(1.0), dtype="float32"),
        lambda: descent.train(NET, WORLD, descent.flow(1.0), stop=descent.stop.plateau()),
    ],
)
def test_what_cannot_be_is_refused(make):
    with pytest.raises(BadInput):
        make()


def test_the_flow_of_a_network_compiles():
    """XLA's compiler died of this one, and the process with it, with kernels of several outputs."""

    class Cloud:
        def sample(self, key):
            x = 0.3 * jax.random.normal(key, (20, 3))
            return x, jnp.tanh(x)

    found = descent.train(
        model.Linear(2, 4, dim=3), Cloud(), descent.flow(until=2.0), seeds=3, watch=probe.loss
    )
    assert np.isfinite(found.loss).all()
    assert (found.loss.diff("time") < 0).all()
