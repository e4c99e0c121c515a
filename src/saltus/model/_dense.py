"""Fully connected networks of any depth, linear or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput, nearest
from saltus.model import _initial

Params = dict[str, list[dict[str, jax.Array]]]

ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "linear": lambda h: h,
    "relu": jax.nn.relu,
    "tanh": jnp.tanh,
    "gelu": jax.nn.gelu,
    "silu": jax.nn.silu,
    "sigmoid": jax.nn.sigmoid,
    "square": jnp.square,
}


@dataclass(frozen=True)
class MLP:
    """A fully connected network y = W_L act(... act(W_1 x + b_1) ...) + b_L.

    - `depth`: number of weight matrices L; `width`: units in each hidden layer.
    - `dim`: inputs (`width` when not given); `out`: outputs (`dim` when not given).
    - `activation`: linear, relu, tanh, gelu, silu, sigmoid or square, between layers only.
    - `init`: torch, lecun, normal, uniform or eye (see `saltus.model._initial`), times `scale`.

    Parameters are `layers.{i}.weight` [fan_out, fan_in] and `layers.{i}.bias` [fan_out].
    """

    depth: int
    width: int
    dim: int | None = None
    out: int | None = None
    bias: bool = True
    activation: str = "relu"
    init_as: str = "torch"
    scale: float = 1.0

    def __post_init__(self) -> None:
        _check(self)
        if self.activation not in ACTIVATIONS:
            hint = nearest(self.activation, ACTIVATIONS)
            raise BadInput(f"unknown activation {self.activation!r}{hint} (known: {', '.join(ACTIVATIONS)})")

    def init(self, key: jax.Array) -> Params:
        """Fresh parameters."""
        return _layers(key, _sizes(self), self.bias, self.init_as, self.scale)

    def apply(self, params: Params, x: jax.Array) -> jax.Array:
        """Outputs [..., out] at x [..., dim]."""
        return _forward(params, x, ACTIVATIONS[self.activation])


@dataclass(frozen=True)
class Linear:
    """A deep linear network without biases, y = W_L ... W_1 x; arguments as in `MLP`."""

    depth: int
    width: int
    dim: int | None = None
    out: int | None = None
    init_as: str = "torch"
    scale: float = 1.0

    def __post_init__(self) -> None:
        _check(self)

    def init(self, key: jax.Array) -> Params:
        """Fresh parameters."""
        return _layers(key, _sizes(self), False, self.init_as, self.scale)

    def apply(self, params: Params, x: jax.Array) -> jax.Array:
        """Outputs [..., out] at x [..., dim]."""
        return _forward(params, x, ACTIVATIONS["linear"])

    def product(self, params: Params) -> jax.Array:
        """The end-to-end matrix W_L ... W_1 [out, dim]."""
        weights = [layer["weight"] for layer in params["layers"]]
        total = weights[0]
        for weight in weights[1:]:
            total = weight @ total
        return total


def _check(model: Any) -> None:
    name = type(model).__name__
    _initial.check_sizes(name, depth=model.depth, width=model.width, dim=model.dim, out=model.out)
    _initial.check(model.init_as)
    _initial.check_scale(name, model.scale)


def _sizes(model: Any) -> list[int]:
    dim = model.width if model.dim is None else model.dim
    return [dim] + [model.width] * (model.depth - 1) + [dim if model.out is None else model.out]


def _layers(key: jax.Array, sizes: list[int], bias: bool, init_as: str, scale: float) -> Params:
    draw = _initial.draw(init_as)
    layers = []
    for i, (fan_in, fan_out) in enumerate(pairwise(sizes)):
        of_weight, of_bias = jax.random.split(jax.random.fold_in(key, i))
        layer = {"weight": draw(of_weight, (fan_out, fan_in), fan_in, scale)}
        if bias:
            # Only the torch convention starts biases away from zero.
            zero = jnp.zeros(fan_out)
            layer["bias"] = draw(of_bias, (fan_out,), fan_in, scale) if init_as == "torch" else zero
        layers.append(layer)
    return {"layers": layers}


def _forward(params: Params, x: jax.Array, activation: Callable[[jax.Array], jax.Array]) -> jax.Array:
    last = len(params["layers"]) - 1
    for i, layer in enumerate(params["layers"]):
        x = x @ layer["weight"].T  # [..., fan_in] -> [..., fan_out]
        if "bias" in layer:
            x = x + layer["bias"]
        if i < last:
            x = activation(x)
    return x
