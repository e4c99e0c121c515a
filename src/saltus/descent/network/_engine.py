"""The compiled parts of a network's training: begin, advance to a step, look.

Members (seeds, scales of the initial values) share one program; with more than one, their states are
stacked and the step is mapped over them, while the count of steps stays one number for all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

from saltus._jax import jax, jnp
from saltus.descent import _over
from saltus.descent._batches import Plan, order
from saltus.descent._how import Steps, Using
from saltus.descent.network._rules import update
from saltus.descent.network._table import pick
from saltus.probe import Probe, State

PyTree = Any
Arrays = dict[str, jax.Array]
CHUNK = 512  # points evaluated at once


class Carry(NamedTuple):
    """What one step hands to the next."""

    params: PyTree
    memory: PyTree  # of the update rule
    alive: jax.Array
    diverged_at: jax.Array
    loss: jax.Array  # sum over the batches since the last look, and how many


@dataclasses.dataclass(frozen=True)
class Engine:
    """One model, update rule and loss; `many` members or one.

    Learning rates and the number of steps are given to the compiled parts rather than built into them
    (see `engine`), so that another schedule is the same program.
    """

    model: Any
    how: Steps
    plan: Plan
    loss: Callable[[jax.Array, jax.Array], jax.Array]
    probes: tuple[Probe, ...]
    dtype: str
    many: bool

    def lift(self, fn: Callable[..., Any], *axes: int | None) -> Callable[..., Any]:
        """`fn` for every member."""
        return jax.vmap(fn, in_axes=axes) if self.many else fn

    def begin(self, keys: jax.Array, scales: jax.Array | None) -> tuple[Carry, PyTree]:
        """The first state, and the parameters it starts with."""
        rule = update(self.how)

        def one(key: jax.Array, scale: jax.Array | None) -> Carry:
            model = self.model if scale is None else _over.put(self.model, "scale", scale)
            params = model.init(jax.random.fold_in(key, 0))
            params = jax.tree.map(lambda leaf: jnp.asarray(leaf).astype(self.dtype), params)
            zero = jnp.zeros((), jnp.float32)
            return Carry(params, rule.begin(params), jnp.asarray(True), jnp.asarray(-1, jnp.int32), zero)

        carry = self.lift(one, 0, None if scales is None else 0)(keys, scales)
        return carry, carry.params

    def advance(
        self,
        carry: Carry,
        first: jax.Array,
        last: jax.Array,
        keys: jax.Array,
        rates: jax.Array,
        table: Arrays,
    ) -> Carry:
        """The state after step `last` from the one after `first`; a member that diverged stays as it was.

        `rates`: the learning rate of every step, and padding.
        """
        plan = self.plan
        step = self.lift(partial(self._step, rates=rates, table=table), 0, 0, None)

        def visits(key: jax.Array, epoch: jax.Array) -> jax.Array:
            if self.how.shuffle is False or plan.full:
                return jnp.arange(plan.points, dtype=jnp.int32)
            which = epoch if self.how.shuffle == "epoch" else 0
            return order(jax.random.fold_in(key, 2), which, plan.points)

        def more(n: jax.Array, c: Carry, end: jax.Array) -> jax.Array:
            return (n < end) & jnp.any(c.alive)

        def epoch(s: tuple[jax.Array, Carry]) -> tuple[jax.Array, Carry]:
            n, c = s
            number = n // plan.per_epoch
            visited = self.lift(visits, 0, None)(keys, number)
            end = jnp.minimum(last, (number + 1) * plan.per_epoch)
            return jax.lax.while_loop(
                lambda s: more(*s, end), lambda s: (s[0] + 1, step(s[1], visited, s[0])), (n, c)
            )

        return jax.lax.while_loop(lambda s: more(*s, last), epoch, (first, carry))[1]

    def _step(self, c: Carry, visited: jax.Array, n: jax.Array, rates: jax.Array, table: Arrays) -> Carry:
        """One update of one member."""
        begins = (n % self.plan.per_epoch) * self.plan.batch
        x, y = pick(table, jax.lax.dynamic_slice_in_dim(visited, begins, self.plan.batch))
        value, slope = jax.value_and_grad(self.mean_loss)(c.params, self._cast(x), y)
        moved = update(self.how).move(c.params, c.memory, slope, n, rates[n])
        finite = jnp.isfinite(value)
        go = c.alive & finite
        params, memory = jax.tree.map(lambda new, old: jnp.where(go, new, old), moved, (c.params, c.memory))
        lost = jnp.where(c.alive & ~finite, n, c.diverged_at)
        return Carry(params, memory, go, lost, c.loss + jnp.where(go, value, 0).astype(jnp.float32))

    def mean_loss(self, params: PyTree, x: jax.Array, y: jax.Array) -> jax.Array:
        """The mean loss of a batch."""
        return jnp.mean(jax.vmap(self.loss)(self.model.apply(params, x), y))

    def _cast(self, x: jax.Array) -> jax.Array:
        return x.astype(self.dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x

    def evaluate(self, params: PyTree, table: Arrays) -> tuple[jax.Array, jax.Array]:
        """Mean loss and accuracy over a whole table, a chunk at a time."""
        count = len(table["x"])
        chunk = min(CHUNK, count)
        at = jnp.arange(-(-count // chunk) * chunk, dtype=jnp.int32).reshape(-1, chunk)

        def some(numbers: jax.Array) -> tuple[jax.Array, jax.Array]:
            x, y = pick(table, jnp.minimum(numbers, count - 1))
            out = self.model.apply(params, self._cast(x))
            right = jnp.argmax(out, axis=-1) == y.astype(jnp.int32) if out.ndim == y.ndim + 1 else None
            hits = jnp.zeros(chunk) if right is None else jnp.mean(right.reshape(chunk, -1), axis=1)
            counts = numbers < count
            losses = jax.vmap(self.loss)(out, y)
            return jnp.sum(jnp.where(counts, losses, 0)), jnp.sum(jnp.where(counts, hits, 0))

        sums = jax.lax.map(some, at)
        loss, hits = (jnp.sum(s) / count for s in sums)
        return loss, hits

    def look(
        self, carry: Carry, start: PyTree, n: jax.Array, time: jax.Array, keys: jax.Array, tables: Any
    ) -> dict[str, Any]:
        """What is seen after step `n`: loss and accuracy on every table, then the probes."""

        def one(params: PyTree, start: PyTree, key: jax.Array) -> dict[str, Any]:
            seen: dict[str, Any] = {}
            for name, table in tables.items():
                loss, right = self.evaluate(params, table)
                seen |= {f"loss_{name}": loss, f"accuracy_{name}": right}
            at = jax.random.fold_in(jax.random.fold_in(key, 3), n)
            table = tables["train"]
            state = State(
                params, n, time, self.model, None, table["x"], table["y"], at,
                lambda p: self.evaluate(p, table)[0], start,
            )  # fmt: skip
            return seen | {p.name: p.fn(state) for p in self.probes}

        return self.lift(one, 0, 0, 0)(carry.params, start, keys)


@lru_cache(maxsize=32)
def _compiled(engine: Engine) -> tuple[Any, Any, Any]:
    return _jitted(engine)


def _jitted(engine: Engine) -> tuple[Any, Any, Any]:
    return jax.jit(engine.begin), jax.jit(engine.advance, donate_argnums=0), jax.jit(engine.look)


def compiled(engine: Engine) -> tuple[Any, Any, Any]:
    """`begin`, `advance` and `look` compiled, once for equal engines."""
    how = engine.how if isinstance(engine.how, Using) else dataclasses.replace(engine.how, lr=1.0)
    how = dataclasses.replace(how, steps=1, epochs=None)
    if _scaled(engine.model):
        engine = dataclasses.replace(engine, model=dataclasses.replace(engine.model, scale=1.0))
    engine = dataclasses.replace(engine, how=how, plan=dataclasses.replace(engine.plan, total=0))
    try:
        return _compiled(engine)
    except TypeError:  # a model or rule that cannot be hashed
        return _jitted(engine)


def _scaled(model: Any) -> bool:
    return dataclasses.is_dataclass(model) and isinstance(getattr(model, "scale", None), int | float)


def scale_of(model: Any) -> float | None:
    """The scale of a model's initial values, where it has one."""
    return float(model.scale) if _scaled(model) else None


def rate_table(how: Steps, total: int) -> jax.Array:
    """The learning rate of every step [at least total], of one of a few standard lengths."""
    length = max(1 << (total - 1).bit_length(), 2**16)
    steps = jnp.minimum(jnp.arange(length, dtype=jnp.int32), total - 1)
    if not callable(how.lr):
        return jnp.full(length, how.lr, jnp.float32)
    return jax.vmap(how.lr)(steps).astype(jnp.float32)
