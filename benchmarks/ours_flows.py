"""saltus on tiny flows: the ensemble of symmetric two-layer networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import light
import numpy as np

light.open_saltus()

from work import Flows  # noqa: E402

from saltus.papers.sim import symmetric  # noqa: E402

MU = np.array([1.0, 1.5, 2.2, 3.0])
SIGMA = 0.05
ETA = 0.01


def rates(d: int) -> np.ndarray:
    """Diagonal of E[x x^T] of one cluster on each of d axes."""
    return SIGMA**2 + MU[:d] ** 2 / d


def deal(case: dict[str, Any]) -> Flows:
    return Flows(start=symmetric.starts(case["seeds"], 3), a=rates(3), eta=ETA, steps=case["steps"])


def prepare(
    case: dict[str, Any], runs: list[int], epochs: int, device: str, dtype: str, watch: bool
) -> Callable[[], np.ndarray]:
    steps = epochs or case["steps"]
    return lambda: engine(len(runs), steps, watch=watch)["w"]


def engine(runs: int, steps: int, d: int = 3, watch: bool = False) -> dict[str, np.ndarray]:
    watchers = symmetric.WATCH if watch else ()
    return symmetric.evolve(rates(d), MU[:d], runs, eta=ETA, steps=steps, watch=watchers)
