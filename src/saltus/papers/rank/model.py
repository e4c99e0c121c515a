"""Networks with diagonal attention weights, as functions of the products m = u * v (Example 3.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from saltus._jax import jax, jnp
from saltus.papers.rank.law.objective import Objective

__all__ = ["HeadLoss", "Transformer", "attention", "head", "head_data"]


def attention(Z: Any, a: Any, c: Any) -> Any:
    """smax(Z diag(a) Z^T) Z diag(c) (eq. 1) for tokens Z [n, d], a = w_K w_Q, c = w_V w_O [d]."""
    return jax.nn.softmax((Z * a) @ Z.T, axis=-1) @ Z * c


def head(X: Any, m: Any) -> Any:
    """One head: X [n, d], m = [a, c] [2d]."""
    a, c = jnp.split(m, 2)
    return attention(X, a, c)


def head_data(X: Any, Y: Any) -> tuple[Any, Any, Any]:
    """X, its transpose (products with it run several times as fast as with X read sideways), and Y."""
    return X, jnp.swapaxes(X, 1, 2) + 0.0, Y


@dataclass(frozen=True)
class HeadLoss(Objective):
    """Half the squared error of one head, summed over features, averaged over samples and tokens.

    The gradient is written out: it needs four products of [n, n] with [n, d] for each sample, and softmax's own
    derivative only.
    """

    def value(self, m: Any, data: Any) -> Any:
        X, _, Y = data
        out = jax.vmap(head, (0, None))(X, m)
        return 0.5 * jnp.mean(jnp.sum((out - Y) ** 2, axis=-1))

    def pull(self, m: Any, data: Any) -> Any:
        X, across, Y = data
        a, c = jnp.split(m, 2)
        P = jax.nn.softmax((X * a) @ across, axis=-1)  # [N, n, n]
        Z = P @ X
        E = Z * c - Y
        V = (E * c) @ across  # d loss / d P
        Q = P * (V - jnp.sum(P * V, axis=-1, keepdims=True))
        tokens = X.shape[0] * X.shape[1]
        grad_a = jnp.sum((Q @ X) * X, (0, 1))
        grad_c = jnp.sum(E * Z, (0, 1))
        return -jnp.concatenate([grad_a, grad_c]) / tokens


@dataclass(frozen=True)
class Transformer:
    """L layers of H heads and a feed-forward layer each, residual; only attention is trained (Example 3.2).

    The parameters are m [L, H, 2, d] flattened: for every layer and head a = w_K w_Q, then c = w_V w_O.

    **Arguments:** `up`, `down` of the feed-forward layers are given to `apply` as `frozen` [L, 2, d, hidden].
    """

    dim: int
    layers: int = 1
    heads: int = 1
    activation: Callable[[Any], Any] = jax.nn.gelu

    @property
    def size(self) -> int:
        return 2 * self.dim * self.layers * self.heads

    def apply(self, m: Any, X: Any, frozen: Any) -> Any:
        """Z_L [n, d] for X [n, d]."""
        m = m.reshape(self.layers, self.heads, 2, self.dim)
        Z = X
        for layer in range(self.layers):
            Z = Z + sum(attention(Z, *m[layer, i]) for i in range(self.heads))
            up, down = frozen[layer]
            Z = Z + self.activation(Z @ up) @ down.T
        return Z

    def name(self, i: int) -> str:
        """What coordinate i is: `layer 1 head 2 VO 3`."""
        layer, rest = divmod(i, self.heads * 2 * self.dim)
        one, rest = divmod(rest, 2 * self.dim)
        kind, k = divmod(rest, self.dim)
        return f"layer {layer + 1} head {one + 1} {('KQ', 'VO')[kind]} {k}"


@dataclass(frozen=True)
class TransformerLoss(Objective):
    """Half the squared error of a diagonal transformer; data are (X, Y, frozen)."""

    model: Transformer

    def value(self, m: Any, data: Any) -> Any:
        X, Y, frozen = data
        out = jax.vmap(lambda x: self.model.apply(m, x, frozen))(X)
        return 0.5 * jnp.mean(jnp.sum((out - Y) ** 2, axis=-1))
