"""Initial weights by name."""

from __future__ import annotations

from collections.abc import Callable

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput, nearest

Draw = Callable[[jax.Array, tuple[int, ...], int, "jax.Array | float"], jax.Array]


def _torch(key: jax.Array, shape: tuple[int, ...], fan_in: int, scale: jax.Array | float) -> jax.Array:
    bound = scale / fan_in**0.5
    return bound * jax.random.uniform(key, shape, minval=-1.0, maxval=1.0)


def _lecun(key: jax.Array, shape: tuple[int, ...], fan_in: int, scale: jax.Array | float) -> jax.Array:
    return scale / fan_in**0.5 * jax.random.normal(key, shape)


def _normal(key: jax.Array, shape: tuple[int, ...], fan_in: int, scale: jax.Array | float) -> jax.Array:
    return scale * jax.random.normal(key, shape)


def _uniform(key: jax.Array, shape: tuple[int, ...], fan_in: int, scale: jax.Array | float) -> jax.Array:
    return scale * jax.random.uniform(key, shape)


def _eye(key: jax.Array, shape: tuple[int, ...], fan_in: int, scale: jax.Array | float) -> jax.Array:
    return scale * (jnp.eye(*shape) if len(shape) == 2 else jnp.zeros(shape))


DRAWS: dict[str, Draw] = {
    "torch": _torch,  # U(-1, 1) scale / sqrt(fan_in), weights and biases alike
    "lecun": _lecun,  # N(0, scale^2 / fan_in)
    "normal": _normal,  # N(0, scale^2)
    "uniform": _uniform,  # U(0, scale): every entry positive
    "eye": _eye,  # scale on the diagonal
}


def draw(name: str) -> Draw:
    """The initial distribution called `name`, a function of (key, shape, fan_in, scale)."""
    check(name)
    return DRAWS[name]


def check(name: str) -> None:
    if name not in DRAWS:
        raise BadInput(f"unknown init {name!r}{nearest(name, DRAWS)} (known: {', '.join(DRAWS)})")


def check_sizes(owner: str, **sizes: int | None) -> None:
    for name, size in sizes.items():
        if size is not None and (not isinstance(size, int) or isinstance(size, bool) or size < 1):
            raise BadInput(f"{owner}: {name} must be a whole number >= 1; got {size!r}")


def check_scale(owner: str, scale: float) -> None:
    if not 0 <= scale < float("inf"):
        raise BadInput(f"{owner}: scale must be finite and >= 0; got {scale!r}")
