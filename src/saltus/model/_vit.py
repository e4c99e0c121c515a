"""The vision transformer (Dosovitskiy et al., 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput
from saltus.model import _attention, _blocks, _initial

Params = dict[str, Any]


@dataclass(frozen=True)
class ViT:
    """Images cut into patches, a class token before them, and layers of attention over them all.

    - `image`: height and width; `channels`; `patch`: side of a patch; `classes`: outputs.
    - `depth` layers of `heads` heads of width `head`, tokens of `width` numbers, `mlp` hidden units.
    - `pool`: what the head reads, the class token ("class") or the mean of the patches ("mean").
    - `bias`: whether queries, keys and values have one.
    - `scale`: times the initial weights and biases of every layer and of the head; what maps patches to
      tokens (patch weights, positions, class token) and the layer norms start as they always do.
    - `compute`: numbers to compute with, such as bfloat16; those of the parameters when None.
    - `attention`: plain, or on an NVIDIA GPU cudnn or kernel; `unroll`: layers written out rather than as a loop.

    Defaults are those of the CIFAR-10 runs of Boix-Adsera et al. (2023). Initial weights: U(-1, 1) /
    sqrt(fan_in) for weights and biases, N(0, 1) for positions and class token.

    Parameters: `embed.W` [patch^2 channels, width], `embed.b`, `embed.class`, `embed.positions`;
    `blocks.{i}` as in `saltus.model._blocks`; `head.norm`, `head.W` [width, classes], `head.b`.
    """

    image: tuple[int, int] = (32, 32)
    channels: int = 3
    patch: int = 4
    classes: int = 10
    depth: int = 6
    heads: int = 8
    width: int = 512
    head: int = 128
    mlp: int = 512
    pool: str = "class"
    bias: bool = False
    scale: float = 1.0
    compute: str | None = None
    attention: str = "plain"
    unroll: bool = False

    def __post_init__(self) -> None:
        sizes = {n: getattr(self, n) for n in ("channels", "patch", "classes", "depth", "heads", "width")}
        _initial.check_sizes("ViT", **sizes, head=self.head, mlp=self.mlp)
        _initial.check_sizes("ViT", **dict(zip(("height", "of image"), self.image, strict=True)))
        if isinstance(self.scale, int | float):
            _initial.check_scale("ViT", self.scale)
        if any(side % self.patch for side in self.image):
            raise BadInput(f"ViT: patches of {self.patch} do not fill an image of {self.image}")
        if self.pool not in ("class", "mean"):
            raise BadInput(f"ViT: pool is class or mean; got {self.pool!r}")
        _attention.check(self.attention, self.tokens, self.head)

    @property
    def tokens(self) -> int:
        """Tokens of an image, the class token among them."""
        return (self.image[0] // self.patch) * (self.image[1] // self.patch) + (self.pool == "class")

    def init(self, key: jax.Array) -> Params:
        """Fresh parameters."""
        ends, one = self._ends(), self._layer()
        of_uniform, of_normal = jax.random.split(key)
        total = _blocks.count(ends) + self.depth * _blocks.count(one)
        uniform = jax.random.uniform(of_uniform, (total,), minval=-1.0, maxval=1.0)
        normal = jax.random.normal(of_normal, (self.tokens + 1, self.width))
        split = _blocks.count(ends)
        at_ends = _blocks.dealt(uniform[:split], ends)
        embed = {"W": at_ends["embed.W"], "b": at_ends["embed.b"], "positions": normal[1:]}
        if self.pool == "class":
            embed["class"] = normal[0]
        head = {"norm": _blocks.unit(self.width), "W": at_ends["head.W"], "b": at_ends["head.b"]}
        blocks = [self._block(numbers, one) for numbers in uniform[split:].reshape(self.depth, -1)]
        return {"embed": embed, "blocks": blocks, "head": head}

    def _ends(self) -> _blocks.Sizes:
        cells, d = self.patch**2 * self.channels, self.width
        into, out = cells**-0.5, self.scale * d**-0.5
        return {
            "embed.W": ((cells, d), into),
            "embed.b": ((d,), into),
            "head.W": ((d, self.classes), out),
            "head.b": ((self.classes,), out),
        }

    def _layer(self) -> _blocks.Sizes:
        d, h, e, m = self.width, self.heads, self.head, self.mlp
        wide, inner, hidden = (self.scale * fan_in**-0.5 for fan_in in (d, h * e, m))
        sizes = {name: ((d, h, e), wide) for name in ("W_Q", "W_K", "W_V")}
        sizes |= {"W_O": ((d, h, e), inner), "b_O": ((d,), inner)}
        sizes |= {"W_1": ((d, m), wide), "b_1": ((m,), wide), "W_2": ((m, d), hidden), "b_2": ((d,), hidden)}
        return sizes | ({n: ((h, e), wide) for n in ("b_Q", "b_K", "b_V")} if self.bias else {})

    def _block(self, numbers: jax.Array, sizes: _blocks.Sizes) -> _blocks.Layer:
        drawn = _blocks.dealt(numbers, sizes)
        mlp = {name: drawn.pop(name) for name in ("W_1", "b_1", "W_2", "b_2")}
        unit = _blocks.unit(self.width)
        return {"norm1": unit, "attention": drawn, "norm2": unit, "mlp": mlp}

    def apply(self, params: Params, x: jax.Array) -> jax.Array:
        """Outputs [..., classes] at images [..., height, width, channels] or at rows of their pixels."""
        x, outer = self._images(jnp.asarray(x))
        params = _blocks.cast(params, self.compute)
        dtype = params["embed"]["W"].dtype
        x = _blocks.times(self._patches(x.astype(dtype)), params["embed"]["W"]) + params["embed"]["b"]
        if self.pool == "class":
            token = jnp.broadcast_to(params["embed"]["class"], (len(x), 1, self.width))
            x = jnp.concatenate([token, x], axis=1)
        x = x + params["embed"]["positions"]
        x = _blocks.through(
            params["blocks"], x, self.unroll, lambda p, x: _blocks.layer(p, x, self.attention, False, False)
        )
        read = x[:, 0] if self.pool == "class" else jnp.mean(x, axis=1)
        out = _blocks.times(_blocks.norm(params["head"]["norm"], read), params["head"]["W"])
        out = (out + params["head"]["b"]).astype(jnp.promote_types(dtype, jnp.float32))
        return out.reshape(*outer, self.classes)

    def _images(self, x: jax.Array) -> tuple[jax.Array, tuple[int, ...]]:
        """x as [B, height, width, channels], and the axes that B stands for."""
        whole = (*self.image, self.channels)
        pixels = self.image[0] * self.image[1] * self.channels
        for inner in (whole, self.image if self.channels == 1 else whole, (pixels,)):
            if x.ndim >= len(inner) and x.shape[x.ndim - len(inner) :] == tuple(inner):
                return x.reshape(-1, *whole), x.shape[: x.ndim - len(inner)]
        raise BadInput(f"ViT takes images {list(whole)} or rows of {pixels} pixels; got {list(x.shape)}")

    def _patches(self, x: jax.Array) -> jax.Array:
        """Images as [B, patches, patch^2 channels]."""
        (rows, columns), side = (n // self.patch for n in self.image), self.patch
        x = x.reshape(-1, rows, side, columns, side, self.channels)
        return x.swapaxes(2, 3).reshape(len(x), rows * columns, -1)
