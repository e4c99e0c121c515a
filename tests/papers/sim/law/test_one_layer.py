from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from saltus._jax import jax, jnp
from saltus.papers.sim.law import descents, one_layer

MU, SIGMA = (1.0, 2.0), (0.05, 0.05)
W0 = np.array([[0.1, -0.2, 0.3], [0.4, 0.0, -0.1], [0.2, 0.1, 0.5]])


def close(value, wanted, atol=1e-9):
    np.testing.assert_allclose(np.asarray(value), wanted, rtol=0, atol=atol)


def test_reference_values():
    a = one_layer.rate(MU, SIGMA, d=3)
    close(a, (0.5025, 2.0025, 0.0))
    found = one_layer.output([1.0], a, W0, [1.0, 2.0, 1.0], s=2)
    close(found.growth[0], (0.3949837731, 1.7300052648, 0.0), 1e-10)
    close(found.noise[0], (0.3065026756, 0.1420064908, 0.6480027189), 1e-10)
    close(found.output[0], (0.7014864488, 1.8720117556, 0.6480027189), 1e-10)
    inside = one_layer.output([1.0], a, W0, [1.0, 2.0, 0.0], s=2)
    close(inside.output[0], (0.4014864488, 1.9720117556, 0.1480027189), 1e-10)
    close(one_layer.time_to(0.9, a[:2]), (4.5822588915, 1.1498552275), 1e-10)
    close(one_layer.rate(MU, SIGMA, origin=True), (0.3358333, 1.3358333), 1e-7)


@pytest.mark.parametrize("case", range(6))
def test_the_closed_form_solves_the_equation(case):
    rng = np.random.default_rng(case)
    s, d = [(1, 2), (2, 2), (2, 4), (3, 3), (3, 5), (1, 5)][case]
    a = np.r_[rng.uniform(0.1, 3, s), np.zeros(d - s)]
    start, z, times = rng.normal(size=(d, d)), rng.normal(size=d), np.array([0.0, 0.3, 1.0, 5.0])
    solved = solve_ivp(
        lambda t, w: (-(w.reshape(d, d) - np.eye(d)) * a).ravel(),
        (0, 5), start.ravel(), method="DOP853", t_eval=times, rtol=1e-12, atol=1e-13,
    )  # fmt: skip
    wanted = solved.y.T.reshape(-1, d, d)
    close(one_layer.jacobian(times, a, start), wanted, 1e-11)
    close(one_layer.output(times, a, start, z, s).output, wanted @ z, 1e-11)
    # Control: the sum as printed, up to s, is another number unless z stays on the first s axes.
    if s < d:
        printed = one_layer.output(times, a, start, np.r_[z[:s], np.zeros(d - s)], s).output
        assert np.abs(printed - wanted @ z).max() > 0.01


@pytest.mark.parametrize("eta", [0.01, 0.1, 0.7])
def test_gradient_descent_has_its_own_exact_form(eta):
    a, z = np.array([0.5025, 2.0025, 0.0]), np.array([1.0, 2.0, 1.0])
    W, path = W0.copy(), [W0]
    for _ in range(2000):
        W = W - eta * (W - np.eye(3)) * a
        path.append(W)
    steps = np.array([0, 1, 2, 7, 100, 2000])
    close(one_layer.discrete_jacobian(steps, eta, a, W0), np.array(path)[steps], 1e-13)
    found = one_layer.discrete_output(steps, eta, a, W0, z, s=2)
    close(found.output, np.array(path)[steps] @ z, 1e-13)
    close(found.growth + found.noise, found.output, 0)


def test_the_distance_of_descent_to_flow_is_of_order_eta():
    a, z = np.array([0.5025, 2.0025, 0.0]), np.array([1.0, 2.0, 1.0])
    flow = one_layer.output([2.0], a, W0, z).output
    gaps = [
        float(np.abs(one_layer.discrete_output([round(2 / eta)], eta, a, W0, z).output - flow).max())
        for eta in (0.1, 0.01, 0.001)
    ]
    assert 8 < gaps[0] / gaps[1] < 13
    assert 9 < gaps[1] / gaps[2] < 11


def test_the_rate_of_descent():
    close(one_layer.discrete_rate(2.0025, 0.1), 2.234, 1e-3)
    steps = float(one_layer.steps_to(0.9, 2.0025, 0.1))
    close((1 - 0.1 * 2.0025) ** steps, 0.1, 1e-12)


def test_runs_under_vmap_and_jit():
    starts = np.random.default_rng(0).normal(size=(5, 3, 3))
    a, z, times = jnp.array([0.5, 2.0, 0.0]), jnp.ones(3), jnp.linspace(0, 3, 4)
    many = jax.jit(jax.vmap(lambda W: one_layer.output(times, a, W, z, 2).output))(starts)
    for one, start in zip(many, starts, strict=True):
        close(one, one_layer.output(times, a, start, z, 2).output, 1e-14)


numbers = st.floats(-3, 3).filter(lambda x: abs(x) > 1e-3)


@settings(max_examples=40, deadline=None)
@given(
    st.tuples(st.floats(0.05, 4), st.floats(0.05, 4)).filter(lambda a: abs(a[0] - a[1]) > 1e-2),
    st.lists(numbers, min_size=4, max_size=4),
    st.tuples(numbers, numbers),
    st.sampled_from([0, 1]),
)
def test_two_concepts_turn_at_most_once(a, start, z, axis):
    W, times = np.reshape(start, (2, 2)), np.r_[0.0, np.geomspace(1e-4, 200, 1200)]
    g = np.asarray(one_layer.output(times, a, W, z).output[:, axis]) / z[axis]
    zigzag = descents.legs(g, 1e-9 * max(1.0, float(np.abs(g).max())))
    assert zigzag.number <= 2
    assert not descents.s_rev(g, theta=1e-6)
    turn = float(one_layer.turning_time(a, W, z, axis))
    if zigzag.number == 2:
        here = zigzag.turns[1]
        assert times[here - 1] <= turn <= times[here + 1]


def test_three_concepts_can_turn_twice():
    # Slopes with roots at exp(-t) = .7 and .3: the control that s_rev is not 0 by construction.
    a, slope = np.array([1.0, 2.0, 3.0]), 10 * np.array([0.21, -1.0, 1.0])
    W = np.eye(3)
    W[0] -= slope / a
    g = np.asarray(one_layer.output(np.linspace(0, 20, 4001), a, W, np.ones(3)).output[:, 0])
    assert descents.s_rev(g, theta=0.05)
