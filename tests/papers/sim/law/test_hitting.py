from __future__ import annotations

import numpy as np
import pytest

from saltus._jax import jax, jnp
from saltus.papers.sim.law import hitting, one_layer, two_layer

A2 = np.array([0.5025, 1.1275])
FIG8 = np.asarray(one_layer.rate((1.0, 1.5, 2.2), (0.05,) * 3))
FIG10 = np.asarray(one_layer.rate((0.7, 1.7, 3.0), (0.05,) * 3))


def close(value, wanted, atol):
    np.testing.assert_allclose(np.asarray(value), wanted, rtol=0, atol=atol)


def end_of_flow(U0, a, width=4):
    # Columns of zeros stay zeros: one compiled shape serves every width.
    wide = np.pad(U0, ((0, 0), (0, 0), (0, width - U0.shape[2])))
    return np.asarray(two_layer.gram(two_layer.flow(wide, a, [0.0, 400.0]))[:, 1])


def starts(seed, n, d, width, scale=0.1):
    return np.random.default_rng(seed).uniform(0, scale, (n, d, width))


@pytest.mark.parametrize("width", [1, 2, 3, 5])
@pytest.mark.parametrize("order", [(2, 0, 1)])
def test_complements_are_ratios_of_determinants(width, order):
    U, a = starts(0, 4, 3, width), np.array([0.5, 1.0, 2.0])[list(order)]
    W, found = U @ np.swapaxes(U, 1, 2), np.asarray(hitting.schur(U, a))
    for k in range(3):
        stronger = [i for i in range(3) if a[i] > a[k]]
        if len(stronger) < width:
            whole = np.linalg.det(W[:, [*stronger, k]][:, :, [*stronger, k]])
            wanted = whole / np.linalg.det(W[:, stronger][:, :, stronger]) if stronger else whole
            np.testing.assert_allclose(found[:, k], wanted, rtol=1e-6)
        else:
            assert (found[:, k] == 0).all()
            assert np.isinf(hitting.half_time(U, a)[:, k]).all()


def test_the_swing_by_start():
    U0 = np.array([[0.1, 0.1], [0.1, 0.15]])
    close(hitting.half_time(U0, A2)[0], 7.134, 5e-4)


def test_half_times_of_the_flow():
    U0, times = starts(1, 256, 3, 3), np.linspace(0, 120, 6001)
    w11 = np.sum(np.asarray(two_layer.flow(U0, FIG10, times))[:, :, 0] ** 2, axis=-1)
    assert (w11[:, -1] > 0.5).all()
    seen = times[np.argmax(w11 >= 0.5, axis=1)]
    predicted = np.asarray(hitting.half_time(U0, FIG10))[:, 0]
    assert np.corrcoef(seen, predicted)[0, 1] > 0.9995
    low, high = np.quantile(seen - predicted, [0.05, 0.95])
    assert -0.3 < low < high < 0.03  # reference: -.21, .00 (times here are rounded up by up to .02)
    # Quantiles of 6000 starts: 10% 16.8, 50% 22.1, 90% 32.7.
    many = np.quantile(hitting.half_time(starts(2, 20000, 3, 3), FIG10)[:, 0], [0.1, 0.5, 0.9])
    close(many, (16.9, 22.2, 32.8), 0.5)


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_the_flow_ends_at_the_projector_on_the_strongest_axes(width):
    U0, mu = starts(3, 64, 3, width), np.array([1.0, 1.5, 2.2])
    end = end_of_flow(U0, FIG8)
    predicted = np.asarray(hitting.end_point(U0, FIG8))
    close(end, predicted, 1e-6)
    close(predicted[0], np.diag([width > 2, width > 1, True]).astype(float), 0)
    close(two_layer.loss_at(end, mu), hitting.end_loss(U0, FIG8, mu), 1e-5)


def test_the_end_point_with_axes_that_carry_no_signal():
    U0, a = starts(4, 64, 3, 3, 0.3), np.array([0.6, 1.4, 0.0])
    end = end_of_flow(U0, a)
    predicted = np.asarray(hitting.end_point(U0, a))
    known = np.isfinite(predicted)
    assert known.sum() == 64 * 8
    close(end[known], predicted[known], 1e-6)
    assert np.ptp(end[:, 2, 2]) > 1e-3  # the rest does depend on the start
    narrow = starts(5, 64, 3, 1, 0.3)
    end = end_of_flow(narrow, a)
    close(end, hitting.end_point(narrow, a), 1e-6)


def test_tail_exponents():
    close([hitting.tail_exponent(FIG10, w) for w in (2, 3, 4, 6)], (0, 0.166, 0.332, 0.663), 5e-4)
    assert float(hitting.tail_exponent(np.r_[FIG10, 0.0], 3)) == float(hitting.tail_exponent(FIG10, 3))


@pytest.mark.parametrize("width", [2, 3, 5])
def test_survival_of_gaussian_starts(width):
    n, times = 20000, np.array([1.0, 2.0, 5.0, 20.0, 30.0])
    U0 = 0.05 * np.random.default_rng(6).normal(size=(n, 3, width))
    seen = (np.asarray(hitting.half_time(U0, FIG10))[None] > times[:, None, None]).mean(axis=1)
    chance = np.asarray(hitting.gaussian_survival(times, FIG10, width, 0.05))
    assert (np.abs(seen - chance) <= 4.5 * np.sqrt(chance * (1 - chance) / n) + 1e-12).all()
    assert width > 2 or (chance[:, 0] == 1).all()
    if width > 2:  # and its tail has the exponent of `tail_exponent`
        late = np.log(np.asarray(hitting.gaussian_survival([60.0, 70.0], FIG10, width, 0.05))[:, 0])
        close((late[0] - late[1]) / 10, hitting.tail_exponent(FIG10, width), 1e-4)


@pytest.mark.parametrize(
    ("width", "wanted"), [(3, (0.421, 0.258, 0.137, 0.084, 0.042)), (4, (0.168, 0.067, 0.023, 0.007, 0.002))]
)
def test_the_predicted_share_of_starts_that_leave_the_cone(width, wanted):
    W0 = two_layer.gram(starts(7, 8192, 3, width))
    shares = [float(hitting.leaves_cone(W0, FIG8, eta).mean()) for eta in (0.03, 0.01, 0.003, 0.001, 0.0003)]
    # The reference comes from 1024 starts: four of its standard errors.
    assert (np.abs(np.array(shares) - wanted) < 4 * np.sqrt(np.array(wanted) / 1024)).all()
    # It vanishes like eta^((d'-d+1)/2).
    assert abs(np.log(shares[1] / shares[3]) / np.log(10) - (width - 2) / 2) < 0.15


def test_the_prediction_against_the_recursion():
    W0 = two_layer.gram(starts(8, 512, 3, 3))
    predicted = np.asarray(hitting.leaves_cone(W0, FIG8, 0.01))

    def step(W, _):
        return two_layer.recursion_step(W, FIG8, 0.01), None

    t1 = float(jnp.max(-jnp.log(W0[:, 2, 2]) / (2 * FIG8[2])))
    W, _ = jax.lax.scan(step, W0, None, length=round(t1 / 0.01))
    seen = np.linalg.eigvalsh(np.asarray(W))[:, 0] < 0
    assert (predicted == seen).mean() > 0.95
    assert 0.1 < predicted.mean() < 0.4


def test_the_critical_correlation():
    a, eta, omega = np.array([18.0, 3.1]), 0.999 / 180, 10 ** np.array([-64.39509, -90.17778])
    close(hitting.critical_correlation(eta / a, a, 1.0, omega), (0.6928, 0.7677), 5e-5)

    def leaves(squared, strong, step, size):
        off = squared**0.5
        return bool(hitting.leaves_cone(size * np.array([[1, off], [off, 1]]), [1.0, strong], step))

    for strong, step, size in zip(a, eta / a, omega, strict=True):
        low, high = 0.0, 1.0
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (low, middle) if leaves(middle, strong, step, size) else (middle, high)
        close(low, hitting.critical_correlation(step, strong, 1.0, size), 4e-3)
