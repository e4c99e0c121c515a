"""Any two JAX functions as a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from saltus._jax import jax
from saltus.core.errors import BadInput

PyTree = Any


@dataclass(frozen=True)
class Model:
    """A model from two functions: `init(key) -> params` and `apply(params, x [..., n_in]) -> y`."""

    init: Callable[[jax.Array], PyTree]
    apply: Callable[[PyTree, jax.Array], jax.Array]

    def __post_init__(self) -> None:
        for name in ("init", "apply"):
            if not callable(getattr(self, name)):
                raise BadInput(f"Model needs functions: `{name}` is a {type(getattr(self, name)).__name__}")
