"""Trajectories of a protocol over many seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from saltus._jax import jax, jnp, workers
from saltus.core.errors import BadInput
from saltus.descent._ensemble import host_memory, run_many
from saltus.papers.sim.training.learners import layers_at_start, learner
from saltus.papers.sim.training.protocol import Protocol
from saltus.papers.sim.training.tables import seed_bytes, tables

__all__ = ["PATHS", "train"]

PATHS = ("auto", "reduced", "plain")
TABLES = 2**28  # bytes of tables at a time


def train(
    protocol: Protocol,
    seeds: int | Sequence[int] | np.ndarray = 32,
    *,
    at: Sequence[int] | np.ndarray | None = None,
    watch: Sequence[Any] | np.ndarray | None = None,
    path: str = "auto",
    train_loss: bool = True,
    base: int = 0,
    block: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, np.ndarray]:
    """Train every seed and return what was seen, in concept coordinates.

    - `seeds`: how many, or their numbers; a seed's run is the same alone or among ten thousand.
    - `at`: steps to keep, between 0 (before training) and `protocol.steps`; every one when not given.
    - `watch`: points [p, s] to follow; x̂ alone when not given.
    - `path`: "reduced" (exact, the default) or "plain", which trains the whole network in R^d.
    - `train_loss`: whether to measure the training loss; over many points it can cost as much as training.
    - `base`: key that all seeds share; `block`: seeds computed together.

    Returns `seed` [n], `step` [t], `point` [p, s], `output` [n, t, p, s], `loss` [n, t, p] and
    `loss_test` [n, t] (half the squared distance, at the watched points and at x̂), `train_step` [e + 1]
    and `loss_train` [n, e + 1] (the loss that is trained, over all points, at epoch ends), `nearest` [n]
    and `discarded` [n] (see `world.Draw`), and `diverged_at` [n], the first step at which an output or a
    loss was not finite, -1 if none.
    """
    if path not in PATHS:
        raise BadInput(f"no path {path!r}; there is {', '.join(PATHS)}")
    if not 0 <= base < 2**32:
        raise BadInput(f"base must lie in 0..2**32-1; got {base}")
    steps = _steps(at, protocol.steps)
    points = _points(watch, protocol)
    block = block or _block(protocol)
    _check_memory(protocol, block)
    shape, chosen = _shape(protocol), "reduced" if path == "auto" else path
    by_moments = chosen == "reduced" and not shape.nonlinear
    program = _program(shape, chosen, train_loss)
    numbers = {
        "base": np.uint32(base),
        "mu": protocol.world.test_point(),
        "sigma": protocol.world.sigmas,
        "factor": protocol.loss_factor,
        "lr": float(protocol.lr),
        "scale": float(protocol.scale),
        "watch": points,
        "at": steps,
    }
    own = _own(seeds)
    _check_results(len(own), len(steps), len(points), protocol.world.s)
    places = workers()
    seen: list[dict[str, np.ndarray]] = []
    for group in _groups(own, block, seed_bytes(shape, by_moments)):
        table = tables(shape, by_moments, group, numbers, devices=places)
        after = partial(_report, progress, len(own), sum(len(s["nearest"]) for s in seen))
        found = run_many(
            program, len(group), block=block, devices=places, args=(numbers, table), progress=after
        )
        seen.append({**found, "nearest": table["nearest"], "discarded": table["discarded"]})
    each_epoch = np.arange(protocol.epochs + 1) * protocol.steps_per_epoch
    return {
        "seed": own,
        "step": steps,
        "point": points,
        "train_step": each_epoch,
        **{name: np.concatenate([s[name] for s in seen]) for name in seen[0]},
    }


@cache
def _program(shape: Protocol, path: str, train_loss: bool) -> Callable[..., dict[str, jax.Array]]:
    """A block of runs; the same object, hence compiled once, for all protocols of one shape."""

    def block(
        index: jax.Array, numbers: dict[str, jax.Array], table: dict[str, jax.Array]
    ) -> dict[str, jax.Array]:
        rows = jax.tree.map(lambda a: a[index], table)
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


def _groups(seeds: np.ndarray, block: int, each: int) -> list[np.ndarray]:
    """Seeds in groups whose tables fit in a modest part of memory."""
    size = max(1, TABLES // max(1, each) // block) * block
    return [seeds[start : start + size] for start in range(0, len(seeds), size)]


def _report(progress: Callable[[int, int], None] | None, total: int, before: int, done: int, of: int) -> None:
    if progress is not None:
        progress(before + done, total)


def _shape(protocol: Protocol) -> Protocol:
    """The protocol with everything that may change without compiling again set to a fixed value."""
    world = replace(protocol.world, mu=(1.0,) * protocol.world.s, sigma=1.0)
    width = protocol.width if protocol.depth > 1 else 1
    return replace(
        protocol,
        world=world,
        width=width,
        lr=1.0,
        scale=1.0,
        average_coordinates=False,
        activation="relu" if protocol.nonlinear else "linear",
        dtype=protocol.precision,
    )


def _block(protocol: Protocol) -> int:
    """Seeds computed together: few enough for the cache of a core, many on an accelerator."""
    if jax.default_backend() != "cpu":
        return 512
    parameters = protocol.depth * max(protocol.width, protocol.world.dim) ** 2
    return 16 if parameters < 1024 else 8


def _check_memory(protocol: Protocol, block: int) -> None:
    # The points, their normal numbers, an order and the cut batches: about six times the points.
    need, free = 6 * 8 * block * protocol.world.size * (protocol.world.s + 1), host_memory()
    if jax.default_backend() == "cpu" and need > free:
        raise BadInput(
            f"{protocol.world.size} training points for {block} seeds at once need {need / 2**30:.3g} GiB "
            f"of memory and {free / 2**30:.3g} GiB are free; ask for fewer points"
        )


def _own(seeds: int | Sequence[int] | np.ndarray) -> np.ndarray:
    if isinstance(seeds, int | np.integer):
        if not 1 <= seeds <= 2**32:
            raise BadInput(f"seeds must be between 1 and 2**32; got {seeds}")
        _check_results(int(seeds), 1, 1, 1)
        return np.arange(seeds)
    own = np.asarray(seeds)
    if own.size == 0:
        raise BadInput("there are no seeds; give at least one")
    return own


def _check_results(seeds: int, steps: int, points: int, s: int) -> None:
    need, free = 8 * seeds * steps * (points * (s + 1) + 1), host_memory()
    if need > free:
        raise BadInput(
            f"{seeds} seeds seen at {steps} steps need {need / 2**30:.3g} GiB of memory and "
            f"{free / 2**30:.3g} GiB are free; ask for fewer seeds, or for fewer steps with at="
        )


def _steps(at: Sequence[int] | np.ndarray | None, last: int) -> np.ndarray:
    if at is None:
        return np.arange(last + 1)
    steps = np.asarray(at)
    if steps.ndim != 1 or steps.size == 0 or not np.issubdtype(steps.dtype, np.integer):
        raise BadInput("at must be a list of step numbers; leave it out for every step")
    if steps.min() < 0 or steps.max() > last:
        raise BadInput(f"steps must lie in 0..{last}; got {steps.min()}..{steps.max()}")
    return steps.astype(np.int64)


def _points(watch: Sequence[Any] | np.ndarray | None, protocol: Protocol) -> np.ndarray:
    if watch is None:
        return protocol.world.test_point()[None]
    points = np.asarray(watch, float)
    if points.ndim != 2 or points.shape[1] != protocol.world.s or not np.isfinite(points).all():
        raise BadInput(
            f"watch needs finite points of {protocol.world.s} coordinates each; got shape {points.shape}"
        )
    return points
