"""Plain linear networks of any depth on the population loss: when each run has learnt every concept."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from saltus._lazy import jax, jnp, np
from saltus.papers.sim.studies import _flows

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["learning_times", "steps_of"]

STEP = 0.2  # eta in units of 1 / (depth max a), a tenth of the stability limit at a balanced solution
HOST_BLOCK = 128


def steps_of(a: Any, depth: int, time: float) -> int:
    """Steps of gradient descent that cover the time."""
    return max(1, int(np.ceil(time * depth * float(np.max(a)) / STEP)))


def _product(one: Any, other: Any) -> Any:
    """[i, j, B] times [j, k, B], written as multiply-and-sum over the runs' axis."""
    return jnp.sum(one[:, :, None] * other[None], axis=1)


def _turned(one: Any) -> Any:
    return jnp.swapaxes(one, 0, 1)


@lru_cache(maxsize=16)
def _block(depth: int, d: int, width: int, start: str) -> Callable[..., Any]:
    """The function of one block of runs: `time` [B] when the last w_kk first passes 1/2, or infinity."""
    shapes = [(width if n < depth - 1 else d, width if n else d) for n in range(depth)]

    def draw(index: Any, base: Any) -> Any:
        key = jax.random.fold_in(jax.random.key(base), index.astype(jnp.uint32))
        sample = jax.random.uniform if start == "uniform" else jax.random.normal
        return [sample(k, s, float) for k, s in zip(jax.random.split(key, depth), shapes, strict=True)]

    def block(index: Any, scale: Any, a: Any, eta: Any, steps: Any, base: Any) -> dict[str, Any]:
        drawn = jax.vmap(draw, in_axes=(0, None))(index, base)
        layers = tuple(jnp.moveaxis(w, 0, -1) * scale[index] for w in drawn)

        def step(n: Any, carry: Any) -> Any:
            layers, seen = carry
            below = [None, layers[0]]  # products of the first layers; nothing below the first
            for w in layers[1:]:
                below.append(_product(w, below[-1]))
            own = jnp.stack([below[-1][k, k] for k in range(d)])
            seen = jnp.where((own >= 0.5) & (seen == jnp.inf), n * eta, seen)
            # dL/dW_n = (layers above)^T (W - I) A (layers below)^T
            back = (below[-1] - jnp.eye(d)[..., None]) * a[None, :, None]
            moved = list(layers)
            for place in reversed(range(depth)):
                change = back if place == 0 else _product(back, _turned(below[place]))
                moved[place] = layers[place] - eta * change
                back = _product(_turned(layers[place]), back)
            return tuple(moved), seen

        never = jnp.full((d, index.size), jnp.inf)
        _, seen = jax.lax.fori_loop(0, steps + 1, step, (layers, never))
        return {"time": jnp.max(seen, axis=0)}

    return block


def learning_times(
    a: Any, depth: int, width: int, start: str, scale: Any, time: float, base: int, **options: Any
) -> Any:
    """When each run [n] has every w_kk at 1/2, in the time of dW/dt = -dL/dW; infinite if not by `time`.

    a [d]; scale [n]: of every layer's entries.
    """
    from saltus.descent._ensemble import run_many

    a, n = np.asarray(a, float), len(scale)
    steps = steps_of(a, depth, time)
    numbers = (np.asarray(scale, float), a, np.float64(time / steps), np.int64(steps), np.uint32(base))
    block = _flows.block_of(n) or HOST_BLOCK
    return run_many(_block(depth, len(a), width, start), n, block=block, axis=-1, args=numbers, **options)[
        "time"
    ]
