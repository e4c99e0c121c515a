"""The published protocol: every step tests on 5,000 points, every epoch keeps the whole network on disk.

Written anew from a description of what the published program does; PyTorch as it comes.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from work import Training

from peers import _torch

TESTED = 5000


def prepare(work: Training, device: str, dtype: str) -> Callable[[], np.ndarray]:
    rng = np.random.default_rng(0)

    def test_set(run: int) -> np.ndarray:
        around = rng.normal(work.target[run], work.spread[run], (TESTED, work.target.shape[1]))
        return (around @ work.q[run].T).astype(dtype)

    points = [_torch.tensor(work.points(run, dtype), device) for run in range(work.runs)]
    orders = [_torch.tensor(work.order[run].astype(np.int64), device) for run in range(work.runs)]
    test_sets = [_torch.tensor(test_set(run), device) for run in range(work.runs)]
    x_hats = [_torch.tensor(work.x_hat(run, dtype), device) for run in range(work.runs)]
    looks = set(work.looks.tolist())

    def one(run: int, folder: Path) -> torch.Tensor:
        net, x, order, test = (
            _torch.network(work, run, device, dtype),
            points[run],
            orders[run],
            test_sets[run],
        )
        optimiser = torch.optim.SGD(net.parameters(), lr=work.lr)
        seen, tested = [], []
        for epoch in range(work.epochs):
            torch.save(net, folder / f"epoch-{epoch}.pt")
            now = order[epoch % len(order)]
            for first in range(0, len(x), work.batch):
                with torch.no_grad():
                    tested.append(((net(test) - test) ** 2).sum(1).mean().item())
                    if len(tested) - 1 in looks:
                        seen.append(net(x_hats[run]))
                batch = x[now[first : first + work.batch]]
                loss = work.factor * ((net(batch) - batch) ** 2).sum(1).mean()
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
        if work.steps in looks:
            seen.append(net(x_hats[run]).detach())
        return torch.stack(seen)

    def call() -> np.ndarray:
        torch.set_num_threads(len(os.sched_getaffinity(0)))
        with tempfile.TemporaryDirectory() as folder:
            return work.seen(np.stack([one(run, Path(folder)).cpu().numpy() for run in range(work.runs)]))

    return call
