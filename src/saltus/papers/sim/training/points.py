"""Networks trained on the points themselves, by automatic differentiation.

The same code trains the whole network in R^d (inputs x, the check on every reduction) and, where the
first layer sees only x = Q y, the network whose first matrix is W_1 Q (inputs y; exact for any
activation, and as much as can be reduced when there is one).
"""

from __future__ import annotations

from saltus._jax import jax, jnp
from saltus.papers.sim.training.linear import Layer

__all__ = ["forward", "loss", "reduce_first", "step"]


def forward(layers: tuple[Layer, ...], inputs: jax.Array, nonlinear: bool) -> jax.Array:
    """Outputs [d, n] at inputs [d or s, n]."""
    # Points as columns: with rows, the same products take a quarter longer on a CPU.
    hidden = inputs
    for number, (weight, bias) in enumerate(layers):
        hidden = weight @ hidden
        if bias is not None:
            hidden = hidden + bias[:, None]
        if nonlinear and number < len(layers) - 1:
            hidden = jax.nn.relu(hidden)
    return hidden


def loss(
    layers: tuple[Layer, ...],
    inputs: jax.Array,
    targets: jax.Array,
    share: jax.Array,
    factor: jax.Array,
    nonlinear: bool,
) -> jax.Array:
    """c times the squared error of outputs against targets [d, n], averaged with the points' shares [n]."""
    error = forward(layers, inputs, nonlinear) - targets
    return factor * jnp.sum(share * jnp.sum(error * error, axis=0))


def step(
    layers: tuple[Layer, ...],
    inputs: jax.Array,
    targets: jax.Array,
    share: jax.Array,
    factor: jax.Array,
    lr: jax.Array,
    nonlinear: bool,
) -> tuple[Layer, ...]:
    """One step of SGD."""
    slope = jax.grad(loss)(layers, inputs, targets, share, factor, nonlinear)
    return jax.tree.map(lambda w, g: w - lr * g, layers, slope)


def reduce_first(layers: tuple[Layer, ...], q: jax.Array) -> tuple[Layer, ...]:
    """The network that takes y in place of x = Q y, from Q [d, s]."""
    return (Layer(layers[0].weight @ q, layers[0].bias), *layers[1:])
