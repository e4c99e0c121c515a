"""What every contestant is given: the same data, order, start and number of steps, as plain arrays."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Training:
    """Networks to train by SGD on the identity, one per run.

    - `y` [R, N, s], `q` [R, d, s]: a run's points are x = Q y.
    - `order` [R, E, N]: the order of the points in every epoch; E is 1 when it never changes.
    - `weights`, `biases`: a start for every layer, [R, out, in] and [R, out]; no biases when empty.
    - `target` [R, s]: x̂, where the output is watched; `spread` [R, s]: deviations of the points around it.
    - `looks` [t]: the numbers of steps after which the output at x̂ is kept.
    - `factor`: the loss is the squared error of a point times this, averaged over the batch.
    """

    y: np.ndarray
    q: np.ndarray
    order: np.ndarray
    weights: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]
    target: np.ndarray
    spread: np.ndarray
    looks: np.ndarray
    lr: float
    factor: float
    batch: int
    epochs: int

    @property
    def runs(self) -> int:
        return len(self.y)

    @property
    def steps_per_epoch(self) -> int:
        return -(-self.y.shape[1] // self.batch)

    @property
    def steps(self) -> int:
        return self.epochs * self.steps_per_epoch

    def part(self, runs: list[int], epochs: int) -> Training:
        """Some of the runs, for the first epochs."""
        if epochs > self.epochs:
            raise ValueError(f"{epochs} epochs asked for, of {self.epochs}")
        index = np.asarray(runs)
        own = {name: getattr(self, name)[index] for name in ("y", "q", "order", "target", "spread")}
        return replace(
            self,
            **own,
            weights=tuple(w[index] for w in self.weights),
            biases=tuple(b[index] for b in self.biases),
            looks=self.looks[self.looks <= epochs * self.steps_per_epoch],
            epochs=epochs,
        )

    def order_of(self, run: int, epoch: int) -> np.ndarray:
        """The order [N] of one epoch."""
        return self.order[run, epoch % self.order.shape[1]]

    def points(self, run: int, dtype: str) -> np.ndarray:
        """x [N, d] of one run."""
        return (self.y[run] @ self.q[run].T).astype(dtype)

    def seen(self, outputs: np.ndarray) -> np.ndarray:
        """Outputs at x̂ [R, t, d] along the concept axes [R, t, s]."""
        return np.einsum("rtd,rds->rts", np.asarray(outputs, np.float64), self.q)

    def x_hat(self, run: int, dtype: str) -> np.ndarray:
        """x̂ [d] of one run."""
        return (self.q[run] @ self.target[run]).astype(dtype)


@dataclass(frozen=True)
class Flows:
    """Gradient descent on U of f(x) = U U^T x from every start U(0) [R, d, d].

    - `a` [d]: diagonal of E[x x^T]; `eta`: the step, in the paper's clock; `steps`: how many.
    """

    start: np.ndarray
    a: np.ndarray
    eta: float
    steps: int

    @property
    def runs(self) -> int:
        return len(self.start)

    def part(self, runs: int, steps: int) -> Flows:
        """The first runs, for the first steps."""
        return replace(self, start=self.start[:runs], steps=steps)


def save(path: Path, work: Training | Flows) -> None:
    """Keep it in one file of arrays."""
    arrays: dict[str, Any] = {}
    numbers: dict[str, Any] = {"kind": type(work).__name__}
    for field in fields(work):
        value = getattr(work, field.name)
        if isinstance(value, tuple):
            numbers[field.name] = len(value)
            arrays |= {f"{field.name}{i}": array for i, array in enumerate(value)}
        elif isinstance(value, np.ndarray):
            arrays[field.name] = value
        else:
            numbers[field.name] = value
    np.savez(path, numbers=np.array(json.dumps(numbers)), **arrays)


def load(path: str | Path) -> Training | Flows:
    """What `save` kept."""
    with np.load(path) as held:
        numbers = json.loads(str(held["numbers"]))
        kind = {"Training": Training, "Flows": Flows}[numbers.pop("kind")]
        given: dict[str, Any] = {}
        for field in fields(kind):
            name = field.name
            if name in held:
                given[name] = held[name]
            elif name in ("weights", "biases"):
                given[name] = tuple(held[f"{name}{i}"] for i in range(numbers[name]))
            else:
                given[name] = numbers[name]
    return kind(**given)
