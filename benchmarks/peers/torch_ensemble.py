"""All networks at once with `torch.func`: stacked module state, vmap over it, functional SGD."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, grad, stack_module_state, vmap
from work import Training

from peers import _torch

State = dict[str, Tensor]


def prepare(work: Training, device: str, dtype: str, compiled: bool = False) -> Callable[[], np.ndarray]:
    nets = [_torch.network(work, run, device, dtype) for run in range(work.runs)]
    start, _ = stack_module_state(nets)
    start = {name: value.detach() for name, value in start.items()}
    base = copy.deepcopy(nets[0]).to("meta")
    points = _torch.tensor(np.stack([work.points(run, dtype) for run in range(work.runs)]), device)
    order = _torch.tensor(work.order.astype(np.int64), device)
    tests = _torch.tensor(np.stack([work.x_hat(run, dtype) for run in range(work.runs)]), device)
    lr, factor = work.lr, work.factor
    looks, row = set(work.looks.tolist()), torch.arange(work.runs, device=points.device)[:, None]
    wide = points.numel() * points.element_size() > 2**30

    def forward(state: State, x: Tensor) -> Tensor:
        return functional_call(base, state, (x,))

    def loss(state: State, batch: Tensor) -> Tensor:
        error = forward(state, batch) - batch
        return factor * (error * error).sum() / len(batch)

    def step(state: State, batch: Tensor) -> State:
        slopes = vmap(grad(loss))(state, batch)
        return {name: value - lr * slopes[name] for name, value in state.items()}

    look = vmap(forward)
    advance = torch.compile(step, dynamic=False) if compiled else step

    def batches(epoch: int) -> Callable[[int], Tensor]:
        now = order[:, epoch % order.shape[1]]
        if wide:  # a shuffled copy of everything would not fit beside the others
            return lambda first: points[row, now[:, first : first + work.batch]]
        shuffled = points[row, now]
        return lambda first: shuffled[:, first : first + work.batch]

    def train(most: int) -> Tensor:
        state, seen, number = start, [], 0
        batch = batches(0)
        for epoch in range(work.epochs):
            if order.shape[1] > 1:
                batch = batches(epoch)
            for first in range(0, points.shape[1], work.batch):
                if number in looks:
                    seen.append(look(state, tests))
                if number == most:
                    return torch.stack(seen, 1)
                state = advance(state, batch(first))
                number += 1
        if number in looks:
            seen.append(look(state, tests))
        return torch.stack(seen, 1)

    with torch.no_grad():
        threads = _torch.fewest_seconds_threads(lambda: train(4), device)

    @torch.no_grad()
    def call() -> np.ndarray:
        torch.set_num_threads(threads)
        return work.seen(train(work.steps).cpu().numpy())

    return call
