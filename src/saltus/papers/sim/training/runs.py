"""Trajectories of a protocol over many seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from saltus._jax import workers
from saltus.core.errors import BadInput
from saltus.descent._ensemble import run_many
from saltus.papers.sim.training.asked import check_memory, check_results, points_of, seeds_of, steps_of
from saltus.papers.sim.training.engines import engine_of, on_device
from saltus.papers.sim.training.learners import number_count
from saltus.papers.sim.training.program import loop
from saltus.papers.sim.training.protocol import Protocol
from saltus.papers.sim.training.tables import FEW_FUSIONS, seed_bytes, tables

__all__ = ["PATHS", "train"]

PATHS = ("auto", "reduced", "plain")
TABLES = 2**28  # bytes of tables at a time
CACHE = 2**17


def train(
    protocol: Protocol,
    seeds: int | Sequence[int] | np.ndarray = 32,
    *,
    at: Sequence[int] | np.ndarray | None = None,
    watch: Sequence[Any] | np.ndarray | None = None,
    path: str = "auto",
    train_loss: bool = True,
    base: int = 0,
    engine: str = "auto",
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
    - `engine`: "loop" (XLA's loop over steps) or "kernel" (`training.kernel`: one GPU kernel for all steps;
      elsewhere it is interpreted, for checking); "auto" takes the kernel on a GPU for networks that fit in
      it, unless the variable SALTUS_ENGINE names another.

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
    steps, points, own = steps_of(at, protocol.steps), points_of(watch, protocol), seeds_of(seeds)
    places = workers()
    on_host = places[0].platform == "cpu"
    shape, chosen = _shape(protocol), "reduced" if path == "auto" else path
    used = engine_of(engine, shape, chosen, len(steps), len(points), train_loss, not on_host)
    if on_host:
        check_memory(protocol, block or _block(protocol, chosen))
    check_results(len(own), len(steps), len(points), protocol.world.s)
    numbers = {
        "base": np.uint32(base),
        "mu": protocol.world.test_point(),
        "sigma": protocol.world.sigmas,
        "factor": np.float64(protocol.loss_factor),
        "lr": np.float64(protocol.lr),
        "scale": np.float64(protocol.scale),
        "watch": points,
        "at": steps,
    }
    if on_host and used == "loop":
        seen = _on_host(shape, chosen, train_loss, own, numbers, block or _block(protocol, chosen), progress)
    else:
        seen = on_device(
            shape,
            chosen,
            train_loss,
            used,
            own,
            numbers,
            block=block,
            devices=places[:1] if on_host else places,
            progress=progress,
            sure=engine == "kernel",
        )
    each_epoch = np.arange(protocol.epochs + 1) * protocol.steps_per_epoch
    return {
        "seed": own,
        "step": steps,
        "point": points,
        "train_step": each_epoch,
        **seen,
    }


def _on_host(
    shape: Protocol,
    path: str,
    train_loss: bool,
    seeds: np.ndarray,
    numbers: dict[str, Any],
    block: int,
    progress: Callable[[int, int], None] | None,
) -> dict[str, np.ndarray]:
    """What is seen of all seeds, the tables of a group of them drawn before its training."""
    by_moments, places = path == "reduced" and not shape.nonlinear, workers()
    seen: list[dict[str, np.ndarray]] = []
    # Compiling takes longer than training such a network, and larger ones would be slower.
    small = by_moments and number_count(shape) <= 8192
    for group in _groups(seeds, block, seed_bytes(shape, by_moments)):
        table = tables(shape, by_moments, group, numbers, devices=places)
        after = partial(_report, progress, len(seeds), sum(len(s["nearest"]) for s in seen))
        found = run_many(
            loop(shape, path, train_loss),
            len(group),
            block=block,
            devices=places,
            args=(numbers, table),
            progress=after,
            compiler_options=FEW_FUSIONS if small else (),
        )
        seen.append({**found, "nearest": table["nearest"], "discarded": table["discarded"]})
    return {name: np.concatenate([s[name] for s in seen]) for name in seen[0]}


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


def _block(protocol: Protocol, path: str) -> int:
    """Seeds computed together on a host: as many as are quicker so than one by one, as one costs them all."""
    widest = max(protocol.width, protocol.world.dim)
    parameters = protocol.depth * widest**2
    tiny = 16 if parameters < 1024 else 8
    if path == "plain" or protocol.nonlinear:
        # Products with whole batches of points keep a core busy alone.
        return tiny if parameters < 4096 else 1
    # The later layers of all of them stay in a core's cache; several float32 fill its wide instructions.
    double = protocol.precision == "float64"
    each = (protocol.depth - 1) * widest**2 * (8 if double else 4)
    fit = (CACHE if double else 2 * CACHE) // max(1, each)
    return tiny if fit >= tiny else 1 << (max(1, fit).bit_length() - 1)
