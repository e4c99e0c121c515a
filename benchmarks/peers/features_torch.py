"""The same in PyTorch, eager or compiled: all runs as one batch, in R^d."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from peers._torch import TYPES, fewest_seconds_threads, place, wait
from peers.features_numpy import ALPHA, BETA


def step(W: Any, X: Any, omega: Any, eta: float) -> Any:
    a, b, c, w = ALPHA, BETA, W.shape[-2] ** -0.5, omega[..., None]
    G, A = W @ W.mT, X @ W.mT
    s, total = torch.diagonal(G, dim1=-2, dim2=-1)[..., None, :], omega.sum(-1)[..., None, None]
    U, AA = a**2 * A**2 + b**2 * s, (w * A).mT @ A
    K = (w * U).mT @ U + 4 * a**2 * b**2 * AA * G + 2 * total * b**4 * G**2
    D = c**2 * (K + G * (4 * a**2 * b**2 * AA + 4 * total * b**4 * G))
    V = 2 * c**2 * w * (U @ G)
    dA = 2 * a**2 * V * A + 8 * c**2 * a**2 * b**2 * w * (A @ G**2) - 4 * a * b * c * w * s
    ds = b**2 * V.sum(-2) - 4 * a * b * c * (w * A).sum(-2)
    return W - eta * (2 * (D @ W + ds[..., None] * W) + dA.mT @ X)


def prepare(
    given: dict[str, Any], eta: float, steps: int, device: str, dtype: str, compiled: bool = False
) -> Callable[[], Any]:
    X, omega, start = (
        torch.as_tensor(given[k], dtype=TYPES[dtype], device=place(device)) for k in ("X", "omega", "W")
    )
    move = torch.compile(step) if compiled else step

    def train(count: int) -> Any:
        W = start
        with torch.no_grad():
            for _ in range(count):
                W = move(W, X, omega, eta)
            found = X @ W.mT
        wait(device)
        return found

    fewest_seconds_threads(lambda: train(20), device)
    return lambda: train(steps).cpu().numpy()
