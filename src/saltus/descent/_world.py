"""What a run learns from: fixed points as a world, and the loss of one point."""

from __future__ import annotations

from typing import Any

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput


class Points:
    """A world that is always the same points: x [N, n_in] and y [N, n_out] (or y [N])."""

    def __init__(self, x: Any, y: Any) -> None:
        self.x, self.y = jnp.asarray(x), jnp.asarray(y)
        if self.x.ndim != 2 or self.y.ndim < 1 or len(self.x) != len(self.y) or not len(self.x):
            raise BadInput(f"Points needs x [N, n_in] and y [N, ...]; got {self.x.shape} and {self.y.shape}")

    def sample(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The points; every run sees the same ones, stored once."""
        return self.x, self.y

    def __repr__(self) -> str:
        return f"Points(x={list(self.x.shape)}, y={list(self.y.shape)})"


def half_squared_error(output: jax.Array, target: jax.Array) -> jax.Array:
    """Half the squared error of one point, summed over its outputs [n_out]."""
    return 0.5 * jnp.sum((output - target) ** 2)


def cross_entropy(output: jax.Array, target: jax.Array) -> jax.Array:
    """-log softmax(output)[target] of one point, the mean over its positions: output [..., classes]."""
    kinds = jax.lax.broadcasted_iota(jnp.int32, output.shape, output.ndim - 1)
    chosen = jnp.sum(jnp.where(kinds == target.astype(jnp.int32)[..., None], output, 0), axis=-1)
    return jnp.mean(jax.nn.logsumexp(output, axis=-1) - chosen)
