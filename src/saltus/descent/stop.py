"""When to stop a run: its state is kept as it was, and the step recorded.

A run whose loss is no longer finite always stops; nothing needs to be asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput

__all__ = ["LossBelow", "Plateau", "Rule", "loss_below", "plateau"]


class Rule(Protocol):
    """A stop rule: a small state, and its update at every step from the loss of that step."""

    def start(self) -> Any:
        """The state before the first step."""

    def update(self, state: Any, loss: jax.Array) -> tuple[Any, jax.Array]:
        """The new state, and whether to stop here (before this step's update)."""


@dataclass(frozen=True)
class LossBelow:
    """Stop when the loss of a step (of its batch, for SGD) is below `value`."""

    value: float

    def start(self) -> tuple[()]:
        return ()

    def update(self, state: Any, loss: jax.Array) -> tuple[Any, jax.Array]:
        return state, loss < self.value


@dataclass(frozen=True)
class Plateau:
    """Stop when the lowest loss has not fallen by the fraction `rel` for `patience` steps."""

    patience: int
    rel: float

    def start(self) -> tuple[jax.Array, jax.Array]:
        return jnp.asarray(jnp.inf, jnp.float64), jnp.asarray(0, jnp.int64)

    def update(self, state: Any, loss: jax.Array) -> tuple[Any, jax.Array]:
        best, since = state
        better = loss < best * (1 - self.rel)
        since = jnp.where(better, 0, since + 1)
        best = jnp.where(better, loss.astype(best.dtype), best)
        return (best, since), since >= self.patience


def loss_below(value: float) -> LossBelow:
    """Stop when the loss of a step (of its batch, for SGD) is below `value`."""
    if not value > 0 or value == float("inf"):
        raise BadInput(f"stop.loss_below needs a positive loss; got {value!r}")
    return LossBelow(float(value))


def plateau(patience: int = 100, rel: float = 1e-3) -> Plateau:
    """Stop when the lowest loss so far has not fallen by the fraction `rel` for `patience` steps."""
    if not isinstance(patience, int) or patience < 1 or not 0 <= rel < 1:
        raise BadInput(f"stop.plateau: patience >= 1 and 0 <= rel < 1; got {patience!r} and {rel!r}")
    return Plateau(patience, float(rel))
