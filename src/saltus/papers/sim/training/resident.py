"""A block of reduced linear runs by `kernel`: what goes in, and what is seen from the errors it kept."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from saltus._jax import jax, jnp
from saltus.papers.sim.training import batches, kernel, linear
from saltus.papers.sim.training.learners import layers_at_start
from saltus.papers.sim.training.protocol import Protocol

__all__ = ["MEMORY", "block_of", "fits", "resident"]

MEMORY = 2**32  # bytes of kept errors in a block


def fits(shape: Protocol, path: str, steps: int, points: int, train_loss: bool) -> bool:
    """Whether these runs can go by the kernel; nothing in it depends on how many they are."""
    if shape.nonlinear or path != "reduced":
        return False
    rows = shape.world.s + shape.bias
    kept = steps + (shape.epochs if train_loss else 0) + 1
    bytes_kept = block_of(shape) * kept * rows * shape.world.dim * jnp.dtype(shape.precision).itemsize
    small = kernel.fits(shape.depth, shape.world.dim, shape.width, rows, points + 1)
    return small and bytes_kept <= MEMORY and shape.steps < 2**31


def block_of(shape: Protocol) -> int:
    """Runs of one kernel call: about one for each of a large GPU's processors, two where they take half."""
    return 128 if shape.precision == "float64" else 256


@cache
def resident(shape: Protocol, train_loss: bool, interpret: bool) -> Callable[..., dict[str, jax.Array]]:
    """The block of `program.loop` for these runs, to rounding."""

    def block(
        index: jax.Array, numbers: dict[str, jax.Array], table: dict[str, jax.Array]
    ) -> dict[str, jax.Array]:
        # A block is filled up with copies of its last run, which need not be computed.
        first = jnp.argmax(index[:, None] == index[None, :], axis=1)
        own = (first == jnp.arange(len(first))).astype(jnp.int32)
        ends = jnp.arange(shape.epochs + 1) * shape.steps_per_epoch if train_loss else [shape.steps]
        wanted = jnp.concatenate([numbers["at"], jnp.asarray(ends, numbers["at"].dtype)])
        order = jnp.argsort(wanted)
        z = jnp.concatenate([numbers["mu"][None], numbers["watch"]]).astype(shape.precision)
        errors, lost = kernel.train(
            _trainings(shape, table, numbers, z, wanted[order].astype(jnp.int32), own), interpret
        )
        errors, lost = errors[first][:, jnp.argsort(order)], lost[first]
        seen = jax.vmap(lambda e, axes: _seen(shape, z, e, axes))(
            errors[:, : len(numbers["at"])], table["axes"].astype(shape.precision)
        )
        never = jnp.asarray(2**31 - 1, jnp.int32)
        soonest = jnp.min(jnp.where(lost < 0, never, lost), axis=1).astype(int)
        seen["diverged_at"] = jnp.where(soonest == never, -1, soonest)
        if train_loss:
            factor = numbers["factor"].astype(shape.precision)
            at_ends = errors[:, len(numbers["at"]) :]
            moved = jnp.einsum("bij,bejd->beid", table["whole"], at_ends)
            seen["loss_train"] = factor * jnp.sum(moved * at_ends, axis=(2, 3))
        return seen

    return block


def _trainings(
    shape: Protocol,
    table: dict[str, jax.Array],
    numbers: dict[str, jax.Array],
    z: jax.Array,
    kept: jax.Array,
    own: jax.Array,
) -> kernel.Trainings:
    dtype = jnp.dtype(shape.precision)

    def start(raw: jax.Array, axes: jax.Array) -> tuple[linear.State, jax.Array]:
        layers = layers_at_start(shape, raw, numbers["scale"])
        layers, q = jax.tree.map(lambda a: a.astype(dtype), (layers, axes))
        return linear.reduce_layers(layers, q), linear.target(q, shape.bias)

    state, goal = jax.vmap(start)(table["raw"], table["axes"])
    points = batches.lift(z, shape.bias)
    # Copies of a point to the next power of two, which is what a kernel's arrays must have.
    points = jnp.pad(points, ((0, (1 << (len(z) - 1).bit_length()) - len(z)), (0, 0)), mode="edge")
    factor, lr = numbers["factor"].astype(dtype), numbers["lr"].astype(dtype)
    k = goal.shape[1]
    return kernel.Trainings(
        first=state.first,
        weights=tuple(layer.weight for layer in state.later),
        biases=tuple(layer.bias for layer in state.later if layer.bias is not None),
        goal=goal,
        moments=table["epoch"].reshape(len(goal), -1, k, k),
        rate=jnp.broadcast_to(2 * factor * lr, len(goal)),
        points=points.T,
        kept=kept,
        own=own,
    )


def _seen(shape: Protocol, z: jax.Array, rows: jax.Array, axes: jax.Array) -> dict[str, Any]:
    """Outputs and losses of one run from its errors R [t, k, d]; z [1 + p, s], x̂ first."""
    error = jnp.einsum("pk,tkd->tpd", batches.lift(z, shape.bias), rows)
    output, loss = z + error @ axes, jnp.sum(error * error, axis=-1) / 2
    return {"output": output[:, 1:], "loss": loss[:, 1:], "loss_test": loss[:, 0]}
