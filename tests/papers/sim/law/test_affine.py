from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from saltus.papers.sim.law import affine, one_layer

ROOT = 0.05**0.5


def close(value, wanted, atol):
    np.testing.assert_allclose(np.asarray(value), wanted, rtol=0, atol=atol)


@pytest.mark.parametrize(
    ("mu", "sigma", "origin", "wanted", "atol"),
    [
        ((1, 2), ROOT, True, (0.1540, 0.7002, 1.9125), 5e-5),
        ((2, 2), ROOT, True, (0.2296, 1.3833, 2.1538), 5e-5),
        ((1, 2), 0.05, False, (0.001388, 0.8505, 2.6532), 5e-5),
        ((2, 2), 0.05, False, (0.000833, 2.0025, 3.0017), 5e-5),
    ],
)
def test_rates_with_biases(mu, sigma, origin, wanted, atol):
    found = np.asarray(affine.rates(affine.moment(mu, (sigma, sigma), origin=origin)))
    close(found, wanted, atol)
    close(found[0], wanted[0], atol if origin else 5e-7)
    # The theorem's rates, which belong to the model without biases, are other numbers.
    assert np.abs(np.sort(one_layer.rate(mu, (sigma, sigma), origin=origin))[0] - found[0]) > 0.1


@pytest.mark.parametrize("origin", [False, True])
def test_the_moment_is_that_of_the_mixture(origin):
    mu, sigma, d = np.array([1.0, 2.0, 0.5]), np.array([0.1, 0.2, 0.3]), 5
    centres = [m * np.eye(d)[p] for p, m in enumerate(mu)] + [np.zeros(d)] * origin
    spread = np.diag(np.r_[sigma**2, 0, 0])
    wanted = np.mean(
        [np.block([[spread + np.outer(c, c), c[:, None]], [c[None], np.ones((1, 1))]]) for c in centres],
        axis=0,
    )
    close(affine.moment(mu, sigma, d, origin), wanted, 1e-15)


def test_without_an_origin_cluster_the_slow_rate_is_of_order_sigma_squared():
    slow = [float(affine.rates(affine.moment((1, 2), (s, s)))[0]) for s in (0.1, 0.05, 0.025)]
    assert 3.9 < slow[0] / slow[1] < 4.05
    assert 3.9 < slow[1] / slow[2] < 4.05
    kept = [float(affine.rates(affine.moment((1, 2), (s, s), origin=True))[0]) for s in (0.1, 0.025)]
    assert kept[0] / kept[1] < 1.2


def test_flow_and_descent_against_integration():
    rng = np.random.default_rng(1)
    M = np.asarray(affine.moment((1, 2), (0.3, 0.2), d=3, origin=True))
    W0, b0, z = rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=3)
    target = np.c_[np.eye(3), np.zeros(3)]
    start, times = np.c_[W0, b0], np.array([0.0, 0.5, 4.0])
    solved = solve_ivp(
        lambda t, v: (-(v.reshape(3, 4) - target) @ M).ravel(),
        (0, 4), start.ravel(), method="DOP853", t_eval=times, rtol=1e-12, atol=1e-13,
    )  # fmt: skip
    wanted = solved.y.T.reshape(-1, 3, 4)
    found = affine.parameters(times, M, W0, b0)
    close(found.W, wanted[..., :3], 1e-11)
    close(found.b, wanted[..., 3], 1e-11)
    out = affine.output(times, M, W0, b0, z)
    close(out.output, wanted @ np.r_[z, 1], 1e-11)
    close(out.growth[0], np.zeros(3), 1e-14)
    close(out.noise[0], W0 @ z + b0, 1e-14)

    V, path = start, [start]
    for _ in range(500):
        V = V - 0.1 * (V - target) @ M
        path.append(V)
    steps = np.array([0, 1, 30, 500])
    walked = affine.discrete_parameters(steps, 0.1, M, W0, b0)
    close(walked.W, np.array(path)[steps][..., :3], 1e-12)
    close(walked.b, np.array(path)[steps][..., 3], 1e-12)
    close(affine.discrete_output(steps, 0.1, M, W0, b0, z).output, np.array(path)[steps] @ np.r_[z, 1], 1e-12)


def test_centred_data_give_the_theorem_back():
    M, a = affine.moment((0, 0), (1.0, 0.5)), one_layer.rate((0, 0), (1.0, 0.5))
    W0, z, times = np.array([[0.1, 0.2], [-0.3, 0.4]]), np.array([1.0, 2.0]), np.linspace(0, 3, 4)
    found = affine.output(times, M, W0, np.zeros(2), z)
    close(found.output, one_layer.output(times, a, W0, z).output, 1e-14)


def test_both_axes_share_the_slowest_rate():
    M = affine.moment((1, 2), (0.05, 0.05))
    late = np.asarray(affine.output([2000.0, 2500.0], M, np.zeros((2, 2)), np.zeros(2), (1, 2)).output)
    rates = np.log((np.array([1, 2]) - late[0]) / (np.array([1, 2]) - late[1])) / 500
    close(rates, np.full(2, affine.rates(M)[0]), 1e-8)
