from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput
from saltus.papers.sim.law import descents, one_layer, two_layer

A2, XHAT = np.array([0.5025, 1.1275]), np.array([1.0, 1.5])
FIG8 = np.asarray(one_layer.rate((1.0, 1.5, 2.2), (0.05,) * 3))
FIG8_START = np.array([[0.06, 0.03, 0.005], [0.002, 0.08, 0.09], [0.06, 0.07, 0.05]])


def close(value, wanted, atol):
    np.testing.assert_allclose(np.asarray(value), wanted, rtol=0, atol=atol)


def test_reference_values_of_two_axes():
    W, a = np.array([[0.5, 0.2], [0.2, 0.3]]), np.array([1.0, 2.0])
    parts = two_layer.split(W, a)
    close(two_layer.velocity(W, a), [[0.38, 0.14], [0.14, 0.72]], 1e-15)
    close(parts.growth, [[1, 0.6], [0.6, 1.2]], 1e-15)
    close(parts.suppression, [[0.5, 0.46], [0.46, 0.36]], 1e-15)
    close(parts.noise, [[0.12, 0], [0, 0.12]], 1e-15)
    close(two_layer.recursion_step(W, a, 0.01), [[0.5038, 0.2014], [0.2014, 0.3072]], 1e-15)


def test_reference_values_of_three_axes():
    W = np.array([[0.3, 0.1, -0.05], [0.1, 0.2, 0.04], [-0.05, 0.04, 0.1]])
    a = np.array([0.5, 1.0, 2.0])
    parts = two_layer.split(W, a)
    close(
        two_layer.velocity(W, a),
        [[0.18875, 0.083, -0.0915], [0.083, 0.3002, 0.096], [-0.0915, 0.096, 0.34895]], 1e-15,
    )  # fmt: skip
    close(parts.noise, [[0.02125, -0.0055, 0.009], [-0.0055, 0.0198, -0.01], [0.009, -0.01, 0.01105]], 1e-15)
    close(parts.suppression[np.array([0, 0, 1]), np.array([1, 2, 2])], (0.0725, -0.0425, 0.034), 1e-15)


def random_start(seed, d, width, scale=1.0):
    rng = np.random.default_rng(seed)
    return scale * rng.normal(size=(d, width)), np.r_[rng.uniform(0.1, 3, d - 1), rng.choice([0.0, 1.0])]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([2, 3, 5]), st.sampled_from([1, 6]))
def test_the_split_is_the_printed_one_and_sums_to_the_velocity(seed, d, width):
    U, a = random_start(seed, d, width)
    W = U @ U.T
    parts, V = two_layer.split(W, a), np.asarray(two_layer.velocity(W, a))
    close(parts.growth - parts.suppression - parts.noise, V, 1e-13 * (1 + np.abs(V).max()))
    for i in range(d):
        for j in range(d):
            taken = W[i, j] / 2 * (W[i, i] * (3 * a[i] + a[j]) + (i != j) * W[j, j] * (3 * a[j] + a[i]))
            others = [k for k in range(d) if k not in (i, j)]
            noise = sum(W[k, i] * W[k, j] * (a[i] + a[j] + 2 * a[k]) for k in others) / 2
            close(parts.growth[i, j], W[i, j] * (a[i] + a[j]), 1e-12)
            close(parts.suppression[i, j], taken, 1e-11)
            close(parts.noise[i, j], noise, 1e-11)


@jax.jit
def derivatives(U, a):
    gradient = jax.grad(lambda U: two_layer.training_loss(two_layer.gram(U), a))(U)
    # dW/dt of the paper's clock, as a forward derivative along -gradient/2.
    return gradient, jax.jvp(two_layer.gram, (U,), (-gradient / 2,))[1]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([(2, 3), (3, 2)]))
def test_the_step_is_half_the_gradient_and_moves_w_by_the_velocity(seed, shape):
    U, a = random_start(seed, *shape)
    gradient, moved = derivatives(U, a)
    close(two_layer.gd_step(U, a, 0.1), U - 0.1 * gradient / 2, 1e-12)
    W = U @ U.T
    close(moved, two_layer.velocity(W, a), 1e-12 * (1 + np.abs(W).max() ** 2))
    # The recursion leaves out eta^2 M W M of gradient descent.
    R = W - np.eye(len(a))
    M = (R * a + a[:, None] * R) / 2
    stepped = two_layer.gram(two_layer.gd_step(U, a, 0.1))
    close(stepped, two_layer.recursion_step(W, a, 0.1) + 0.01 * M @ W @ M, 1e-12 * (1 + np.abs(W).max() ** 3))


def test_losses():
    W, a, z = np.array([[0.5, 0.2], [0.2, 0.3]]), np.array([1.0, 2.0]), np.array([1.0, 1.5])
    close(two_layer.loss_at(W, z), 0.5 * np.sum((W @ z - z) ** 2), 1e-15)
    R = W - np.eye(2)
    close(two_layer.training_loss(W, a), 0.5 * np.trace(R @ np.diag(a) @ R.T), 1e-15)
    close(two_layer.loss_at(np.stack([W, W]), z), [two_layer.loss_at(W, z)] * 2, 0)


def test_the_flow_against_reference_values():
    U0 = np.array([[0.1, 0.05], [0.02, 0.12]])
    # The times of the swing-by test, so that one compiled program serves both.
    W = two_layer.gram(two_layer.flow(U0, A2, np.linspace(0, 16, 16001)))[np.array([2000, 4000, 8000])]
    table = np.array([
        [0.07379935, 0.09249130, 0.56592972], [0.32314387, 0.05239213, 0.98778144],
        [0.96337660, 0.00033006, 0.99999603],
    ])  # fmt: skip
    close(np.stack([W[:, 0, 0], W[:, 0, 1], W[:, 1, 1]], axis=1), table, 6e-9)
    close(two_layer.loss_at(W, XHAT), (0.4660744, 0.1795425, 0.00065268), 6e-8)
    close(two_layer.training_loss(W, A2), (0.3287263, 0.1174275, 0.00033708), 6e-8)


def test_swing_by_reference_values():
    times = np.linspace(0, 16, 16001)
    W = np.asarray(two_layer.gram(two_layer.flow(np.array([[0.1, 0.1], [0.1, 0.15]]), A2, times)))
    loss, weak = np.asarray(two_layer.loss_at(W, XHAT)), np.asarray(two_layer.output(W, XHAT))[:, 0]
    zigzag = descents.loss_legs(loss, 0.01)
    close(loss[0], 1.46125, 5e-6)
    close(times[zigzag.turns], (0, 2.389, 4.525, 16), 2e-3)
    close(loss[zigzag.turns[1:3]], (0.21594, 0.28950), 1e-5)
    turns = descents.legs(weak, 0.01).turns
    close(times[turns[1:3]], (2.211, 4.563), 2e-3)
    close(weak[turns[1:3]], (0.3476, 0.2438), 1e-4)
    off = W[:, 0, 1]
    close(times[off.argmax()], 2.263, 2e-3)
    close(off.max(), 0.19477, 1e-5)
    close(times[np.diff(off).argmin()], 3.485, 3e-3)
    first = [
        times[np.argmax(w >= level)] for w, level in ((W[:, 1, 1], 0.5), (W[:, 1, 1], 0.9), (W[:, 0, 0], 0.5))
    ]
    close(first, (1.562, 2.720, 7.027), 2e-3)


@pytest.fixture(scope="module")
def many():
    U0, times = np.random.default_rng(3).uniform(0, 0.3, (32, 3, 3)), np.linspace(0, 20, 101)
    return U0, times, np.asarray(two_layer.gram(two_layer.flow(U0, FIG8, times)))


def test_the_flow_of_u_is_that_of_w_and_keeps_it_psd(many):
    U0, times, paths = many
    assert paths.shape == (32, 101, 3, 3)
    assert np.linalg.eigvalsh(paths).min() > -1e-14
    square = np.diag(FIG8)
    for path, start in zip(paths[:4], U0, strict=False):

        def speed(t, w):
            W = w.reshape(3, 3)
            return (W @ square + square @ W - (square @ W @ W + W @ W @ square) / 2 - W @ square @ W).ravel()

        solved = solve_ivp(
            speed, (0, 20), (start @ start.T).ravel(), method="DOP853", t_eval=times, rtol=1e-11, atol=1e-13
        )
        close(path, solved.y.T.reshape(-1, 3, 3), 1e-8)


def test_axes_of_a_diagonal_start_are_logistic():
    times = np.linspace(0, 60, 6001)
    diagonal = two_layer.gram(two_layer.flow(np.diag([0.1, 0.2, 0.3]), FIG8, times))
    wanted = two_layer.logistic(times[:, None], np.array([0.01, 0.04, 0.09]), FIG8)
    close(diagonal, np.asarray(wanted)[:, :, None] * np.eye(3), 1e-9)


WORLDS = [
    ((1.0, 1.5), (0.05,) * 2), ((1.0, 1.5, 2.2), (0.05,) * 3), ((1.0, 1.5, 2.2, 2.7), (0.05,) * 3 + (0.5,)),
    ((0.7, 1.7, 3.0), (0.05,) * 3),
]  # fmt: skip


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize(("mu", "sigma"), WORLDS)
def test_the_training_loss_never_rises(mu, sigma, power):
    a = one_layer.rate(mu, sigma) ** power
    U = jnp.asarray(np.random.default_rng(5).uniform(0, 0.1, (128, len(mu), len(mu))))

    def step(U, _):
        following = two_layer.gd_step(U, a, 0.01)
        return following, two_layer.training_loss(two_layer.gram(following), a)

    _, losses = jax.lax.scan(step, U, None, length=3000)
    assert float(jnp.diff(losses, axis=0).max()) <= 1e-15 * float(losses[0].max())


def test_the_training_loss_never_rises_along_the_flow(many):
    losses = two_layer.training_loss(many[2], FIG8)
    assert float(jnp.diff(losses, axis=1).max()) <= 1e-10


def test_one_start_under_the_flow_and_under_the_recursion():
    target = np.array([1.0, 1.5, 2.2])
    times = np.linspace(0, 60, 6001)
    W = np.asarray(two_layer.gram(two_layer.flow(FIG8_START, FIG8, times)))
    learnt = [times[np.argmax(W[:, k, k] >= 0.5)] for k in range(3)]
    close(learnt, (24.00, 3.48, 1.44), 1e-2)
    low = W[: len(times) // 3, 0, 0]
    close(times[low.argmin()], 11.60, 0.02)
    close(low.min(), 6.361e-4, 1e-7)
    loss = np.asarray(two_layer.loss_at(W, target))
    assert descents.loss_legs(loss, 0.001).falling == 2

    for eta, negative, gone, length in ((0.01, 529, 1298, 1400), (0.001, 7328, 16331, 16500)):

        def step(W, _, eta=eta):
            following = two_layer.recursion_step(W, FIG8, eta)
            return following, (following[0, 0], two_layer.loss_at(following, target))

        _, (w11, losses) = jax.lax.scan(step, two_layer.gram(FIG8_START), None, length=length)
        blown = ~(np.asarray(losses) <= 1e6 * loss[0])
        assert int(np.argmax(np.asarray(w11) < 0)) + 1 == negative
        assert int(np.argmax(blown)) + 1 == gone


@pytest.mark.parametrize(("d", "s"), [(2, 2), (4, 2), (5, 3), (3, 0)])
def test_entries(d, s):
    kind, group = two_layer.entries(d, s)
    for i in range(d):
        for j in range(d):
            near = i < s or j < s
            wanted = (two_layer.MAJOR if i == j else two_layer.MINOR) if near else two_layer.IRRELEVANT
            assert kind[i, j] == wanted
            groups = {p for p in (i, j) if p < s} if wanted == two_layer.MINOR else set()
            assert set(np.flatnonzero(group[i, j])) == groups


def test_times():
    close(two_layer.times_to(4.0, 5), [0, 1, 2, 3, 4], 0)
    close(two_layer.times_to(100.0, 4, "log", first=1.0), [0, 1, 10, 100], 1e-12)
    with pytest.raises(BadInput, match="linear"):
        two_layer.times_to(1.0, 3, "logarithmic")
