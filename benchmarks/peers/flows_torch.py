"""Eager PyTorch descent on U: all runs as one batch, or a single run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from work import Flows

from peers import _torch


def prepare(work: Flows, device: str, dtype: str) -> Callable[[], np.ndarray]:
    start = _torch.tensor(work.start.astype(dtype), device)
    if work.runs == 1:
        start = start[0]
    rate = _torch.tensor((work.eta * (work.a[:, None] + work.a) / 2).astype(dtype), device)
    eye = torch.eye(len(work.a), dtype=start.dtype, device=start.device)

    @torch.no_grad()
    def descend(steps: int) -> np.ndarray:
        u = start
        for _ in range(steps):
            u = u - (rate * (u @ u.mT - eye)) @ u
        return (u @ u.mT).reshape(-1, *eye.shape).cpu().numpy()

    threads = _torch.fewest_seconds_threads(lambda: descend(5), device)

    def call() -> np.ndarray:
        torch.set_num_threads(threads)
        return descend(work.steps)

    return call
