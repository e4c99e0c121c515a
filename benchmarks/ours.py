"""saltus in the same contest: its own call, which draws the data itself from the runs' keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import light
import numpy as np

light.open_saltus()

from work import Training  # noqa: E402

from saltus._jax import jax  # noqa: E402
from saltus.papers.sim.training import Protocol, protocol, train  # noqa: E402
from saltus.papers.sim.training.learners import layers_at_start  # noqa: E402
from saltus.papers.sim.training.tables import tables  # noqa: E402


def protocols(case: dict[str, Any], dtype: str = "auto", epochs: int = 0) -> list[Protocol]:
    """What is trained, one for each setting of the case."""
    sizes = {name: case[name] for name in ("dim", "points", "depth", "width")}
    return [
        protocol(case["reading"], mu, sigma, epochs=epochs or case["epochs"], dtype=dtype, **sizes)
        for mu, sigma in case["settings"]
    ]


def looks_at(steps: int) -> np.ndarray:
    """Numbers of steps, evenly in the logarithm."""
    return np.unique(np.concatenate([[0], np.round(np.geomspace(1, steps, 60)).astype(int)]))


def deal(case: dict[str, Any]) -> Training:
    """The same runs as arrays, for contestants that do not know saltus."""
    parts = [_dealt(how, case["seeds"]) for how in protocols(case)]
    how = protocols(case)[0]

    def joined(name: str) -> np.ndarray:
        return np.concatenate([part[name] for part in parts])

    return Training(
        **{name: joined(name) for name in ("y", "q", "order", "target", "spread")},
        weights=tuple(joined(f"weight{i}") for i in range(how.depth)),
        biases=tuple(joined(f"bias{i}") for i in range(how.depth)) if how.bias else (),
        looks=looks_at(how.steps),
        lr=float(how.lr),
        factor=how.loss_factor,
        batch=how.batch,
        epochs=how.epochs,
    )


def _dealt(how: Protocol, seeds: int) -> dict[str, np.ndarray]:
    mu, sigma = how.world.test_point(), how.world.sigmas
    numbers = {"base": np.uint32(0), "mu": mu, "sigma": sigma}
    places = jax.local_devices()[:1]
    table = tables(how, False, np.arange(seeds), numbers, devices=places)
    raw = jax.numpy.asarray(table["raw"])
    layers = jax.device_get(jax.vmap(lambda r: layers_at_start(how, r, jax.numpy.asarray(how.scale)))(raw))
    drawn = {"y": table["y"], "q": table["axes"], "order": table["epoch"]}
    drawn |= {f"weight{i}": layer.weight for i, layer in enumerate(layers)}
    drawn |= {f"bias{i}": layer.bias for i, layer in enumerate(layers) if layer.bias is not None}
    own = {"target": mu, "spread": sigma}
    return drawn | {name: np.broadcast_to(value, (seeds, len(value))) for name, value in own.items()}


def prepare(
    case: dict[str, Any], runs: list[int], epochs: int, device: str, dtype: str, path: str
) -> Callable[[], np.ndarray]:
    whole = protocols(case)[0]
    hows = protocols(case, dtype, epochs)
    looks = looks_at(whole.steps)
    looks = looks[looks <= hows[0].steps]
    # Run number = setting * seeds + seed.
    wanted = [
        (how, [r % case["seeds"] for r in runs if r // case["seeds"] == s]) for s, how in enumerate(hows)
    ]

    def call() -> np.ndarray:
        found = [
            train(how, seeds, at=looks, path=path, train_loss=False)["output"][:, :, 0]
            for how, seeds in wanted
            if seeds
        ]
        return np.concatenate(found)

    return call


def scaled(base: dict[str, Any], path: str, **changes: Any) -> Callable[[], Any]:
    """One piece of the scaling table: the training of `base` with something changed."""
    runs = changes.pop("runs", base["runs"])
    settings = {k: v for k, v in {**base, **changes}.items() if k != "runs"}
    how = replace(protocol("as-drawn", (1, 2), 0.05, **settings), dtype="float64")
    return lambda: train(how, runs, at=[how.steps], path=path, train_loss=False)["output"]
