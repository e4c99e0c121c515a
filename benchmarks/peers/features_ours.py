"""saltus: the same training in coordinates of the span; finding them is in the time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

DIM = 52


def _products(W: Any, problem: Any) -> dict[str, Any]:
    return {"A": problem["X"] @ W.T}


def prepare(
    given: dict[str, Any], eta: float, steps: int, device: str, dtype: str, **options: Any
) -> Callable[[], Any]:
    from saltus.papers.features import training, world

    def call() -> Any:
        short = [world.into_span(x, w)[:2] for x, w in zip(given["X"], given["W"], strict=True)]
        X, W = (np.stack(part).astype(dtype) for part in zip(*short, strict=True))
        block = 256 if device == "gpu" else None
        found = training.train_denoiser(
            X, given["omega"].astype(dtype), W, eta=eta, at=[steps], look=_products, block=block
        )
        return found["A"][:, 0]

    return call
