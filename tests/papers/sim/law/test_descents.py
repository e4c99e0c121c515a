from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saltus._jax import jax, jnp
from saltus.papers.sim.law import descents, one_layer, two_layer


def walk(seed, n, shape=()):
    return np.random.default_rng(seed).normal(size=(*shape, n)).cumsum(axis=-1) + 3.0


@partial(jax.jit, static_argnames="relative")
def stream(curve, theta, relative=True):
    values = jnp.moveaxis(curve, -1, 0)
    state = descents.begin(values[0], theta, relative)
    state, _ = jax.lax.scan(lambda s, v: (descents.update(s, v), None), state, values[1:])
    return state


@pytest.mark.parametrize(
    ("curve", "turns", "falls_first"),
    [
        ([1, 0.5, 0.9, 0.0], [0, 1, 2, 3], True),
        ([0, 1, 0.5, 2], [0, 1, 2, 3], False),
        ([1, 1.05, 0.5, 0.45], [1, 3], True),  # the leg begins at the extreme before it
        ([1, 0.95, 1, 0.95, 1.04], [], False),  # never as far as the threshold
        ([1, 0.5, 0.55, 0.2, 0.25], [0, 3], True),  # a bump below the threshold
        ([1, 0.5, 0.5, 0.5, 0.8, 0.8], [0, 1, 4], True),  # a flat stretch turns where it begins
        ([1, 0.9], [], False),  # exactly the threshold is not more than it
        ([1, np.nan, 0.5, np.nan, 0.9], [0, 2, 4], True),
        ([1, 0.5, np.inf], [0, 1, 2], True),
        ([2.0], [], False),
        ([np.nan, np.nan], [], False),
    ],
)
def test_curves_made_by_hand(curve, turns, falls_first):
    limit = 0.1 if curve != [1, 0.9] else 1 - 0.9
    found = descents.legs(curve, limit)
    assert found.turns[: len(turns)].tolist() == turns
    assert (found.turns[len(turns) :] == -1).all()
    assert found.number == max(len(turns) - 1, 0)
    assert bool(found.falls_first) == falls_first
    assert found.falling + found.rising == found.number
    if not np.isnan(curve[0]):
        state = stream(np.array(curve, float), np.array([limit]), relative=False)
        assert (int(state.falling[0]), int(state.rising[0])) == (found.falling, found.rising)


def by_the_book(curve, limit):
    """Legs from the definition alone: the next confirmed move from the last extreme, sample by sample."""
    found, here, sign = [], 0, 0
    for t in range(1, len(curve)):
        if sign == 0:
            if curve[t] > min(curve[: t + 1]) + limit:
                sign, here = 1, t
                found = [int(np.argmin(curve[: t + 1])), t]
            elif curve[t] < max(curve[: t + 1]) - limit:
                sign, here = -1, t
                found = [int(np.argmax(curve[: t + 1])), t]
        elif sign * (curve[t] - curve[here]) > 0:
            here = found[-1] = t
        elif (curve[t] < curve[here] - limit) if sign > 0 else (curve[t] > curve[here] + limit):
            sign, here = -sign, t
            found.append(t)
    return found


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.05, 4), st.booleans())
def test_both_forms_agree_with_the_definition(seed, limit, rounded):
    curves = walk(seed, 100, (3,))
    curves = np.round(curves) if rounded else curves
    whole, running = (
        descents.legs(curves, limit),
        stream(curves, np.array([limit, 2 * limit]), relative=False),
    )
    np.testing.assert_array_equal(whole.falling, running.falling[0])
    np.testing.assert_array_equal(whole.rising, running.rising[0])
    np.testing.assert_array_equal(descents.legs(curves, 2 * limit).falling, running.falling[1])
    for curve, turns, number, first in zip(curves, whole.turns, whole.number, whole.falls_first, strict=True):
        mine = turns[turns >= 0]
        assert mine.tolist() == by_the_book(curve, limit)
        heights = np.diff(curve[mine])
        assert len(heights) == number
        assert (np.abs(heights) > limit).all()
        assert (np.sign(heights) == np.where(np.arange(number) % 2 == 0, -1, 1) * (1 if first else -1)).all()


def test_a_batch_and_several_relative_thresholds_at_once():
    loss, theta = np.exp(walk(1, 300, (4, 5)) / 4), np.array([0.001, 0.05, 0.3])
    state = stream(loss, theta)
    assert state.falling.shape == (3, 4, 5)
    for k, one in enumerate(theta):
        whole = descents.loss_legs(loss, one)
        np.testing.assert_array_equal(state.falling[k], whole.falling)
        np.testing.assert_array_equal(state.rising[k], whole.rising)
        np.testing.assert_array_equal(descents.s_loss(loss, one), whole.falling >= 2)
    assert len(np.unique(np.asarray(state.falling))) > 3


def test_swing_by_is_down_up_down_and_up_down_up():
    loss = np.array([1, 0.5, 0.53, 0.0])
    assert descents.s_loss(loss, 0.01)
    assert not descents.s_loss(loss, 0.05)
    assert not descents.s_loss([1, 0.5, 0.7], 0.01)  # no second fall
    weak = np.array([0.0, 0.5, 0.4, 1.0])
    assert descents.s_rev(weak, 0.05)
    assert not descents.s_rev(weak, 0.15)
    assert not descents.s_rev([0.5, 0.2, 0.6, 0.4], 0.05)  # one rise only


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.01, 1))
def test_depths_against_brute_force(seed, after):
    g = walk(seed, 40)
    began = [i for i in range(40) if any(g[k] > g[0] + after for k in range(i + 1))]
    wanted = max((g[i] - g[j] for i in began for j in began if i <= j), default=0.0)
    np.testing.assert_allclose(descents.drawdown(g, after), wanted, atol=1e-12)
    loss = np.exp(-g)
    started = [i for i in range(40) if any(loss[k] / loss[0] < 1 - 0.01 for k in range(i + 1))]
    rise = max(((loss[j] - loss[i]) / loss[0] for i in started for j in started if i <= j), default=0.0)
    np.testing.assert_allclose(descents.rise(loss), rise, rtol=1e-12)

    state = descents.begin_swing(g[0], after)
    other = descents.begin_swing(-1.0, 0.01)
    for value, height in zip(g[1:], loss[1:] / loss[0], strict=True):
        state, other = descents.update_swing(state, value), descents.update_swing(other, -height)
    np.testing.assert_allclose(state.depth, wanted, atol=1e-12)
    np.testing.assert_allclose(other.depth, rise, rtol=1e-9, atol=1e-12)


def test_depths_of_curves_that_blow_up_or_stop():
    assert descents.rise([1, 0.5, np.inf, np.inf]) == np.inf
    assert descents.rise([1, 0.5, np.nan, 0.6]) == pytest.approx(0.1)
    assert descents.rise([1.0, 2.0, 3.0]) == 0  # never fell, so nothing rose again
    assert descents.drawdown([[0, 0.04, 0.0], [0, 0.5, 0.2]]).tolist() == [0, pytest.approx(0.3)]


def test_the_distance_to_the_strongest_centre():
    target = np.array([1.0, 2.0, 0.0])
    path = np.array([[0, 0, 0], [0, 2, 0], [1, 2, 0], [0, 2, 0.5]])
    found = descents.centre_distance(path, target, strongest=1)
    np.testing.assert_allclose(found, [2, 0, 1, 0.5])


# Reference, 6000 starts, at .01, .1, 1 and 5% of the first loss; 5000 starts at .1 and 1%.
@pytest.mark.parametrize(
    ("d", "scale", "wanted"),
    [(3, 0.2, {1e-4: 0.438, 1e-3: 0.400, 1e-2: 0.260, 5e-2: 0.062}), (2, 0.1, {1e-3: 0.65, 1e-2: 0.49})],
)
def test_the_census_of_two_concepts(d, scale, wanted):
    a, target = one_layer.rate((1.0, 1.5), (0.05, 0.05), d), np.array([1.0, 1.5, 0.0])[:d]
    U0 = np.random.default_rng(4).uniform(0, scale, (1024, d, d))
    path = two_layer.flow(U0, a, np.linspace(0, 20, 801), rtol=1e-8, atol=1e-10)
    loss = np.asarray(two_layer.loss_at(two_layer.gram(path), target))
    running = stream(loss, np.array(list(wanted)))
    for (theta, share), counted in zip(wanted.items(), running.falling, strict=True):
        falling = descents.loss_legs(loss, theta).falling
        np.testing.assert_array_equal(counted, falling)
        assert set(falling.tolist()) == {1, 2}
        assert abs((falling == 2).mean() - share) < 4 * (share * (1 - share) / 1024) ** 0.5
