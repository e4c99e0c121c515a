from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput
from saltus.papers.sim.training import Protocol, batches, linear, protocol, train
from saltus.papers.sim.training.learners import layers_at_start, learner, number_count
from saltus.papers.sim.training.linear import Layer, State
from saltus.papers.sim.training.tables import of_points
from saltus.papers.sim.world import World, streams


def test_one_reduced_step_of_the_fixture():
    y = jnp.array([[1, 0.1], [0.2, 2], [0, -0.1], [1.2, 0]])
    lifted = jnp.concatenate([y, jnp.ones((4, 1))], axis=1)
    moment = batches.moments(lifted[None], jnp.full((1, 4), 0.25))[0]
    np.testing.assert_allclose(moment, [[0.62, 0.125, 0.6], [0.125, 1.005, 0.5], [0.6, 0.5, 1]], rtol=1e-14)
    goal = linear.target(jnp.eye(3, 2), True)
    state = State(
        jnp.array([[0.1, -0.3], [0.2, 0.1], [0.05, -0.05]]),
        (Layer(jnp.array([[0.5, -0.1], [0.2, 0.3], [0.4, 0]]), jnp.array([0.1, 0, -0.1])),),
    )

    def loss(state):
        rows = linear.residual(state, goal)
        return float(jnp.sum((moment @ rows) * rows) / 3)

    after = linear.step(state, moment, goal, 1 / 3, 0.1)
    assert loss(state) == pytest.approx(0.4317683333, abs=5e-11)
    assert loss(after) == pytest.approx(0.3986661061, abs=5e-11)
    first = [[0.118559, -0.2999546667], [0.210053, 0.1191876667], [0.06982, -0.0422733333]]
    np.testing.assert_allclose(after.first, first, atol=5e-11)
    weight = [[0.503925, -0.1111493333], [0.215403, 0.3013463333], [0.399536, -0.00062]]
    np.testing.assert_allclose(after.later[0].weight, weight, atol=5e-11)
    np.testing.assert_allclose(after.later[0].bias, [0.1251333333, 0.0341333333, -0.0989333333], atol=5e-11)


def descend(settings, path, seed=0):
    """The states along 200 steps on fixed batches, as errors at the corners and training losses."""
    world, rng = settings.world, np.random.default_rng(seed)
    y = rng.normal(size=(world.size, world.s)) + rng.integers(2, size=(world.size, world.s))
    q = np.linalg.qr(rng.normal(size=(world.dim, world.s)))[0]
    sizes = [world.dim, *[settings.width] * (settings.depth - 1), world.dim]
    layers = tuple(
        Layer(
            rng.uniform(-1, 1, (into_, from_)) / from_**0.5,
            rng.uniform(-1, 1, into_) / from_**0.5 if settings.bias else None,
        )
        for from_, into_ in itertools.pairwise(sizes)
    )

    corners = world.corners().astype(settings.precision)

    @jax.jit
    def run(layers, y, q, factor, lr):
        by_moments = path == "reduced" and not settings.nonlinear
        table = of_points(replace(settings, epochs=1), by_moments, y, lambda _: jnp.arange(len(y))[::-1])
        net = learner(settings, path, layers, {**table, "axes": q}, factor, lr)
        table = net.prepare(table["epoch"][0])

        def epoch(state, _):
            state, _ = jax.lax.scan(lambda state, batch: (net.step(state, batch), None), state, table)
            return state, (net.watch(state, corners), net.train_loss(state))

        return jax.lax.scan(epoch, net.start, length=-(-200 // settings.steps_per_epoch))[1]

    return run(layers, y, q, settings.loss_factor, settings.lr)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("depth", "dim", "width"), [(1, 3, 5), (2, 3, 4), (3, 2, 5), (4, 64, 8), (5, 2, 3)])
def test_the_reduction_is_the_plain_path_to_rounding(depth, dim, width, bias):
    world = World((1, 2), dim=dim, points=51)
    # Both losses: one for each setting of the biases, and swapped at every second depth.
    settings = Protocol(world, depth, width, "linear", bias, bias ^ (depth % 2 == 0), batch=16, lr=0.05)
    for reduced, plain in zip(descend(settings, "reduced"), descend(settings, "plain"), strict=True):
        assert reduced.shape[0] >= 25
        np.testing.assert_allclose(reduced, plain, atol=1e-12, rtol=0)


@pytest.mark.parametrize(("depth", "bias"), [(2, False), (3, True)])
def test_relu_reduces_its_first_layer(depth, bias):
    world = World((1, 2, 3), dim=7, points=40)
    settings = Protocol(world, depth, 9, "relu", bias, lr=0.05, batch=32, dtype="float64")
    whole = descend(settings, "plain")
    for reduced, plain in zip(descend(settings, "reduced"), whole, strict=True):
        np.testing.assert_allclose(reduced, plain, atol=1e-12, rtol=0)
    for single, plain in zip(descend(replace(settings, dtype="float32"), "reduced"), whole, strict=True):
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, plain, atol=1e-4)


@pytest.mark.parametrize(
    ("activation", "shuffle", "path"),
    [("linear", "epoch", "auto"), ("relu", "once", "auto"), ("linear", "once", "plain")],
)
def test_training_is_the_loop_one_would_write(activation, shuffle, path):
    world = World((1, 2), sigma=0.2, dim=4, points=25, origin=True)
    settings = Protocol(
        world, 3, 6, activation, True, True, lr=0.3, batch=16, epochs=4, shuffle=shuffle, dtype="float64"
    )
    key = jax.random.fold_in(jax.random.key(5), 11)
    *_, init, orders = streams(key)
    raw = jax.random.uniform(init, (number_count(settings),), float, -1, 1)
    x = np.asarray(world.sample(key)[0])
    layers = [[np.array(a) for a in layer] for layer in layers_at_start(settings, raw, 1.0)]
    target, seen = np.asarray(world.rotation(key)) @ world.test_point(), []
    bend = (lambda a: np.maximum(a, 0)) if activation == "relu" else (lambda a: a)

    def forward(inputs):
        values = [inputs]
        for n, (weight, bias) in enumerate(layers):
            out = values[-1] @ weight.T + bias
            values.append(bend(out) if n < 2 else out)
        return values

    for epoch in range(4):
        number = 0 if shuffle == "once" else epoch
        order = batches.shuffled(jax.random.fold_in(orders, number), len(x))
        for start in range(0, len(x), 16):
            seen.append(np.sum((forward(target[None])[-1] - target) ** 2) / 2)
            batch = x[np.asarray(order)[start : start + 16]]
            values = forward(batch)
            back = 2 * (values[-1] - batch) / batch.size
            for n in (2, 1, 0):
                weight, bias = layers[n]
                slope = back.T @ values[n], back.sum(0)
                back = back @ weight * ((values[n] > 0) if activation == "relu" else 1)
                layers[n] = [weight - 0.3 * slope[0], bias - 0.3 * slope[1]]
    seen.append(np.sum((forward(target[None])[-1] - target) ** 2) / 2)
    ours = train(settings, [11], base=5, block=1, path=path)
    np.testing.assert_allclose(ours["loss_test"][0], seen, atol=1e-12)
    error = forward(x)[-1] - x
    np.testing.assert_allclose(ours["loss_train"][0, -1], np.mean(error**2), atol=1e-12)


def test_a_seed_is_the_same_alone_or_among_others():
    settings = Protocol(World((1, 2), dim=5, points=30), 2, 6, batch=16, epochs=3)
    many, alone = train(settings, 40), train(settings, [7])
    np.testing.assert_array_equal(many["output"][7], alone["output"][0])
    assert np.unique(many["output"][:, -1, 0, 0]).size == 40


def test_steps_asked_for_are_the_steps_of_the_whole_run():
    settings = Protocol(World((1, 2), dim=5, points=30), 2, 6, batch=16, epochs=3)
    whole, some = train(settings, 3), train(settings, 3, at=[0, 5, 12])
    assert whole["step"][-1] == settings.steps == 12
    np.testing.assert_array_equal(some["output"], whole["output"][:, [0, 5, 12]])
    np.testing.assert_array_equal(some["loss_train"], whole["loss_train"])
    np.testing.assert_array_equal(whole["train_step"], [0, 4, 8, 12])
    quick = train(settings, 3, at=[0, 5, 12], train_loss=False)
    assert "loss_train" not in quick
    np.testing.assert_array_equal(quick["output"], some["output"])


def test_a_run_that_diverges_is_recorded_with_its_step():
    settings = Protocol(World((1, 2), dim=5, points=30), 2, 6, lr=50.0, batch=16, epochs=3)
    seen = train(settings, 4)
    at = seen["diverged_at"]
    assert (at > 0).all()
    for loss, step in zip(seen["loss_test"], at, strict=True):
        assert np.isfinite(loss[:step]).all()
        assert not np.isfinite(loss[step])
    assert (train(replace(settings, lr=0.1), 4)["diverged_at"] == -1).all()


def test_a_shuffle_is_uniform():
    orders = np.asarray(
        jax.vmap(lambda k: batches.shuffled(k, 5))(jax.random.split(jax.random.key(0), 12_000))
    )
    assert (np.sort(orders, axis=1) == np.arange(5)).all()
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(counts) == 120
    # chi-square with 119 degrees of freedom: 99.99% quantile
    assert ((counts - 100) ** 2 / 100).sum() < 184


def test_the_last_batch_is_kept_unless_told():
    world = World((1, 2), points=25)
    assert Protocol(world, batch=16).steps_per_epoch == 4
    assert Protocol(world, batch=16, drop_last=True).steps_per_epoch == 3
    share = np.asarray(batches.weights(50, 16, 4))
    np.testing.assert_allclose(share.sum(1), 1)
    np.testing.assert_allclose(share[3], [0.5, 0.5] + [0] * 14)


def test_the_published_protocols():
    written, drawn = (
        protocol("as-written", (1, 2), depth=4),
        protocol("as-drawn", (2, 4), depth=4, dim=2, width=4),
    )
    assert (written.steps_per_epoch, written.steps, drawn.steps_per_epoch, drawn.steps) == (
        79,
        3160,
        118,
        4720,
    )
    assert (written.bias, written.shuffle, written.loss_factor, written.world.origin) == (
        False,
        "epoch",
        0.5,
        False,
    )
    assert (drawn.bias, drawn.shuffle, drawn.loss_factor, drawn.world.origin) == (True, "once", 0.5, True)
    assert protocol("as-drawn", (1, 2)).loss_factor == 1 / 64
    assert drawn.world.sigma == pytest.approx(0.05**0.5)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"depth": 0}, "depth must be"),
        ({"lr": -1}, "lr must be"),
        ({"batch": 101}, "needs as many points"),
        ({"activation": "relo"}, "did you mean relu"),
        ({"dtype": "float16"}, "did you mean"),
        ({"epochs": 1.5}, "whole number"),
        ({"widht": 3}, "did you mean width"),
        ({"world": 3}, "no setting"),
    ],
)
def test_what_cannot_be_trained_is_refused_in_one_line(settings, says):
    with pytest.raises(BadInput, match=says):
        protocol("as-written", (1, 2), points=50, **settings)


def test_what_cannot_be_watched_is_refused_in_one_line():
    settings = Protocol(World((1, 2), dim=5, points=30), batch=16, epochs=1)
    for bad in (
        {"at": [5]},
        {"at": [0.5]},
        {"at": []},
        {"watch": [[1, 2, 3]]},
        {"path": "exact"},
        {"base": -1},
    ):
        with pytest.raises(BadInput):
            train(settings, 2, **bad)
    with pytest.raises(BadInput, match="GiB"):
        train(replace(settings, world=World((1, 2), points=5 * 10**8)), 2)
