from __future__ import annotations

import itertools

import numpy as np
import pytest

from saltus.papers.sim.law import one_layer, stages, two_layer

A2, XHAT = np.array([0.5025, 1.1275]), np.array([1.0, 1.5])
MU = np.array([1.0, 1.5, 2.2])
FIG8 = np.asarray(one_layer.rate(MU, (0.05,) * 3))
SWING = np.array([[0.1, 0.1], [0.1, 0.15]])


def path(U0, a, times):
    return np.asarray(two_layer.gram(two_layer.flow(U0, a, times)))


@pytest.fixture(scope="module")
def swing():
    times = np.linspace(0, 16, 16001)
    return times, path(SWING, A2, times)


@pytest.fixture(scope="module")
def random_runs():
    times = np.r_[0.0, np.geomspace(0.01, 400, 3000)]
    return times, path(np.random.default_rng(0).uniform(0, 0.1, (48, 3, 3)), FIG8, times)


def test_the_swing_by_start(swing):
    times, W = swing
    found = stages.find(times, W, A2)
    assert [one.name for one in found] == ["initial growth", "first suppression", "second growth"]
    assert [one.driver for one in found] == [(1, 1), (0, 1), (0, 0)]
    assert [one.cause for one in found] == [None, 1, None]
    assert found[0].start == 0
    assert found[-1].end == 16
    # w_22 is half learnt at 1.562, w_12 peaks at 2.263, falls fastest at 3.485; w_11 is half learnt at 7.027.
    assert 1.562 < found[0].end <= 2.263
    assert 3.485 < found[1].end < 7.027
    assert found[1].change < -0.05
    # The turns of the loss, at 2.389 and 4.525, line up.
    turns = stages.loss_legs(times, W, XHAT, found)
    np.testing.assert_allclose([one.start for one in turns], (0, 2.389, 4.525), atol=2e-3)
    assert [one.driver for one in turns] == [(1, 1), (0, 1), (0, 0)]
    assert [one.kind for one in turns] == ["growth", "suppression", "growth"]
    assert [one.stage for one in turns] == [0, 1, 2]
    assert [one.change > 0 for one in turns] == [False, True, False]


def test_shares_sum_to_the_change_of_the_loss_at_any_spacing(swing):
    times, W = swing
    for every in (1, 10, 1000):
        parts = stages.shares(W[::every], XHAT)
        loss = np.asarray(two_layer.loss_at(W[::every], XHAT))
        np.testing.assert_allclose(parts.sum(axis=(1, 2)), np.diff(loss), atol=1e-14)
    for one in stages.loss_legs(times, W, XHAT, stages.find(times, W, A2)):
        np.testing.assert_allclose(one.shares.sum(), one.change, atol=1e-12)


def test_a_diagonal_start_is_a_staircase():
    times = np.linspace(0, 60, 6001)
    W = path(np.diag([0.01, 0.01, 0.01]), FIG8, times)
    found = stages.find(times, W, FIG8)
    assert [one.name for one in found] == ["initial growth", "second growth", "third growth"]
    assert [one.driver for one in found] == [(2, 2), (1, 1), (0, 0)]
    halves = [float(hit) for hit in np.log(1 / 1e-4) / (2 * FIG8[::-1])]
    for one, half in zip(found, halves, strict=True):
        assert one.start < half < one.end


def signature(found):
    return [(one.kind, one.driver) for one in found]


def test_what_holds_on_every_random_start(random_runs):
    times, runs = random_runs
    suppressions = 0
    for W in runs:
        found = stages.find(times, W, FIG8)
        assert (found[0].start, found[-1].end) == (times[0], times[-1])
        assert found[0].name == "initial growth"
        for one, following in itertools.pairwise(found):
            assert one.end == following.start
            assert one.start < one.end
            assert (one.kind, following.kind) != ("suppression", "suppression")
        # Every axis is learnt, in exactly one growth stage, the strongest first.
        growths = [one.driver[0] for one in found if one.kind == "growth" and one.driver[0] == one.driver[1]]
        assert growths == [2, 1, 0]
        for one in found:
            if one.kind == "suppression":
                suppressions += 1
                assert one.change < 0
                assert one.cause in (1, 2)  # nothing is suppressed by the weakest axis
    assert suppressions > 24


def test_every_rise_of_the_loss_has_a_cause(random_runs):
    times, runs = random_runs
    rises, aligned = 0, 0
    for W in runs:
        found = stages.find(times, W, FIG8)
        for one in stages.loss_legs(times, W, MU, found):
            if one.change > 0:
                rises += 1
                assert one.kind == "suppression"
                assert one.driver[0] != one.driver[1]
                aligned += one.stage is not None
    assert rises >= 20
    assert aligned / rises > 0.9


def test_relabelling_the_axes_relabels_the_stages(random_runs):
    times, runs = random_runs
    order = np.array([2, 0, 1])
    place = np.argsort(order)
    for W in runs[:8]:
        found = stages.find(times, W, FIG8)
        turned = stages.find(times, W[:, order][:, :, order], FIG8[order])
        wanted = [(one.kind, tuple(sorted(place[list(one.driver)].tolist())), one.start) for one in found]
        assert [(one.kind, one.driver, one.start) for one in turned] == wanted


def test_the_spacing_of_samples_does_not_matter(random_runs):
    _, runs = random_runs
    linear = np.linspace(0, 400, 40001)
    U0 = np.random.default_rng(0).uniform(0, 0.1, (48, 3, 3))[:6]
    for dense, W in zip(path(U0, FIG8, linear), runs[:6], strict=True):
        assert signature(stages.find(linear, dense, FIG8, theta=0.012)) == signature(
            stages.find(random_runs[0], W, FIG8, theta=0.012)
        )


def test_noise_below_theta_changes_no_stage(swing):
    times, W = swing
    noise = 2e-5 * np.random.default_rng(0).normal(size=W.shape)
    noisy = stages.find(times[::100], (W + noise + np.swapaxes(noise, 1, 2))[::100], A2)
    assert signature(noisy) == signature(stages.find(times, W, A2))


def test_axes_beyond_the_concepts_and_runs_that_go_nowhere():
    times = np.linspace(0, 30, 3001)
    U0 = np.vstack([SWING, [[0.2, 0.1]]])
    a = np.r_[A2, 0.0]
    found = stages.find(times, path(U0, a, times), a)
    assert all(max(one.driver) < 2 for one in found)
    assert stages.find(times, np.zeros((3001, 2, 2)), A2) == []
    still = stages.loss_legs(times, np.zeros((3001, 2, 2)), XHAT, [])
    assert still == []


def test_a_run_that_blows_up_is_read_up_to_its_end(swing):
    times, W = swing
    broken = W.copy()
    broken[9000:] = np.inf
    assert signature(stages.find(times, broken, A2)) == signature(stages.find(times[:9000], W[:9000], A2))
    assert len(stages.loss_legs(times, broken, XHAT, [])) == 3
