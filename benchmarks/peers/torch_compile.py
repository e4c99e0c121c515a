"""The same loop with the whole step in `torch.compile`, replayed as a CUDA graph on a GPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear
from work import Training

from peers import _torch


def prepare(work: Training, device: str, dtype: str) -> Callable[[], np.ndarray]:
    # Plain numbers: a compiled function that reaches for arrays of numpy guards all of them.
    kind, depth, biased, lr, factor = (
        _torch.TYPES[dtype], len(work.weights), bool(work.biases), work.lr, work.factor
    )  # fmt: skip
    points = [_torch.tensor(work.points(run, dtype), device) for run in range(work.runs)]
    orders = [_torch.tensor(work.order[run].astype(np.int64), device) for run in range(work.runs)]
    tests = [_torch.tensor(work.x_hat(run, dtype), device) for run in range(work.runs)]
    starts = [
        [_torch.tensor(layer[run], device).to(kind) for layer in (*work.weights, *work.biases)]
        for run in range(work.runs)
    ]
    looks = set(work.looks.tolist())

    def forward(parameters: list[Tensor], x: Tensor) -> Tensor:
        for number in range(depth):
            bias = parameters[depth + number] if biased else None
            x = linear(x, parameters[number], bias)
        return x

    def loss(parameters: list[Tensor], batch: Tensor) -> Tensor:
        error = forward(parameters, batch) - batch
        return factor * (error * error).sum() / len(batch)

    def step(parameters: list[Tensor], batch: Tensor) -> None:
        slopes = torch.func.grad(loss)(parameters, batch)
        for parameter, slope in zip(parameters, slopes, strict=True):
            parameter.sub_(lr * slope)

    def pilot() -> None:
        parameters = [p.clone() for p in starts[0]]
        for _ in range(20):
            step(parameters, points[0][: work.batch])

    with torch.no_grad():
        threads = _torch.fewest_seconds_threads(pilot, device)
    compiled = torch.compile(step, dynamic=False, fullgraph=True)
    if device == "gpu":
        compiled = _graphs(compiled, starts[0], work.batch)

    def one(run: int) -> Tensor:
        x, order = points[run], orders[run]
        parameters, seen, number = [p.clone() for p in starts[run]], [], 0
        if device == "gpu":
            parameters = compiled.load(parameters)
        shuffled = x[order[0]]
        for epoch in range(work.epochs):
            if len(order) > 1:
                shuffled = x[order[epoch]]
            for batch in shuffled.split(work.batch):
                if number in looks:
                    seen.append(forward(parameters, tests[run]))
                compiled(parameters, batch)
                number += 1
        if number in looks:
            seen.append(forward(parameters, tests[run]))
        return torch.stack(seen)

    @torch.no_grad()
    def call() -> np.ndarray:
        torch.set_num_threads(threads)
        return work.seen(np.stack([one(run).cpu().numpy() for run in range(work.runs)]))

    return call


class _graphs:
    """Replays a compiled step from fixed memory: these networks wait for launches, not for arithmetic."""

    def __init__(self, step: Callable[[list[Tensor], Tensor], None], like: list[Tensor], batch: int) -> None:
        self.step, self.parameters = step, [torch.empty_like(p) for p in like]
        self.batch = torch.zeros(batch, like[0].shape[1], dtype=like[0].dtype, device=like[0].device)
        self.graph: torch.cuda.CUDAGraph | None = None

    def load(self, parameters: list[Tensor]) -> list[Tensor]:
        if self.graph is None:
            self._capture()
        for mine, given in zip(self.parameters, parameters, strict=True):
            mine.copy_(given)
        return self.parameters

    def _capture(self) -> None:
        for parameter in self.parameters:
            parameter.zero_()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.step(self.parameters, self.batch)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.step(self.parameters, self.batch)

    def __call__(self, parameters: list[Tensor], batch: Tensor) -> None:
        if len(batch) != len(self.batch) or self.graph is None:
            self.step(self.parameters, batch)
            return
        self.batch.copy_(batch)
        self.graph.replay()
