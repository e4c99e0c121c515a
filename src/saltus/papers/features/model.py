"""The two quadratic networks: a denoiser with weights shared by its patches, and a classifier (Section 2)."""

from __future__ import annotations

from typing import Any

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput

__all__ = [
    "PREFACTORS",
    "accuracy",
    "class_input_gradient",
    "class_logits",
    "class_loss",
    "classifier_gradient",
    "classifier_loss",
    "classify",
    "denoise",
    "head",
    "input_gradient",
    "prefactor",
    "reconstruct",
]

PREFACTORS = ("sqrt_m", "m")
Array = Any


def prefactor(neurons: int, kind: str = "sqrt_m") -> float:
    """The denoiser's c: 1/sqrt(m), with which alone the paper's exponents of m come out, or 1/m."""
    if kind not in PREFACTORS:
        raise BadInput(f"the prefactor is one of {', '.join(PREFACTORS)}, not {kind!r}")
    return float(neurons**-0.5 if kind == "sqrt_m" else 1 / neurons)


def denoise(W: Array, x: Array, c: float) -> jax.Array:
    """f(W, x) = c sum_r <w_r, x>^2 w_r for each patch.

    **Arguments:** `W` [m, d]; `x` [..., d]. **Returns** [..., d].
    """
    W = jnp.asarray(W)
    return c * ((jnp.asarray(x) @ W.T) ** 2 @ W)


def reconstruct(W: Array, x_t: Array, c: float, alpha: float, beta: float) -> jax.Array:
    """The clean patch that the denoiser sees in x_t: (x_t - beta f(W, x_t)) / alpha [..., d]."""
    return (jnp.asarray(x_t) - beta * denoise(W, x_t, c)) / alpha


def classify(W: Array, x: Array) -> jax.Array:
    """F_+1 - F_-1, with F_j = (1/m) sum over patches and neurons of <w_jr, x>^2.

    **Arguments:** `W` [2, m, d], the weights of F_+1 first; `x` [..., patches, d]. **Returns** [...].
    """
    W = jnp.asarray(W)
    of_class = ((jnp.asarray(x)[..., None, :, :] @ jnp.swapaxes(W, -1, -2)) ** 2).sum((-2, -1)) / W.shape[-2]
    return of_class[..., 0] - of_class[..., 1]


def accuracy(W: Array, x: Array, labels: Array) -> jax.Array:
    """Share of points on whose side the sign of `classify` is."""
    return jnp.mean(jnp.sign(classify(W, x)) == jnp.asarray(labels))


def classifier_outputs(W: Array, X: Array, members: Array) -> tuple[jax.Array, jax.Array]:
    """f of every training point [n], and <w, x_p> [2, P, m]; see `world.Sample` for `X`, `members`."""
    A = X @ jnp.swapaxes(W, -1, -2)
    per_patch = (A**2).sum(-1) / W.shape[-2]
    return members @ (per_patch[0] - per_patch[1]), A


def classifier_loss(W: Array, X: Array, members: Array, labels: Array) -> jax.Array:
    """Mean of log(1 + exp(-y f)) over the training points."""
    f, _ = classifier_outputs(W, X, members)
    return jnp.mean(jax.nn.softplus(-labels * f))


def classifier_gradient(W: Array, X: Array, members: Array, labels: Array) -> jax.Array:
    """The exact gradient [2, m, d]: twice the paper's update (eqs. 2-3), which leaves out d(z^2) = 2 z dz."""
    f, A = classifier_outputs(W, X, members)
    pull = -labels * jax.nn.sigmoid(-labels * f)  # l'_i y_i
    weight = (2 / (len(members) * W.shape[-2])) * (pull @ members)  # [P]
    along = jnp.swapaxes(A, -1, -2) @ (weight[:, None] * X)
    return jnp.stack([along[0], -along[1]])


def input_gradient(W: Array, x: Array) -> jax.Array:
    """Derivative of F_j by the patch, for the weights `W` [m, d] of one class; `x` [..., d]."""
    W = jnp.asarray(W)
    return (2 / W.shape[-2]) * ((jnp.asarray(x) @ W.T) @ W)


def head(rng: Any, neurons: int, classes: int = 10) -> Any:
    """A fixed second layer [m, classes] of signs, drawn evenly by a numpy generator."""
    return rng.choice([-1.0, 1.0], (neurons, classes))


def class_logits(W: Array, V: Array, x: Array) -> jax.Array:
    """Logits (1/m) V^T sum over patches of <W, x>^2 of the network with many classes (App. A.5).

    **Arguments:** `W` [m, d]; `V` [m, classes]; `x` [..., patches, d].
    """
    return ((jnp.asarray(x) @ jnp.asarray(W).T) ** 2).sum(-2) @ jnp.asarray(V) / len(V)


def class_loss(W: Array, V: Array, X: Array, members: Array, labels: Array) -> jax.Array:
    """Mean softmax cross-entropy over the training points; `labels` are 0..classes-1."""
    logits = members @ (X @ W.T) ** 2 @ V / len(V)
    return jnp.mean(jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, labels[:, None], -1)[:, 0])


def class_input_gradient(W: Array, V: Array, x: Array, labels: Array) -> jax.Array:
    """Derivative of the logit of the true class by each patch [..., patches, d]."""
    W, V = jnp.asarray(W), jnp.asarray(V)
    signs = V.T[jnp.asarray(labels)][..., None, :]
    return (2 / len(V)) * ((jnp.asarray(x) @ W.T) * signs) @ W
