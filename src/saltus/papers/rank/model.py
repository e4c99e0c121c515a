"""Networks with diagonal attention weights, as functions of the products m = u * v (Example 3.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from saltus._jax import jax, jnp
from saltus.papers.rank.law.objective import Objective

__all__ = ["HeadLoss", "Transformer", "TransformerLoss", "attention", "head", "head_data"]

CHUNK = 100  # samples at a time where much is made of each: a chunk stays in a processor's cache


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

    The gradient is written out: it needs four products of [n, n] with [n, d] for each sample, and
    softmax's own derivative only. So is the Hessian, all of which costs less than one of its columns by
    automatic differentiation when d is large.
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

    def hessian(self, m: Any, data: Any, wanted: Any) -> Any:
        samples, d = data[0].shape[0], m.shape[0] // 2
        chunk = min(CHUNK, samples)

        def more(start: Any, sums: Any, size: int) -> Any:
            some = tuple(jax.lax.dynamic_slice_in_dim(x, start, size) for x in data)
            return jax.tree.map(jnp.add, sums, _moments(m, some))

        sums: Any = (jnp.zeros((d, d)), jnp.zeros((d, d)), jnp.zeros(d))
        sums = jax.lax.fori_loop(0, samples // chunk, lambda i, sums: more(i * chunk, sums, chunk), sums)
        if rest := samples % chunk:
            sums = more(samples - rest, sums, rest)
        aa, ac, cc = sums
        H = jnp.block([[aa, ac], [ac.T, jnp.diag(cc)]]) / (samples * data[0].shape[1])
        return jnp.where(wanted, H, 0.0)


def _moments(m: Any, data: Any) -> tuple[Any, Any, Any]:
    """Sums over samples and tokens that the Hessian of one head consists of: [d, d], [d, d] and [d].

    With B_ijl = X_il (X_jl - Z_il), the move of logit ij by a_l less its mean under P_i: dP_ij = P_ij B_ijl
    da_l, so dZ_ik = sum_j P_ij B_ijl X_jk da_l = X_il Cov_{P_i}(X)_lk da_l.
    """
    X, across, Y = data
    a, c = jnp.split(m, 2)
    P = jax.nn.softmax((X * a) @ across, axis=-1)  # [N, n, n]
    Z = P @ X
    E = Z * c - Y
    PV = P * ((E * c) @ across)
    Q = PV - P * jnp.sum(PV, axis=-1, keepdims=True)  # what the second derivative of P is weighted by
    B = X[:, :, None] * (X[:, None] - Z[:, :, None])  # [N, n, n, d]
    inner = P[..., None] * P[:, :, None] * ((X * c**2) @ across)[:, None]
    inner = inner + Q[..., None] * jnp.eye(X.shape[1])  # [N, n, n, n]
    cross = P[..., None] * X[:, None] * (Z * c + E)[:, :, None]  # [N, n, n, d]
    # One large product rather than two.
    flat = jnp.concatenate([inner @ B, cross], -1).reshape(-1, 2 * X.shape[2])
    aa, ac = jnp.split(B.reshape(-1, X.shape[2]).T @ flat, 2, axis=1)
    return aa, ac, jnp.sum(Z * Z, (0, 1))


@dataclass(frozen=True)
class Transformer:
    """L layers of H heads and a feed-forward layer each, residual; only attention is trained (Example 3.2).

    The parameters are m [L, H, 2, d] flattened: for every layer and head a = w_K w_Q, then c = w_V w_O.

    **Arguments:** `activation`: twice differentiable; W_A, W_B of the feed-forward layers are given to
    `apply` as `frozen` [L, 2, d, hidden].
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
            Z = Z + jnp.sum(jax.vmap(attention, (None, 0, 0))(Z, m[layer, :, 0], m[layer, :, 1]), 0)
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

    def outputs(self, m: Any, X: Any, frozen: Any) -> Any:
        """Z_L [N, n, d] of samples X [N, n, d]."""
        return jax.vmap(lambda x: self.model.apply(m, x, frozen))(X)

    def value(self, m: Any, data: Any) -> Any:
        X, Y, frozen = data
        out = self.outputs(m, X, frozen)
        return 0.5 * jnp.mean(jnp.sum((out - Y) ** 2, axis=-1))
