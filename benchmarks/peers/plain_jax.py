"""Plain JAX as anybody would write it: one jit, scans over epochs and steps, autodiff, vmap over runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from work import Training


def prepare(work: Training, device: str, dtype: str) -> Callable[[], np.ndarray]:
    whole, rest = divmod(work.y.shape[1], work.batch)
    layers = [
        (w.astype(dtype), *(b[number].astype(dtype) for b in [work.biases] if b))
        for number, w in enumerate(work.weights)
    ]
    points = np.stack([work.points(run, dtype) for run in range(work.runs)])
    tests = np.stack([work.x_hat(run, dtype) for run in range(work.runs)])
    given = jax.device_put((layers, points, work.order, tests))
    looks = jnp.asarray(work.looks)

    def forward(layers: Any, x: Any) -> Any:
        for layer in layers:
            x = x @ layer[0].T
            if len(layer) > 1:
                x = x + layer[1]
        return x

    def loss(layers: Any, batch: Any) -> Any:
        error = forward(layers, batch) - batch
        return work.factor * jnp.sum(error * error) / len(batch)

    def train(layers: Any, points: Any, order: Any, test: Any) -> Any:
        def step(layers: Any, batch: Any) -> Any:
            slopes = jax.grad(loss)(layers, batch)
            moved = jax.tree.map(lambda w, g: w - work.lr * g, layers, slopes)
            return moved, forward(layers, test)

        once = points[order[0]] if len(order) == 1 else None

        def epoch(layers: Any, number: Any) -> Any:
            shuffled = points[order[number]] if once is None else once
            cut = shuffled[: whole * work.batch].reshape(whole, work.batch, -1)
            layers, seen = jax.lax.scan(step, layers, cut)
            if rest:
                layers, last = step(layers, shuffled[whole * work.batch :])
                seen = jnp.concatenate([seen, last[None]])
            return layers, seen

        layers, seen = jax.lax.scan(epoch, layers, jnp.arange(work.epochs))
        seen = seen.reshape(-1, seen.shape[-1])  # [epochs * steps, d]
        return jnp.concatenate([seen, forward(layers, test)[None]])[looks]

    if work.runs == 1:
        alone = jax.jit(train)
        first = jax.tree.map(lambda a: a[0], given)
        return lambda: work.seen(np.asarray(alone(*first))[None])
    together = jax.jit(jax.vmap(train))
    return lambda: work.seen(np.asarray(together(*given)))
