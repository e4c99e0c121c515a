"""Learning rates that change: functions of the number of steps made, for any descent's `lr`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput

__all__ = ["WarmCosine", "warm_constant", "warm_cosine"]


@dataclass(frozen=True)
class WarmCosine:
    """Up from 0 to `base` over `warm` steps, then along a cosine to `end` at step `total`.

    Step n (the first is 0) has rate base (n + 1) / warm during the warm-up, so none is wasted at 0.
    """

    base: float
    warm: int
    total: int
    end: float = 0.0
    decay: bool = True

    def __call__(self, step: Any) -> jax.Array:
        step = jnp.asarray(step, jnp.float32)
        rising = self.base * (step + 1) / max(self.warm, 1)
        if not self.decay:
            return jnp.where(step < self.warm, rising, self.base).astype(jnp.float32)
        done = jnp.clip((step - self.warm) / max(self.total - self.warm, 1), 0, 1)
        falling = self.end + (self.base - self.end) * 0.5 * (1 + jnp.cos(math.pi * done))
        return jnp.where(step < self.warm, rising, falling).astype(jnp.float32)


def warm_cosine(base: float, *, warm: int, total: int, end: float = 0.0) -> WarmCosine:
    """Linear warm-up over `warm` steps, then cosine decay until `total` (Loshchilov & Hutter, 2017)."""
    return _checked(WarmCosine(base, warm, total, end))


def warm_constant(base: float, *, warm: int) -> WarmCosine:
    """Linear warm-up over `warm` steps, then the same rate for good."""
    return _checked(WarmCosine(base, warm, max(warm, 1), 0.0, False))


def _checked(rate: WarmCosine) -> WarmCosine:
    if not 0 < rate.base < math.inf or not 0 <= rate.end <= rate.base:
        raise BadInput(f"a learning rate needs 0 <= end <= base, base > 0; got {rate.base!r}, {rate.end!r}")
    if not 0 <= rate.warm <= rate.total:
        raise BadInput(f"a warm-up of {rate.warm} steps does not fit into {rate.total}")
    return rate
