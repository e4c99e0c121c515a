"""Plain JAX descent on U: the step for one matrix, vmap over runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from work import Flows


def prepare(work: Flows, device: str, dtype: str) -> Callable[[], np.ndarray]:
    rate = jnp.asarray(work.eta * (work.a[:, None] + work.a) / 2, dtype)
    eye = jnp.eye(len(work.a), dtype=dtype)

    def one(u: Any) -> Any:
        u = jax.lax.fori_loop(0, work.steps, lambda _, u: u - (rate * (u @ u.T - eye)) @ u, u)
        return u @ u.T

    many, start = jax.jit(jax.vmap(one)), jax.device_put(work.start.astype(dtype))
    return lambda: np.asarray(many(start))
