"""Attention trained from its first weights by changes of low rank (Hu et al. 2022), or of any."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from saltus._lazy import jax, jnp
from saltus.papers.rank.studies._walks import FACTORS

__all__ = ["Adapted", "changes"]

Params = dict[str, Any]


@dataclass(frozen=True)
class Adapted:
    """A transformer of which only the attention matrices and the head learn.

    W = W_0 + up down' for each of W_K, W_Q, W_V, W_O of every layer, all heads of it in one matrix [width,
    heads * head]; `up` starts at 0, `down` at N(0, 1 / rank).

    - `base`: a `ViT`; `most`: the largest rank of `up down'`.
    - `settings`: pairs of a rank (above `most`: changes of any rank) and a scale of the initial values.
    - `scale`: which of the settings: the field of which `network.fit` gives every member its own value.

    Parameters: `fixed`, those of the base, of which all but `head` stay as they are; `rank`; for each
    block and matrix `up` [width, most], `down` [heads * head, most], `free` [width, heads * head].
    """

    base: Any
    most: int
    settings: tuple[tuple[float, float], ...]
    scale: Any = 0.0

    def init(self, key: jax.Array) -> Params:
        rank, scale = jnp.asarray(self.settings, jnp.float32)[jnp.asarray(self.scale).astype(int)]
        fixed = replace(self.base, scale=scale).init(jax.random.fold_in(key, 0))
        keys = iter(jax.random.split(jax.random.fold_in(key, 1), 4 * len(fixed["blocks"])))
        blocks = []
        for block in fixed["blocks"]:
            one = {}
            for name in FACTORS:
                d, h, e = block["attention"][name].shape
                # With entries of variance 1 / rank the change moves as fast at any rank.
                spread = 1 / jnp.sqrt(jnp.maximum(rank, 1.0))
                down = spread * jax.random.normal(next(keys), (h * e, self.most))
                one[name] = {"up": jnp.zeros((d, self.most)), "down": down, "free": jnp.zeros((d, h * e))}
            blocks.append(one)
        return {"fixed": fixed, "rank": rank, "blocks": blocks}

    def apply(self, params: Params, x: jax.Array) -> jax.Array:
        held = jax.tree.map(jax.lax.stop_gradient, params["fixed"])
        gained = changes(params)
        blocks = [
            {
                **block,
                "attention": {
                    **block["attention"],
                    **{
                        n: block["attention"][n] + one[n].reshape(block["attention"][n].shape)
                        for n in FACTORS
                    },
                },
            }
            for block, one in zip(held["blocks"], gained, strict=True)
        ]
        return self.base.apply({**held, "blocks": blocks, "head": params["fixed"]["head"]}, x)


def changes(params: Params) -> list[dict[str, jax.Array]]:
    """W - W_0 [width, heads * head] of every block and matrix."""
    rank = jax.lax.stop_gradient(params["rank"])
    found = []
    for block in params["blocks"]:
        one = {}
        for name, parts in block.items():
            most = parts["up"].shape[-1]
            here = (jnp.arange(most) < rank) & (rank <= most)
            low = (parts["up"] * here) @ parts["down"].T
            one[name] = low + jnp.where(rank > most, parts["free"], 0.0)
        found.append(one)
    return found
