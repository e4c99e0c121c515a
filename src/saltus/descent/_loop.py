"""The compiled loop of a descent in steps, looking only where it was told to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from saltus._jax import jax, jnp
from saltus.descent._batches import Plan, order, window
from saltus.descent._how import Steps
from saltus.descent.stop import Rule

PyTree = Any
RUNS = "runs"  # the mapped axis of a block of runs


class Carry(NamedTuple):
    """What one step hands to the next."""

    params: PyTree
    memory: PyTree  # of the optimiser
    rules: tuple[Any, ...]  # of the stop rules
    alive: jax.Array
    diverged_at: jax.Array
    stopped_at: jax.Array
    running: jax.Array  # runs of the block still alive: the same number for all of them


class Data(NamedTuple):
    """The points in the order this epoch visits them."""

    x: jax.Array  # [N, n_in]
    y: jax.Array  # [N, ...]
    epoch: jax.Array


def descend(
    how: Steps,
    plan: Plan,
    loss: Callable[[PyTree, jax.Array, jax.Array, jax.Array | None], jax.Array],
    params: PyTree,
    x: jax.Array,
    y: jax.Array,
    key: jax.Array,
    rules: Sequence[Rule],
    steps: np.ndarray,
    look: Callable[[PyTree, jax.Array], PyTree],
) -> tuple[PyTree, jax.Array, jax.Array]:
    """One run: what `look(params, step)` saw at each of `steps` [K], and when it diverged or stopped (-1).

    - `loss(params, x [B, n_in], y [B, ...], weights [B] or None)` is the mean loss of a batch.
    - Must be called under `vmap(..., axis_name=RUNS)`.

    The stretches between looks are loops of their own, so a step in between costs what it would cost
    without any probe; so are the epochs inside them, so that points are reordered once per epoch and
    a batch is a slice.
    """
    rule = how.rule()
    slope = jax.value_and_grad(loss)

    def step(i: jax.Array, c: Carry, data: Data) -> Carry:
        xb, yb, weights = window(plan, i, data.x, data.y)
        value, grads = slope(c.params, xb, yb, weights)
        updated = [r.update(s, value) for r, s in zip(rules, c.rules, strict=True)]
        finite = jnp.isfinite(value)
        stop = jnp.any(jnp.stack([s for _, s in updated])) if updated else jnp.asarray(False)
        go = c.alive & finite & ~stop
        updates, memory = rule.update(grads, c.memory, c.params)
        moved = jax.tree.map(lambda p, u: (p + u).astype(p.dtype), c.params, updates), memory
        params, memory = jax.tree.map(lambda new, old: jnp.where(go, new, old), moved, (c.params, c.memory))
        return Carry(
            params,
            memory,
            tuple(s for s, _ in updated),
            go,
            jnp.where(c.alive & ~finite, i, c.diverged_at),
            jnp.where(c.alive & finite & stop, i, c.stopped_at),
            jax.lax.psum(go.astype(jnp.int32), RUNS),
        )

    def stretch(first: jax.Array, last: jax.Array, c: Carry, data: Data) -> tuple[jax.Array, Carry]:
        # Ends early once every run of the block has stopped.
        return jax.lax.while_loop(
            lambda s: (s[0] < last) & (s[1].running > 0),
            lambda s: (s[0] + 1, step(s[0], s[1], data)),
            (first, c),
        )

    reorders = not plan.full and how.shuffle == "epoch"

    def reordered(data: Data, epoch: jax.Array) -> Data:
        visit = order(key, epoch, plan.points)
        return Data(x[visit], y[visit], epoch)

    def epochs(first: jax.Array, last: jax.Array, c: Carry, data: Data) -> tuple[Carry, Data]:
        def epoch(s: tuple[jax.Array, Carry, Data]) -> tuple[jax.Array, Carry, Data]:
            i, c, data = s
            now = i // plan.per_epoch
            data = jax.lax.cond(now == data.epoch, lambda d, _: d, reordered, data, now)
            i, c = stretch(i, jnp.minimum(last, (now + 1) * plan.per_epoch), c, data)
            return i, c, data

        _, c, data = jax.lax.while_loop(lambda s: (s[0] < last) & (s[1].running > 0), epoch, (first, c, data))
        return c, data

    def to_look(state: tuple[Carry, Data], ends: jax.Array) -> tuple[tuple[Carry, Data], PyTree]:
        c, data = state
        if reorders:
            c, data = epochs(ends[0], ends[1], c, data)
        else:
            c = stretch(ends[0], ends[1], c, fixed)[1]
        return (c, data), look(c.params, ends[1])

    never = jnp.asarray(-1, jnp.int64)
    start = Carry(
        params,
        rule.init(params),
        tuple(r.start() for r in rules),
        jnp.asarray(True),
        never,
        never,
        jax.lax.psum(jnp.asarray(1, jnp.int32), RUNS),
    )
    fixed = Data(x, y, never)
    if not plan.full and how.shuffle == "once":
        fixed = reordered(fixed, never + 1)
    ends = jnp.asarray(np.stack([np.append(0, steps[:-1]), steps], axis=1))
    (c, data), seen = jax.lax.scan(to_look, (start, fixed if reorders else Data(never, never, never)), ends)
    if steps[-1] < plan.total:
        last = (jnp.asarray(int(steps[-1])), jnp.asarray(plan.total))
        c = epochs(*last, c, data)[0] if reorders else stretch(*last, c, fixed)[1]

    # No step has looked at the last update's result yet.
    whole = jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(c.params)]).all()
    diverged = jnp.where(c.alive & ~whole, plan.total, c.diverged_at)
    return seen, diverged, c.stopped_at
