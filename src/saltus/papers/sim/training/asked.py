"""What is asked of a training, checked: seeds, steps, points, and the memory that they take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from saltus.core.errors import BadInput
from saltus.descent._ensemble import host_memory
from saltus.papers.sim.training.protocol import Protocol

__all__ = ["check_memory", "check_results", "points_of", "seeds_of", "steps_of"]


def check_memory(protocol: Protocol, block: int) -> None:
    # The points, their normal numbers, an order and the cut batches: about six times the points.
    need, free = 6 * 8 * block * protocol.world.size * (protocol.world.s + 1), host_memory()
    if need > free:
        raise BadInput(
            f"{protocol.world.size} training points for {block} seeds at once need {need / 2**30:.3g} GiB "
            f"of memory and {free / 2**30:.3g} GiB are free; ask for fewer points"
        )


def seeds_of(seeds: int | Sequence[int] | np.ndarray) -> np.ndarray:
    if isinstance(seeds, int | np.integer):
        if not 1 <= seeds <= 2**32:
            raise BadInput(f"seeds must be between 1 and 2**32; got {seeds}")
        check_results(int(seeds), 1, 1, 1)
        return np.arange(seeds)
    own = np.asarray(seeds)
    if own.size == 0:
        raise BadInput("there are no seeds; give at least one")
    return own


def check_results(seeds: int, steps: int, points: int, s: int) -> None:
    need, free = 8 * seeds * steps * (points * (s + 1) + 1), host_memory()
    if need > free:
        raise BadInput(
            f"{seeds} seeds seen at {steps} steps need {need / 2**30:.3g} GiB of memory and "
            f"{free / 2**30:.3g} GiB are free; ask for fewer seeds, or for fewer steps with at="
        )


def steps_of(at: Sequence[int] | np.ndarray | None, last: int) -> np.ndarray:
    if at is None:
        return np.arange(last + 1)
    steps = np.asarray(at)
    if steps.ndim != 1 or steps.size == 0 or not np.issubdtype(steps.dtype, np.integer):
        raise BadInput("at must be a list of step numbers; leave it out for every step")
    if steps.min() < 0 or steps.max() > last:
        raise BadInput(f"steps must lie in 0..{last}; got {steps.min()}..{steps.max()}")
    return steps.astype(np.int64)


def points_of(watch: Sequence[Any] | np.ndarray | None, protocol: Protocol) -> np.ndarray:
    if watch is None:
        return protocol.world.test_point()[None]
    points = np.asarray(watch, float)
    if points.ndim != 2 or points.shape[1] != protocol.world.s or not np.isfinite(points).all():
        raise BadInput(
            f"watch needs finite points of {protocol.world.s} coordinates each; got shape {points.shape}"
        )
    return points
