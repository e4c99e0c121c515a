"""The symmetric two-layer linear network."""

from __future__ import annotations

from dataclasses import dataclass

from saltus._jax import jax
from saltus.model import _initial


@dataclass(frozen=True)
class SymmetricLinear:
    """f(x) = U U^T x with U [dim, width] (Yang et al., ICLR 2025, sec. 4.2).

    - `width`: columns of U (`dim` when not given); below `dim` the rank is limited for good.
    - `init_as`: uniform U(0, scale), normal N(0, scale^2), torch, lecun or eye.
    """

    dim: int
    width: int | None = None
    init_as: str = "uniform"
    scale: float = 0.1

    def __post_init__(self) -> None:
        _initial.check_sizes("SymmetricLinear", dim=self.dim, width=self.width)
        _initial.check(self.init_as)
        _initial.check_scale("SymmetricLinear", self.scale)

    def init(self, key: jax.Array) -> dict[str, jax.Array]:
        """Fresh parameters {"u": U [dim, width]}."""
        width = self.dim if self.width is None else self.width
        return {"u": _initial.draw(self.init_as)(key, (self.dim, width), self.dim, self.scale)}

    def apply(self, params: dict[str, jax.Array], x: jax.Array) -> jax.Array:
        """U U^T x [..., dim] at x [..., dim]."""
        u = params["u"]
        return (x @ u) @ u.T
