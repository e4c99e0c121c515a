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
        ends: _blocks.Sizes = {
            "tokens": ((self.vocabulary, self.width), 0.02),
            "positions": ((self.context, self.width), 0.02),
        }
        one, split = self._layer(), _blocks.count(ends)
        normal = jax.random.normal(key, (split + self.depth * _blocks.count(one),))
        blocks = [self._block(numbers, one) for numbers in normal[split:].reshape(self.depth, -1)]
        return {
            "embed": _blocks.dealt(normal[:split], ends),
            "blocks": blocks,
            "norm": _blocks.unit(self.width),
        }

    def _layer(self) -> _blocks.Sizes:
        d, h = self.width, self.heads
        e, m = self.head or d // h, self.mlp or 4 * d
        std = 0.02 * self.scale
        out = std / (2 * self.depth) ** 0.5
        sizes = {name: ((d, h, e), std) for name in ("W_Q", "W_K", "W_V")}
        return sizes | {"W_O": ((d, h, e), out), "W_1": ((d, m), std), "W_2": ((m, d), out)}

    def _block(self, numbers: jax.Array, sizes: _blocks.Sizes) -> _blocks.Layer:
        drawn = _blocks.dealt(numbers, sizes)
        mlp = {"W_1": drawn.pop("W_1"), "W_2": drawn.pop("W_2")}
        mlp |= {"b_1": jnp.zeros(mlp["W_1"].shape[1]), "b_2": jnp.zeros(self.width)}
        biases = {name: jnp.zeros(drawn["W_Q"].shape[1:]) for name in ("b_Q", "b_K", "b_V")}
        unit = _blocks.unit(self.width)
        attention = drawn | biases | {"b_O": jnp.zeros(self.width)}
        return {"norm1": unit, "attention": attention, "norm2": unit, "mlp": mlp}

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
