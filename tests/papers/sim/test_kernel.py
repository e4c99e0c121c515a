"""The GPU kernel of the linear training: interpreted here, and lowered for a GPU without having one."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput
from saltus.papers.sim.training import Protocol, engines, kernel, linear, resident, runs, train
from saltus.papers.sim.training.linear import Layer, State
from saltus.papers.sim.training.tables import programs
from saltus.papers.sim.world import World

KEPT = (0, 2, 2, 7)


def dealt(depth: int, dim: int, width: int, k: int, bias: bool, dtype: str, count: int = 2) -> Any:
    """Runs with everything different in each."""
    rng = np.random.default_rng(depth)
    sizes = [width] * (depth - 1) + [dim]

    def drawn(*shape: int, size: float = 1.0) -> jax.Array:
        return jnp.asarray(rng.normal(size=(count, *shape)) * size, dtype)

    half = drawn(3, k, k)
    return kernel.Trainings(
        first=drawn(k, sizes[0], size=0.3),
        weights=tuple(drawn(b, a, size=a**-0.5) for a, b in itertools.pairwise(sizes)),
        biases=tuple(drawn(b, size=0.3) for b in sizes[1:]) if bias else (),
        goal=drawn(k, dim, size=0.3),
        moments=half @ jnp.swapaxes(half, -1, -2) / k,
        rate=jnp.asarray(rng.uniform(0.01, 0.02, count), dtype),
        points=jnp.asarray(rng.normal(size=(k, 2)), dtype),
        kept=jnp.asarray(KEPT, jnp.int32),
        own=jnp.ones(count, jnp.int32),
    )


@partial(jax.jit, static_argnums=1)
def by_steps(given: Any, run: int) -> jax.Array:
    """The kept errors [U, k, d] of one run by `linear.step`."""
    biases = [b[run] for b in given.biases] or [None] * len(given.weights)
    layers = tuple(Layer(w[run], b) for w, b in zip(given.weights, biases, strict=True))
    state, goal, seen = State(given.first[run], layers), given.goal[run], []
    for n in range(KEPT[-1] + 1):
        seen.append(linear.residual(state, goal))
        moment = given.moments[run, n % given.moments.shape[1]]
        state = linear.step(state, moment, goal, jnp.asarray(0.5, goal.dtype), given.rate[run])
    return jnp.stack([seen[n] for n in KEPT])


CASES = [
    (1, 16, 1, 2, False, "float64"),
    (2, 16, 32, 2, False, "float64"),
    (2, 32, 16, 3, True, "float32"),
    (3, 16, 32, 3, True, "float64"),
    (4, 32, 16, 2, False, "float32"),
    (4, 16, 16, 4, True, "float64"),
]


@pytest.mark.parametrize(("depth", "dim", "width", "k", "bias", "dtype"), CASES)
def test_the_kernel_is_the_step(depth, dim, width, k, bias, dtype):
    given = dealt(depth, dim, width, k, bias, dtype)
    errors, lost = kernel.train(given, interpret=True)
    known = np.stack([by_steps(given, run) for run in range(2)])
    assert np.max(np.abs(known[:, -1] - known[:, 0])) > 1e-2
    np.testing.assert_allclose(errors, known, atol=1e-14 if dtype == "float64" else 1e-6, rtol=0)
    assert errors.dtype == dtype
    assert (np.asarray(lost) == -1).all()


def test_runs_that_are_not_asked_for_stand_still():
    given = dealt(2, 16, 16, 2, False, "float64")
    errors, _ = kernel.train(given._replace(own=jnp.asarray([1, 0], jnp.int32)), interpret=True)
    np.testing.assert_array_equal(errors[0], kernel.train(given, interpret=True)[0][0])
    np.testing.assert_array_equal(errors[1], np.repeat(errors[1][:1], len(KEPT), axis=0))


@pytest.mark.parametrize(
    ("depth", "dim", "width", "k", "bias", "dtype"), [*CASES, (5, 64, 64, 4, True, "float64")]
)
def test_a_gpu_could_have_it(depth, dim, width, k, bias, dtype):
    pytest.importorskip("jax.experimental.pallas.triton")
    given = dealt(depth, dim, width, k, bias, dtype)
    lowered = jax.jit(kernel.train).trace(given).lower(lowering_platforms=("cuda",))
    assert "saltus_linear_training" in lowered.as_text()


LINEAR = Protocol(
    World((1, 2), dim=16, points=30), 2, 16, "linear", True, True, lr=0.5, batch=16, epochs=2, shuffle="once"
)


def test_a_whole_block_could_go_to_a_gpu():
    pytest.importorskip("jax.experimental.pallas.triton")
    shape = runs._shape(LINEAR)
    draw, raw = programs(shape, True)
    numbers = {
        "base": np.uint32(0),
        "mu": np.ones(2),
        "sigma": np.ones(2),
        **{name: np.float64(1) for name in ("factor", "lr", "scale")},
        "watch": np.ones((2, 2)),
        "at": np.arange(3),
    }
    index = np.arange(4)
    table = {**jax.eval_shape(draw, index, numbers), "raw": jax.eval_shape(raw, index, numbers)}
    block = jax.jit(resident.resident(shape, True, False))
    assert block.trace(index, numbers, table).lower(lowering_platforms=("cuda",)).as_text()


@pytest.mark.parametrize(
    ("settings", "train_loss"),
    [(LINEAR, True), (replace(LINEAR, depth=1, bias=False, shuffle="epoch", dtype="float32"), False)],
)
def test_a_training_by_the_kernel_is_the_loop(settings, train_loss):
    asked = {"at": [5, 0, settings.steps, 3, 3], "watch": [[1, 0], [0.5, 2]], "train_loss": train_loss}
    loop = train(settings, [4, 7, 7], engine="loop", **asked)
    by_kernel = train(settings, [4, 7, 7], engine="kernel", block=4, **asked)
    assert loop.keys() == by_kernel.keys()
    assert np.max(np.abs(loop["output"][:, 2] - loop["output"][:, 1])) > 0.05
    atol = 1e-13 if settings.precision == "float64" else 1e-5
    for name, value in loop.items():
        assert by_kernel[name].dtype == value.dtype, name
        np.testing.assert_allclose(by_kernel[name], value, atol=atol, rtol=0, err_msg=name)
    alone = train(settings, [7], engine="kernel", block=4, **asked)
    np.testing.assert_array_equal(alone["output"][0], by_kernel["output"][1])


def test_a_run_that_diverges_by_the_kernel():
    settings = replace(LINEAR, lr=50.0)
    loop, by_kernel = (train(settings, 3, engine=e, block=4)["diverged_at"] for e in ("loop", "kernel"))
    assert (loop > 0).all()
    np.testing.assert_array_equal(by_kernel, loop)


def test_the_kernel_takes_what_fits(monkeypatch):
    def auto(settings, *, path="reduced", steps=9, on_gpu=True):
        return engines.engine_of("auto", runs._shape(settings), path, steps, 2, True, on_gpu)

    assert auto(LINEAR) == "kernel"
    assert auto(LINEAR, on_gpu=False) == "loop"
    assert auto(LINEAR, path="plain") == "loop"
    assert auto(LINEAR, steps=10**8) == "loop"
    assert auto(replace(LINEAR, width=20)) == "loop"
    assert auto(replace(LINEAR, depth=1, width=20)) == "kernel"
    assert auto(replace(LINEAR, activation="relu")) == "loop"
    with pytest.raises(BadInput, match="leave engine out"):
        train(replace(LINEAR, width=20), 2, engine="kernel")
    with pytest.raises(BadInput, match="did you mean kernel"):
        train(LINEAR, 2, engine="kernal")
    monkeypatch.setenv("SALTUS_ENGINE", "loop")
    assert auto(LINEAR) == "loop"


def test_without_a_kernel_the_loop_goes_on(monkeypatch, capsys):
    def broken(*_: Any) -> Any:
        raise NotImplementedError("no such\nthing here")

    known = train(LINEAR, 3, at=[0, 5], train_loss=False)
    monkeypatch.setattr(resident, "resident", broken)
    monkeypatch.setattr(engines, "_without_kernel", set())
    engines._whole.cache_clear()
    monkeypatch.setattr(runs, "engine_of", lambda *_: "kernel")
    found = train(LINEAR, 3, at=[0, 5], train_loss=False, block=4)
    assert "no kernel here, so slower (NotImplementedError: no such thing here)" in capsys.readouterr().err
    np.testing.assert_allclose(found["output"], known["output"], atol=1e-13)
    train(LINEAR, 3, at=[0, 5], train_loss=False, block=4)
    assert capsys.readouterr().err == ""
    assert engines._without_kernel == {runs._shape(LINEAR)}
