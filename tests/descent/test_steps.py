"""Descents in steps against closed forms and ten-line numpy loops."""

from __future__ import annotations

import numpy as np
import optax
import pytest

from saltus import descent, model, probe
from saltus._jax import jax, jnp
from saltus.core.errors import BadInput

X = np.array([[1.0, 0.2], [-0.5, 1.0], [0.3, -0.8], [2.0, 0.1], [0.4, 0.7], [1.1, -1.0], [-0.2, 0.5]])
Y = X @ np.array([[1.0, -0.4], [0.3, 0.8]]).T
WORLD = descent.Points(X, Y)
NET = model.Linear(1, 2, dim=2)
WATCH = [probe.weights("layers.0.weight"), probe.loss]


def start(seed=0, base=0):
    """The initial weights and the batch key of a seed, as the room promises to derive them."""
    key = jax.random.fold_in(jax.random.key(base), seed)
    weight = NET.init(jax.random.fold_in(key, 0))["layers"][0]["weight"]
    return np.asarray(weight), jax.random.fold_in(key, 2)


def slope(w, x, y):
    return (x @ w.T - y).T @ x / len(x)


def run(how, seeds=(0,), **kw):
    return descent.train(NET, WORLD, how, seeds=seeds, watch=WATCH, **kw)


def test_gd_on_a_quadratic_has_its_closed_form():
    found = run(descent.gd(0.2, 50), seeds=(0, 3), at=descent.at.every(10))
    a = X.T @ X / len(X)
    best = Y.T @ X / len(X) @ np.linalg.inv(a)
    for seed in (0, 3):
        w0 = start(seed)[0]
        for n in found.step.values:
            shrink = np.linalg.matrix_power(np.eye(2) - 0.2 * a, n)
            np.testing.assert_allclose(
                found.weights.sel(seed=seed, step=n), best + (w0 - best) @ shrink, rtol=0, atol=1e-13
            )


@pytest.mark.parametrize(
    ("drop_last", "shuffle"), [(True, "epoch"), (False, "epoch"), (False, "once"), (True, False)]
)
def test_sgd_is_the_numpy_loop_over_the_same_batches(drop_last, shuffle):
    how = descent.sgd(0.1, 3, epochs=4, drop_last=drop_last, shuffle=shuffle)
    found = run(how, at=descent.at.all)
    w, key = start()
    seen = [w]
    for epoch in range(4):
        visit = np.arange(7)
        if shuffle:
            visit = np.asarray(descent.order(key, epoch if shuffle == "epoch" else 0, 7))
        for first in range(0, 6 if drop_last else 7, 3):
            batch = visit[first : first + 3]
            w = w - 0.1 * slope(w, X[batch], Y[batch])
            seen.append(w)
    assert found.sizes["step"] == len(seen) == 1 + 4 * (2 if drop_last else 3)
    np.testing.assert_allclose(found.weights.squeeze("seed"), seen, rtol=0, atol=1e-14)
    np.testing.assert_allclose(found.epoch, np.arange(len(seen)) / (2 if drop_last else 3))


def test_momentum_by_hand():
    found = run(descent.momentum(0.05, 0.8, steps=20), at=descent.at.given([-1]))
    w, trace = start()[0], 0
    for _ in range(20):
        trace = 0.8 * trace + slope(w, X, Y)
        w = w - 0.05 * trace
    np.testing.assert_allclose(found.weights.squeeze(), w, rtol=0, atol=1e-14)


def test_adamw_and_adam_by_hand_in_one_program():
    # Adam is AdamW without decay: a sweep over the decay runs both.
    found = run(
        descent.adamw(0.05, b1=0.8, b2=0.95, steps=20),
        at=descent.at.given([-1]),
        over={"weight_decay": [0.0, 0.1]},
    )
    alone = run(descent.adam(0.05, b1=0.8, b2=0.95, steps=20), at=descent.at.given([-1]))
    for decay in (0.0, 0.1):
        w, m, v = start()[0], 0, 0
        for t in range(1, 21):
            g = slope(w, X, Y)
            m, v = 0.8 * m + 0.2 * g, 0.95 * v + 0.05 * g**2
            w = w - 0.05 * (m / (1 - 0.8**t) / (np.sqrt(v / (1 - 0.95**t)) + 1e-8) + decay * w)
        np.testing.assert_allclose(found.weights.sel(weight_decay=decay).squeeze(), w, rtol=0, atol=1e-13)
    np.testing.assert_allclose(alone.weights.values, found.weights.sel(weight_decay=0.0), rtol=0, atol=1e-13)


def test_schedules_and_any_optax_rule():
    rate = optax.linear_schedule(0.2, 0.0, 10)
    found = run(descent.using(optax.sign_sgd, rate, steps=10), at=descent.at.all)
    w = start()[0]
    for n in range(10):
        w = w - (0.2 - 0.02 * n) * np.sign(slope(w, X, Y))
    # Optax computes its schedules in single precision.
    np.testing.assert_allclose(found.weights.squeeze("seed")[-1], w, rtol=0, atol=1e-7)
    np.testing.assert_allclose(
        found.time, np.concatenate([[0], np.cumsum(0.2 - 0.02 * np.arange(10))]), atol=1e-7
    )


def test_what_probes_see_inside_is_what_they_see_outside():
    found = run(descent.sgd(0.1, 3, epochs=5), seeds=range(3))
    for i, j in np.ndindex(found.loss.shape):
        w = found.weights.values[i, j]
        assert found.loss.values[i, j] == pytest.approx(
            0.5 * np.mean(np.sum((X @ w.T - Y) ** 2, 1)), rel=1e-12
        )


def test_the_loss_of_a_point_can_be_anything():
    found = descent.train(
        NET, WORLD, descent.gd(0.1, 30), seeds=2, watch=WATCH, loss=lambda out, y: jnp.sum(jnp.abs(out - y))
    )
    w = found.weights.values[1, -1]
    assert found.loss.values[1, -1] == pytest.approx(np.mean(np.abs(X @ w.T - Y).sum(1)))


def test_every_epoch_visits_every_point_once():
    key = jax.random.key(5)
    visits = np.asarray([descent.order(key, e, 1000) for e in range(4)])
    assert (np.sort(visits) == np.arange(1000)).all()
    assert len(np.unique(visits[:, 0])) == 4
    # A uniform permutation: mean displacement n/3, within five standard errors.
    assert abs(np.abs(visits - np.arange(1000)).mean() - 1000 / 3) < 5 * 1000 * 0.24 / 4000**0.5


@pytest.mark.parametrize(
    "make",
    [
        lambda: descent.gd(-0.1, 5),
        lambda: descent.gd(float("nan"), 5),
        lambda: descent.gd(0.1, 0),
        lambda: descent.gd(0.1, 2.5),
        lambda: descent.sgd(0.1, 4),
        lambda: descent.sgd(0.1, 4, epochs=1, steps=1),
        lambda: descent.sgd(0.1, 0, epochs=1),
        lambda: descent.sgd(0.1, 4, epochs=1, shuffle="sometimes"),
        lambda: descent.sgd(0.1, 4, epochs=1, shuffle=True),
        lambda: descent.momentum(0.1, 1.0, steps=3),
        lambda: descent.adam(0.1, b2=-1, steps=3),
        lambda: descent.adamw(0.1, -1.0, steps=3),
        lambda: run(descent.sgd(0.1, 8, epochs=1)),
        lambda: run(descent.gd(0.1, 5), at=descent.at.given([6])),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(make):
    with pytest.raises(BadInput) as error:
        make()
    assert "\n" not in str(error.value)
