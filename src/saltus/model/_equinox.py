"""Equinox modules as models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from saltus._jax import jax
from saltus.core.errors import BadInput
from saltus.model._functions import Model


def from_equinox(make: Callable[[jax.Array], Any]) -> Model:
    """A model from `make(key) -> equinox.Module`, where the module maps one input [n_in] to one output.

    The parameters are the module itself with everything but its floating-point arrays taken out, so
    that patterns such as `layers.*.weight` find them.
    """
    import equinox as eqx

    if not callable(make) or isinstance(make, eqx.Module):
        raise BadInput(
            "from_equinox needs a function of a key, e.g. lambda key: equinox.nn.MLP(..., key=key)"
        )

    def init(key: jax.Array) -> Any:
        return eqx.filter(make(key), eqx.is_inexact_array)

    def rest() -> Any:
        shapes = eqx.filter_eval_shape(make, jax.random.key(0))
        return eqx.filter(shapes, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct), inverse=True)

    def apply(params: Any, x: jax.Array) -> jax.Array:
        module = eqx.combine(params, rest())
        one_by_one = jax.vmap(module)(x.reshape(-1, x.shape[-1]))
        return one_by_one.reshape(*x.shape[:-1], *one_by_one.shape[1:])

    return Model(init, apply)
