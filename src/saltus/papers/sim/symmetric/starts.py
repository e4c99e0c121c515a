"""Where the runs of an ensemble start: U(0) drawn from each run's own key, or given."""

from __future__ import annotations

from typing import Any

import numpy as np

from saltus._jax import jax, jnp

__all__ = ["DRAWS", "drawn", "drawn_in_lots"]

DRAWS = ("uniform", "gaussian")


LOT = 1024  # runs drawn at a time by the one program there is for each kind and size


def drawn(kind: str, base: Any, index: jax.Array, d: int, width: int, scale: Any) -> jax.Array:
    """U(0) [d, d', B] in float64 whatever the precision of the run, so that precisions share their starts.

    `uniform`: entries from U(0, scale); `gaussian`: from N(0, scale^2). scale: a number or [B].
    """

    found = _numbers(kind, base, index, d * width)
    return jnp.moveaxis(found.reshape(len(index), d, width), 0, -1) * scale


def _numbers(kind: str, base: Any, index: jax.Array, size: int) -> jax.Array:
    """The first numbers [B, size] of each run's own key."""

    def one(i: Any) -> jax.Array:
        key = jax.random.fold_in(jax.random.key(base), i.astype(jnp.uint32))
        sample = jax.random.uniform if kind == "uniform" else jax.random.normal
        return sample(key, (size,), jnp.float64)

    return jax.vmap(one)(index)


# Compiled twice as fast without XLA's own fusions on a CPU, where drawing takes no time beside compiling.
_lot = jax.jit(_numbers, static_argnums=(0, 3), compiler_options={"xla_cpu_use_fusion_emitters": False})


def drawn_in_lots(kind: str, base: int, index: np.ndarray, d: int, width: int) -> np.ndarray:
    """U(0) [n, d, d'] at scale 1, as `drawn` has them, by one program however many or large they are.

    A key's first numbers do not depend on how many are asked of it, so the sizes share a few programs.
    """
    size, n = d * width, len(index)
    asked = 1 << max(4, (size - 1).bit_length())
    found = np.empty((n, size))
    for start in range(0, n, LOT):
        some = np.resize(index[start : start + LOT], LOT)
        here = slice(start, min(start + LOT, n))
        found[here] = np.asarray(_lot(kind, np.uint32(base), some, asked))[: here.stop - start, :size]
    return found.reshape(n, d, width)
