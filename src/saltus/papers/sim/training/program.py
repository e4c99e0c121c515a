"""A block of runs as one compiled program: a loop over steps, all runs of the block side by side."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from saltus._jax import jax, jnp
from saltus.papers.sim.training.learners import layers_at_start, learner
from saltus.papers.sim.training.protocol import Protocol

__all__ = ["loop"]


@cache
def loop(shape: Protocol, path: str, train_loss: bool) -> Callable[..., dict[str, jax.Array]]:
    """A block of runs; the same object, hence compiled once, for all protocols of one shape.

    It takes the places [block] of its runs in the `table` of a group (see `tables`), and `numbers`.
    """

    def block(
        index: jax.Array, numbers: dict[str, jax.Array], table: dict[str, jax.Array]
    ) -> dict[str, jax.Array]:
        rows = jax.tree.map(lambda a: a[index], table)
        if len(index) == 1:
            # Products of single matrices are quicker than of a batch of one.
            seen = _one(shape, path, train_loss, jax.tree.map(lambda a: a[0], rows), numbers)
            return jax.tree.map(lambda a: jnp.asarray(a)[None], seen)
        return jax.vmap(lambda row: _one(shape, path, train_loss, row, numbers))(rows)

    return block


def _one(
    shape: Protocol, path: str, train_loss: bool, table: dict[str, jax.Array], numbers: dict[str, jax.Array]
) -> dict[str, jax.Array]:
    """One run on its table."""
    layers = layers_at_start(shape, table["raw"], numbers["scale"])
    net = learner(shape, path, layers, table, numbers["factor"], numbers["lr"])
    dtype = jnp.dtype(shape.precision)
    z = jnp.concatenate([numbers["mu"][None], numbers["watch"]]).astype(dtype)
    axes = table["axes"].astype(dtype)

    def look(state: Any) -> tuple[jax.Array, jax.Array]:
        error = net.watch(state, z)  # [1 + p, d]
        return z + error @ axes, jnp.sum(error * error, axis=-1) / 2

    def step(state: Any, batch: Any) -> tuple[Any, Any]:
        return net.step(state, batch), look(state)

    once = net.prepare(table["epoch"][0]) if shape.shuffle == "once" else None

    def epoch(state: Any, item: jax.Array | None) -> tuple[Any, Any]:
        before = net.train_loss(state) if train_loss else jnp.nan
        state, seen = jax.lax.scan(step, state, once if item is None else net.prepare(item))
        return state, (seen, before)

    items = table["epoch"] if once is None else None
    state, (seen, trained) = jax.lax.scan(epoch, net.start, items, length=shape.epochs)
    # [epochs, steps, ...] -> [epochs * steps + 1, ...]
    outputs, losses = jax.tree.map(
        lambda all_, last: jnp.concatenate([all_.reshape(-1, *all_.shape[2:]), last[None]]), seen, look(state)
    )
    lost = ~(jnp.all(jnp.isfinite(outputs), axis=(1, 2)) & jnp.all(jnp.isfinite(losses), axis=1))
    at = numbers["at"]
    result = {
        "output": outputs[at, 1:],
        "loss": losses[at, 1:],
        "loss_test": losses[at, 0],
        "diverged_at": jnp.where(jnp.any(lost), jnp.argmax(lost), -1),
    }
    if train_loss:
        result["loss_train"] = jnp.append(trained, net.train_loss(state))
    return result
