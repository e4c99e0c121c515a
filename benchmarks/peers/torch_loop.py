"""A tight eager PyTorch loop: one network after another, data on the device, nothing but training."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from work import Training

from peers import _torch


def prepare(work: Training, device: str, dtype: str) -> Callable[[], np.ndarray]:
    points = [_torch.tensor(work.points(run, dtype), device) for run in range(work.runs)]
    orders = [_torch.tensor(work.order[run].astype(np.int64), device) for run in range(work.runs)]
    tests = [_torch.tensor(work.x_hat(run, dtype), device) for run in range(work.runs)]
    looks = set(work.looks.tolist())

    def one(run: int, most: int) -> torch.Tensor:
        net, x, order = _torch.network(work, run, device, dtype), points[run], orders[run]
        parameters, seen, step = list(net.parameters()), [], 0
        shuffled = x[order[0]]
        for epoch in range(work.epochs):
            if len(order) > 1:
                shuffled = x[order[epoch]]
            for batch in shuffled.split(work.batch):
                if step in looks:
                    with torch.no_grad():
                        seen.append(net(tests[run]))
                if step == most:
                    return torch.stack(seen)
                error = net(batch) - batch
                loss = work.factor * (error * error).sum() / len(batch)
                slopes = torch.autograd.grad(loss, parameters)
                with torch.no_grad():
                    torch._foreach_add_(parameters, slopes, alpha=-work.lr)
                step += 1
        if step in looks:
            with torch.no_grad():
                seen.append(net(tests[run]))
        return torch.stack(seen)

    threads = _torch.fewest_seconds_threads(lambda: one(0, 60), device)

    def call() -> np.ndarray:
        torch.set_num_threads(threads)
        return work.seen(np.stack([one(run, work.steps).cpu().numpy() for run in range(work.runs)]))

    return call
