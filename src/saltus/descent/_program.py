"""From a setup to a function of run numbers, prepared once for equal setups."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from saltus._jax import jax, jnp, workers
from saltus.core.errors import BadInput
from saltus.descent import _over
from saltus.descent import at as moments
from saltus.descent._batches import Plan
from saltus.descent._flow import Flow, follow
from saltus.descent._how import Steps
from saltus.descent._loop import RUNS, descend
from saltus.descent._rests import rests_on
from saltus.descent._world import half_squared_error
from saltus.probe import Probe, State

PyTree = Any


@dataclasses.dataclass(frozen=True)
class Setup:
    """Everything one compiled program is made from."""

    how: Steps | Flow
    model: Any
    world: Any
    probes: tuple[Probe, ...]
    at: moments.At | None
    loss: Callable[[jax.Array, jax.Array], jax.Array]
    rules: tuple[Any, ...]
    dtype: str


class Program:
    """The runs of one setup; `fields` are the (owner, field) pairs whose values differ between runs."""

    def __init__(self, setup: Setup, fields: tuple[tuple[str, str], ...]) -> None:
        self.setup, self.fields = setup, fields

    def block_fn(
        self,
        index: jax.Array,
        base: jax.Array,
        counts: jax.Array,
        seeds: jax.Array,
        values: tuple[jax.Array, ...],
    ) -> PyTree:
        """Results of the runs `index` [block]: numbers into (values..., seeds), the last one fastest.

        `counts` says how many of each list count; what follows is padding (see `arguments`).
        """

        def one(run: jax.Array) -> PyTree:
            rest, which = run // counts[-1], run % counts[-1]
            chosen: list[jax.Array] = []
            for i in reversed(range(len(values))):
                chosen.insert(0, values[i][rest % counts[i]])
                rest = rest // counts[i]
            return self._run(jax.random.fold_in(jax.random.key(base), seeds[which]), chosen)

        return jax.vmap(one, axis_name=RUNS)(index)

    @staticmethod
    def arguments(base: int, seeds: np.ndarray, values: tuple[np.ndarray, ...]) -> tuple[Any, ...]:
        """What `block_fn` takes after the index.

        Lists are padded to a few standard lengths: another number of seeds or values is the same
        compiled program, so it is not compiled again and its rounding cannot differ.
        """

        def padded(values: np.ndarray, least: int) -> np.ndarray:
            length = max(least, 1 << (len(values) - 1).bit_length())
            return np.concatenate([values, np.repeat(values[:1], length - len(values), axis=0)])

        counts = np.asarray([*(len(v) for v in values), len(seeds)])
        of_values = tuple(padded(v, 32) for v in values)
        return np.asarray(base, np.uint32), counts, padded(seeds.astype(np.uint32), 1024), of_values

    def _parts(self, chosen: list[jax.Array]) -> tuple[Any, Any, Any]:
        parts = {"how": self.setup.how, "model": self.setup.model, "world": self.setup.world}
        for (owner, field), value in zip(self.fields, chosen, strict=True):
            if owner == "how":
                value = value.astype(self.setup.dtype)
            parts[owner] = _over.put(parts[owner], field, value)
        return parts["how"], parts["model"], parts["world"]

    def _begin(self, key: jax.Array, chosen: list[jax.Array]) -> tuple[PyTree, jax.Array, jax.Array]:
        _, model, world = self._parts(chosen)
        params = self._cast(model.init(jax.random.fold_in(key, 0)), "the model's init")
        drawn = world.sample(jax.random.fold_in(key, 1))
        if not isinstance(drawn, tuple | list) or len(drawn) != 2:
            raise BadInput(f"a world's sample gives two arrays, inputs and targets, not {_said(drawn)}")
        x, y = (jnp.asarray(self._cast(one, "the world's sample")) for one in drawn)
        return params, x, y

    def _run(self, key: jax.Array, chosen: list[jax.Array]) -> PyTree:
        s = self.setup
        how, model, world = self._parts(chosen)
        params, x, y = self._begin(key, chosen)
        each = jax.vmap(s.loss)

        def loss(p: PyTree, xb: jax.Array, yb: jax.Array, weights: jax.Array | None = None) -> jax.Array:
            losses = each(model.apply(p, xb), yb)  # [B]
            if weights is None:
                return jnp.mean(losses)
            return jnp.sum(jnp.where(weights, losses, 0)) / jnp.sum(weights)

        def objective(p: PyTree) -> jax.Array:
            return loss(p, x, y)

        def seen_by(p: PyTree, step: Any, time: Any, key: jax.Array) -> PyTree:
            state = State(p, step, time, model, world, x, y, key, objective, params)
            return {q.name: q.fn(state) for q in s.probes}

        of_probes = jax.random.fold_in(key, 3)
        if isinstance(how, Flow):
            times = (s.at or moments.log()).times(s.how.until)  # type: ignore[union-attr]
            seen, diverged, stopped, count = follow(
                how, objective, params, s.rules, times, lambda p, t: seen_by(p, -1, t, of_probes)
            )
            return {"seen": seen, "diverged_at": diverged, "stopped_at": stopped, "solver_steps": count}

        plan = how.plan(len(x))
        steps = (s.at or moments.log()).steps(plan.total)
        clock = jnp.asarray(how.clock(steps))
        look_up = jnp.asarray(steps)

        def look(p: PyTree, step: jax.Array) -> PyTree:
            now = clock[jnp.searchsorted(look_up, step)]
            return seen_by(p, step, now, jax.random.fold_in(of_probes, step))

        of_batches = jax.random.fold_in(key, 2)
        seen, diverged, stopped = descend(how, plan, loss, params, x, y, of_batches, s.rules, steps, look)
        return {"seen": seen, "diverged_at": diverged, "stopped_at": stopped}

    def _cast(self, tree: PyTree, whose: str) -> PyTree:
        def cast(leaf: Any) -> jax.Array:
            try:
                leaf = jnp.asarray(leaf)
            except (TypeError, ValueError):
                raise BadInput(f"{whose} gives {_said(leaf)} where numbers are needed") from None
            if jnp.iscomplexobj(leaf):
                raise BadInput(f"{whose} gives complex numbers; give real and imaginary parts side by side")
            return leaf.astype(self.setup.dtype) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf

        return jax.tree.map(cast, tree)

    def shapes(self, values: tuple[np.ndarray, ...]) -> tuple[PyTree, Any, Any]:
        """Shapes of the parameters, x and y of a run, checked to fit together."""
        chosen = [jax.ShapeDtypeStruct(v.shape[1:], v.dtype) for v in values]
        params, x, y = jax.eval_shape(self._begin, jax.eval_shape(jax.random.key, 0), chosen)
        if x.ndim < 1 or y.ndim < 1 or len(x) != len(y) or not len(x):
            raise BadInput(f"a world's sample needs x [N, n_in] and y [N, ...]; got {x.shape} and {y.shape}")
        if not jax.tree.leaves(params):
            raise BadInput("the model's init gives no parameters; nothing can be trained")
        if any(not jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in jax.tree.leaves(params)):
            raise BadInput(
                "the model's init gives whole numbers; parameters that can be trained are real ones"
            )
        try:
            out = jax.eval_shape(lambda c, p, x: self._parts(c)[1].apply(p, x), chosen, params, x)
        except (TypeError, ValueError) as error:
            if isinstance(error, BadInput | jax.errors.ConcretizationTypeError | jax.errors.JAXTypeError):
                raise
            raise BadInput(
                f"the model does not take the world's points {x.shape}: {str(error).splitlines()[0]}"
            ) from error
        if self.setup.loss is half_squared_error:
            if not hasattr(out, "shape"):
                raise BadInput(
                    f"the model's outputs are {_said(out)} where the world's targets are {y.shape}"
                )
            if out.shape != y.shape:
                raise BadInput(f"the model's outputs are {out.shape} where the world's targets are {y.shape}")
        if all(not jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in jax.tree.leaves(out)):
            raise BadInput("the model's outputs are no real numbers: no gradient can reach its parameters")
        each = jax.eval_shape(jax.vmap(self.setup.loss), out, y)
        if getattr(each, "shape", None) != (len(x),):
            raise BadInput(f"loss gives {_said(each)} for {len(x)} points; one number for each is needed")
        return params, x, y

    def params(self, values: tuple[np.ndarray, ...]) -> PyTree:
        return self.shapes(values)[0]

    def moments(self, values: tuple[np.ndarray, ...]) -> tuple[np.ndarray, Plan | None]:
        """Steps (or times) looked at, and the plan of a descent in steps."""
        how, at = self.setup.how, self.setup.at or moments.log()
        if isinstance(how, Flow):
            self.shapes(values)
            return at.times(how.until), None
        plan = how.plan(len(self.shapes(values)[1]))
        return at.steps(plan.total), plan

    def block(self, values: tuple[np.ndarray, ...]) -> int:
        """Runs computed together: from what one run holds, never from how many there are.

        Wide on an accelerator. On a CPU as many as fit the cache, since a small network's step is
        mostly overhead, which a block shares.
        """
        params, x, y = self.shapes(values)
        how = self.setup.how
        batch = len(x) if isinstance(how, Flow) else how.plan(len(x)).batch
        widths = sum(leaf.shape[0] if leaf.ndim else 1 for leaf in jax.tree.leaves(params))
        point = (x.size + y.size) // len(x)
        numbers = 4 * sum(leaf.size for leaf in jax.tree.leaves(params)) + 4 * batch * (point + widths)
        data = x.size + y.size
        on_host = workers()[0].platform == "cpu"
        cache, memory = (2**18, 2**27) if on_host else (2**31, 2**31)
        fits = min(cache // max(numbers, 1), memory // max(data, 1), 64 if on_host else 512)
        return 1 << max(fits, 1).bit_length() - 1


def _said(value: Any) -> str:
    """A value as an error quotes it: the shape of an array, the type of anything else."""
    shape = getattr(value, "shape", None)
    return f"an array {shape}" if shape is not None else f"a {type(value).__name__}"


@lru_cache(maxsize=64)
def _cached(setup: Setup, fields: tuple[tuple[str, str], ...], looked_up: tuple[Any, ...]) -> Program:
    return Program(setup, fields)


def prepared(setup: Setup, fields: tuple[tuple[str, str], ...]) -> Program:
    """The program of a setup: the same object for equal setups, so that nothing is compiled twice."""
    looked_up = rests_on(getattr(setup, f.name) for f in dataclasses.fields(setup))
    return Program(setup, fields) if looked_up is None else _cached(setup, fields, looked_up)
