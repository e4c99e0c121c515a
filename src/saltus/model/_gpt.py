"""GPT-2 (Radford et al., 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput
from saltus.model import _attention, _blocks, _initial

Params = dict[str, Any]


@dataclass(frozen=True)
class GPT:
    """A decoder over tokens: learned positions, layer norm first, causal heads, tied embedding.

    - `vocabulary`: kinds of tokens; `context`: most tokens at once.
    - `depth` layers of `heads` heads of width `head` (width / heads when None), tokens of `width` numbers,
      `mlp` hidden units (4 width when None).
    - `scale`: times the initial weights of every layer; tokens and positions start as they always do.
    - `compute`, `attention`, `unroll`: as in `ViT`.

    Defaults are GPT-2's smallest. Initial weights are N(0, .02^2), those that write to the residual
    stream over sqrt(2 depth); biases are 0.

    Parameters: `embed.tokens` [vocabulary, width], `embed.positions` [context, width], `blocks.{i}` as in
    `saltus.model._blocks` with biases `b_Q`, `b_K`, `b_V` [heads, head], and the last `norm`.
    """

    vocabulary: int = 50257
    context: int = 1024
    depth: int = 12
    heads: int = 12
    width: int = 768
    head: int | None = None
    mlp: int | None = None
    scale: float = 1.0
    compute: str | None = None
    attention: str = "plain"
    unroll: bool = False

    def __post_init__(self) -> None:
        sizes = {n: getattr(self, n) for n in ("vocabulary", "context", "depth", "heads", "width")}
        _initial.check_sizes("GPT", **sizes, head=self.head, mlp=self.mlp)
        if isinstance(self.scale, int | float):
            _initial.check_scale("GPT", self.scale)
        _attention.check(self.attention)
        if self.head is None and self.width % self.heads:
            raise BadInput(f"GPT: {self.heads} heads do not divide width {self.width}; say head=...")

    def init(self, key: jax.Array) -> Params:
        """Fresh parameters."""
        of_tokens, of_positions, of_blocks = jax.random.split(key, 3)
        return {
            "embed": {
                "tokens": 0.02 * jax.random.normal(of_tokens, (self.vocabulary, self.width)),
                "positions": 0.02 * jax.random.normal(of_positions, (self.context, self.width)),
            },
            "blocks": [self._block(k) for k in jax.random.split(of_blocks, self.depth)],
            "norm": _unit(self.width),
        }

    def _block(self, key: jax.Array) -> _blocks.Layer:
        keys = iter(jax.random.split(key, 6))
        d, h = self.width, self.heads
        e, m = self.head or d // h, self.mlp or 4 * d
        std = 0.02 * self.scale
        out = std / (2 * self.depth) ** 0.5
        attention = {name: std * jax.random.normal(next(keys), (d, h, e)) for name in ("W_Q", "W_K", "W_V")}
        attention["W_O"] = out * jax.random.normal(next(keys), (d, h, e))
        attention |= {name: jnp.zeros((h, e)) for name in ("b_Q", "b_K", "b_V")} | {"b_O": jnp.zeros(d)}
        mlp = {
            "W_1": std * jax.random.normal(next(keys), (d, m)),
            "b_1": jnp.zeros(m),
            "W_2": out * jax.random.normal(next(keys), (m, d)),
            "b_2": jnp.zeros(d),
        }
        return {"norm1": _unit(d), "attention": attention, "norm2": _unit(d), "mlp": mlp}

    def apply(self, params: Params, x: jax.Array) -> jax.Array:
        """Scores [..., T, vocabulary] of every next token, at tokens [..., T]."""
        x = jnp.asarray(x).astype(jnp.int32)
        if not 1 <= x.shape[-1] <= self.context:
            raise BadInput(f"GPT takes 1 to {self.context} tokens; got {x.shape[-1]}")
        outer, length = x.shape, x.shape[-1]
        params = _blocks.cast(params, self.compute)
        tokens = params["embed"]["tokens"]
        x = tokens[x.reshape(-1, length)] + params["embed"]["positions"][:length]
        x = _blocks.through(
            params["blocks"], x, self.unroll, lambda p, x: _blocks.layer(p, x, self.attention, True, True)
        )
        out = _blocks.times(_blocks.norm(params["norm"], x), tokens.T)
        return out.astype(jnp.promote_types(tokens.dtype, jnp.float32)).reshape(*outer, self.vocabulary)


def _unit(width: int) -> dict[str, jax.Array]:
    return {"scale": jnp.ones(width), "bias": jnp.zeros(width)}
