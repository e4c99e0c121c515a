"""Ensembles of seeds and settings: nothing depends on who else is trained; nothing crashes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from saltus import descent, model, probe
from saltus._jax import jax, jnp
from saltus.core.errors import BadInput
from saltus.descent import _program
from saltus.descent._world import half_squared_error


@dataclass(frozen=True)
class Cloud:
    """A Gaussian cloud around a point."""

    sigma: float = 0.3
    mu: tuple[float, ...] = (1.0, 2.0)
    n: int = 24

    def __post_init__(self):
        if self.sigma < 0:
            raise BadInput(f"sigma must be >= 0; got {self.sigma}")

    def sample(self, key):
        x = jnp.asarray(self.mu) + self.sigma * jax.random.normal(key, (self.n, 2))
        return x, x


NET = model.Linear(2, 3, dim=2)
HOW = descent.sgd(0.1, 8, epochs=6)


def first_output(state):
    """Output at the centre."""
    return state.model.apply(state.params, jnp.asarray(state.world.mu, state.x.dtype))


def run(**kw):
    kw = {"model": NET, "world": Cloud(), "how": HOW, "watch": [probe.loss, first_output], "chunk": 1, **kw}
    return descent.train(kw.pop("model"), kw.pop("world"), kw.pop("how"), **kw)


def test_a_seed_is_the_same_alone_and_in_any_company():
    many = run(seeds=range(40), block=8)
    alone = run(seeds=[7], block=8)
    some = run(seeds=[33, 7, 2], block=8)
    for name in ("loss", "first_output"):
        np.testing.assert_array_equal(alone[name].sel(seed=7), many[name].sel(seed=7))
        np.testing.assert_array_equal(some[name].sel(seed=[2, 33]), many[name].sel(seed=[2, 33]))
    # Initial weights, data and batches all differ between seeds.
    assert len(np.unique(many.loss.isel(step=0))) == 40


def test_another_base_is_another_ensemble():
    assert not np.any(run(seeds=3).loss.values == run(seeds=3, base=1).loss.values)


def test_a_sweep_is_its_settings_one_by_one():
    swept = run(seeds=3, over={"lr": [0.05, 0.1], "world.sigma": [0.1, 0.3, 0.5]})
    assert swept.loss.dims == ("lr", "sigma", "seed", "step")
    for lr, sigma in ((0.05, 0.5), (0.1, 0.1)):
        one = run(seeds=3, world=Cloud(sigma), how=descent.sgd(lr, 8, epochs=6))
        np.testing.assert_allclose(swept.loss.sel(lr=lr, sigma=sigma), one.loss, rtol=1e-12)
        np.testing.assert_allclose(swept.time.sel(lr=lr), one.time, rtol=1e-15)
    # One value of a sweep does not know of the others.
    part = run(seeds=3, over={"lr": [0.1], "world.sigma": [0.5]})
    np.testing.assert_array_equal(part.loss.sel(lr=0.1, sigma=0.5), swept.loss.sel(lr=0.1, sigma=0.5))


def test_sizes_and_tuples_sweep_too():
    swept = run(seeds=2, over={"model.width": [2, 4], "mu": [(1.0, 2.0), (3.0, 0.5)]})
    assert swept.loss.dims == ("width", "mu", "seed", "step")
    assert list(swept.mu.values) == ["(1.0, 2.0)", "(3.0, 0.5)"]
    one = run(seeds=2, model=model.Linear(2, 4, dim=2), world=Cloud(mu=(3.0, 0.5)))
    np.testing.assert_allclose(swept.loss.sel(width=4).isel(mu=1), one.loss, rtol=1e-12)


def test_a_world_that_needs_plain_numbers_is_compiled_value_by_value():
    @dataclass(frozen=True)
    class Plain(Cloud):
        def sample(self, key):
            x = np.float64(self.sigma) * jax.random.normal(key, (self.n, 2))
            return x, x

    swept = run(seeds=2, world=Plain(), over={"sigma": [0.1, 0.2]}, watch=probe.loss)
    np.testing.assert_allclose(
        swept.loss.sel(sigma=0.2), run(seeds=2, world=Plain(0.2), watch=probe.loss).loss, rtol=1e-12
    )


def test_divergence_stops_that_run_alone_and_is_dated():
    found = run(seeds=4, over={"lr": [0.05, 30.0]}, how=descent.gd(0.1, 60), at=descent.at.all)
    assert (found.diverged_at.sel(lr=0.05) == -1).all()
    assert np.isfinite(found.loss.sel(lr=0.05)).all()
    for seed in found.seed.values:
        when = int(found.diverged_at.sel(lr=30.0, seed=seed))
        losses = found.loss.sel(lr=30.0, seed=seed).values
        assert 0 < when < 60
        assert np.isfinite(losses[:when]).all()
        assert not np.isfinite(losses[when:]).any()
        outputs = found.first_output.sel(lr=30.0, seed=seed).values
        np.testing.assert_array_equal(outputs[when], outputs[-1])


def test_a_last_step_into_the_infinite_is_seen():
    net = model.Model(lambda key: jnp.ones(()), lambda u, x: u * x)
    world = descent.Points([[1e200]], [[0.0]])
    found = descent.train(net, world, descent.gd(1e-10, 1), seeds=1, loss=lambda o, y: o[0] * 1e200, watch=[])
    # Here the loss is infinite at once; below only the update overflows.
    assert found.diverged_at.item() == 0
    world = descent.Points([[1e150]], [[0.0]])
    found = descent.train(
        net, world, descent.gd(1e200, 1), seeds=1, loss=lambda o, y: o[0] ** 2 / 2, watch=[]
    )
    assert found.diverged_at.item() == 1


def test_a_stopped_run_keeps_the_state_it_stopped_in():
    plain = run(seeds=5, how=descent.gd(0.1, 200), at=descent.at.all)
    found = run(seeds=5, how=descent.gd(0.1, 200), at=descent.at.all, stop=descent.stop.loss_below(0.05))
    for seed in range(5):
        when = int(found.stopped_at.sel(seed=seed))
        losses = plain.loss.sel(seed=seed).values
        assert when == np.argmax(losses < 0.05)
        np.testing.assert_allclose(found.loss.sel(seed=seed)[: when + 1], losses[: when + 1], rtol=1e-12)
        assert (found.loss.sel(seed=seed)[when:] == found.loss.sel(seed=seed)[when]).all()


def test_plateau_waits_for_its_patience():
    stop = descent.stop.plateau(patience=7, rel=0.5)
    found = run(seeds=3, how=descent.gd(0.1, 300), at=descent.at.all, stop=stop)
    plain = run(seeds=3, how=descent.gd(0.1, 300), at=descent.at.all)
    for seed in range(3):
        best, since, expected = np.inf, 0, -1
        for n, value in enumerate(plain.loss.sel(seed=seed).values[:-1]):
            best, since = (value, 0) if value < best * 0.5 else (best, since + 1)
            if since >= 7:
                expected = n
                break
        assert int(found.stopped_at.sel(seed=seed)) == expected > 7


def test_float32_is_near_float64():
    single, double = run(seeds=2, dtype="float32"), run(seeds=2)
    assert single.loss.dtype == np.float32
    np.testing.assert_allclose(single.loss, double.loss, rtol=1e-3)


def test_looking_more_often_changes_nothing():
    rarely, often = run(seeds=2, at=descent.at.given([0, 5, -1])), run(seeds=2, at=descent.at.all)
    np.testing.assert_allclose(rarely.loss, often.loss.sel(step=rarely.step), rtol=1e-13)


def test_the_record_says_what_it_is():
    found = run(seeds=2)
    assert found.attrs["model"] == repr(NET)
    assert "sigma=0.3" in found.attrs["world"]
    assert found.loss.attrs["long_name"] == "training loss"
    assert found.first_output.attrs["long_name"] == "Output at the centre"
    assert found.first_output.dims == ("seed", "step", "first_output_0")
    assert found.epoch.values[-1] == 6


@pytest.mark.parametrize(
    "kw",
    [
        {"seeds": []},
        {"seeds": 0},
        {"seeds": [1, 1]},
        {"seeds": [-1]},
        {"seeds": [0.5]},
        {"over": {"lr": []}},
        {"over": {"lr": 0.1}},
        {"over": {"lr": [-0.1]}},
        {"over": {"world.sigma": [0.1, -1.0]}},
        {"over": {"rate": [0.1]}},
        {"over": {"world.sigmas": [0.1]}},
        {"over": {"how.lr": [0.1], "lr": [0.2]}},
        {"over": {"epochs": [1, 2]}, "seeds": 1, "watch": []},
        {"watch": [3]},
        {"watch": [probe.loss, probe.loss]},
        {"watch": [lambda state: 0.0]},
        {"watch": [probe.Probe("a", lambda s: s.x[0], ("p", "q"))], "seeds": 1},
        {"dtype": "float16"},
        {"how": "sgd"},
        {"model": 3},
        {"world": 3},
        {"model": model.Linear(1, 3)},
        {"model": model.Linear(1, 2, dim=2, out=1)},
        {"stop": 3},
        {"block": 0},
        {"chunk": 0, "seeds": 1},
    ],
    ids=lambda kw: "+".join(kw),
)
def test_what_cannot_be_is_refused_in_one_line(kw):
    with pytest.raises(BadInput) as error:
        run(**kw)
    assert "\n" not in str(error.value)


@dataclass(frozen=True)
class Drawn:
    """A world that gives what it is told to."""

    gives: Any

    def sample(self, key):
        return self.gives()


def applied(apply, init=lambda key: {"w": jnp.ones(2)}):
    return model.Model(init, apply)


POINTS = Drawn(lambda: (jnp.ones((4, 2)), jnp.ones(4)))
ODD = {
    "a world of one array": ({"world": Drawn(lambda: jnp.ones((4, 2)))}, "gives two arrays"),
    "a world of three": ({"world": Drawn(lambda: (jnp.ones((4, 2)),) * 3)}, "gives two arrays"),
    "a world of nothing": ({"world": Drawn(lambda: None)}, "not a NoneType"),
    "a world of words": ({"world": Drawn(lambda: (jnp.ones((4, 2)), [object()] * 4))}, "numbers are needed"),
    "complex points": ({"world": Drawn(lambda: (1j * jnp.ones((4, 2)), jnp.ones(4)))}, "complex"),
    "whole parameters": ({"model": applied(lambda p, x: x @ p, lambda k: jnp.ones(2, int))}, "whole numbers"),
    "whole outputs": ({"model": applied(lambda p, x: (x @ p["w"]).astype(int))}, "no gradient"),
    "true or false": ({"model": applied(lambda p, x: x @ p["w"] > 0)}, "no gradient"),
    "no output": ({"model": applied(lambda p, x: None)}, "a NoneType"),
    "a number": ({"model": applied(lambda p, x: 1.0)}, r"outputs are \(\)"),
    "a loss for each output": ({"loss": lambda out, y: jnp.ones(3)}, "one number for each"),
    "no loss": ({"loss": lambda out, y: None}, "one number for each"),
    "a word for a loss": ({"loss": "mse"}, "loss is a function"),
    "half a seed": ({"seeds": 2.5}, "whole numbers is needed"),
    "a true seed": ({"seeds": True}, "whole numbers is needed"),
    "too many seeds": ({"seeds": 10**12}, "there are"),
}  # fmt: skip


@pytest.mark.parametrize("odd", ODD)
def test_odd_parts_are_refused_in_a_line(odd):
    changed, says = ODD[odd]
    with pytest.raises(BadInput, match=says) as caught:
        run(**({"model": applied(lambda p, x: x @ p["w"]), "world": POINTS, "watch": probe.loss} | changed))
    assert "\n" not in str(caught.value)


def test_probes_that_disagree_on_an_axis():
    one, two = (probe.Probe(n, lambda s, k=k: jnp.ones(k), ("axis",)) for n, k in (("one", 2), ("two", 3)))
    with pytest.raises(BadInput, match="two has 3 along 'axis'"):
        run(watch=[one, two])


@pytest.mark.parametrize("lr", [10**30, True, "a", None, [0.1]])
def test_odd_rates(lr):
    with pytest.raises(BadInput, match="lr must be a positive number"):
        descent.gd(lr=lr, steps=3)
    with pytest.raises(BadInput, match="steps must be a whole number"):
        descent.gd(lr=0.1, steps=10**30)


factor = 1.0


def scaled(params, x):
    return factor * (x @ params["w"])


def helper(x):
    return x


@dataclass(frozen=True)
class Reads:
    """A frozen world that is not as frozen as it says."""

    def sample(self, key):
        return jnp.ones((4, 2)), helper(factor) * jnp.ones(4)


def test_what_functions_look_up_is_never_stale(monkeypatch):
    """At a prompt a number is changed and the same functions are trained again."""
    seen = probe.Probe("seen", lambda state: jnp.asarray(factor))

    def train(how, world):
        found = descent.train(how, world, descent.gd(lr=0.1, steps=2), seeds=1, watch=[probe.loss, seen])
        return float(found.loss[0, 0]), float(found.seen[0, 0])

    before = train(applied(scaled), POINTS), train(applied(scaled), Reads())
    assert before == (train(applied(scaled), POINTS), train(applied(scaled), Reads()))
    monkeypatch.setitem(globals(), "factor", 3.0)
    after = train(applied(scaled), POINTS), train(applied(scaled), Reads())
    assert before == ((0.5, 1.0), (0.5, 1.0))
    assert after == ((12.5, 3.0), (4.5, 3.0))
    monkeypatch.setitem(globals(), "helper", lambda x: 0 * x)
    assert train(applied(scaled), Reads()) == (18.0, 3.0)


def test_equal_setups_are_one_program():
    def of(model, **kw):
        return _program.prepared(
            _program.Setup(HOW, model, Cloud(**kw), (probe.loss,), None, half_squared_error, (), "float64"),
            (),
        )

    assert of(NET) is of(model.Linear(2, 3, dim=2))
    assert of(NET) is not of(NET, sigma=0.4)
    functions = model.Model(lambda key: jnp.ones(2), lambda p, x: jnp.tanh(x @ p))
    assert of(functions) is of(functions)
    held = [1.0]
    changing = model.Model(lambda key: jnp.ones(2), lambda p, x: held[0] * x @ p)
    assert of(changing) is not of(changing)
