"""Where the runs of an ensemble start: U(0) drawn from each run's own key, or given."""

from __future__ import annotations

from typing import Any

from saltus._jax import jax, jnp

__all__ = ["DRAWS", "drawn"]

DRAWS = ("uniform", "gaussian")


def drawn(kind: str, base: Any, index: jax.Array, d: int, width: int, scale: Any) -> jax.Array:
    """U(0) [d, d', B] in float64 whatever the precision of the run, so that precisions share their starts.

    `uniform`: entries from U(0, scale); `gaussian`: from N(0, scale^2). scale: a number or [B].
    """

    def one(i: Any) -> jax.Array:
        key = jax.random.fold_in(jax.random.key(base), i.astype(jnp.uint32))
        sample = jax.random.uniform if kind == "uniform" else jax.random.normal
        return sample(key, (d, width), jnp.float64)

    return jnp.moveaxis(jax.vmap(one)(index), 0, -1) * scale
