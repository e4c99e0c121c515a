"""What is kept of the weights at every look: products with signals and noises, and how neurons lie."""

from __future__ import annotations

from typing import Any

from saltus._jax import jax, jnp
from saltus.papers.features import model
from saltus.papers.features.law import ddpm

__all__ = ["classifier", "denoiser"]

Problem = dict[str, Any]


def denoiser(W: jax.Array, p: Problem) -> dict[str, jax.Array]:
    """Of a denoiser on two-patch data, whose signals come first.

    `signal`, `noise`: largest |<w, mu_j>| and |<w, xi_i>|; `signal_mean`, `noise_mean`: means of the products
    themselves; `signal_size`, `noise_size`: means of their absolute values; `negative`: share of products
    below 0; `change`: loss less its value at 0; `slope`: norm of the gradient; `size`: mean |w|^2; `cosine`:
    mean over pairs of neurons; `spread`: largest coefficient of variation of a product over neurons.
    """
    A, G = p["X"] @ W.T, W @ W.T
    held = (p["omega"] > 0)[:, None]  # a class may be empty
    signal, noise = jnp.where(held[:2], A[:2], 0.0), A[2:]
    count = held[:2].sum() * A.shape[1]
    m, s = len(W), jnp.diagonal(G)
    cosine = G / jnp.sqrt(s[:, None] * s)
    g = ddpm.gradient(W, p["X"], p["omega"], p["alpha"], p["beta"], p["c"])
    return {
        "signal": jnp.abs(signal).max(),
        "noise": jnp.abs(noise).max(),
        "signal_mean": signal.sum() / count,
        "noise_mean": noise.mean(),
        "signal_size": jnp.abs(signal).sum() / count,
        "noise_size": jnp.abs(noise).mean(),
        "negative": (jnp.where(held[:2], A[:2], 1.0) < 0).sum() / A.size + (noise < 0).sum() / A.size,
        "change": ddpm.change(W, p["X"], p["omega"], p["alpha"], p["beta"], p["c"]),
        "slope": jnp.linalg.norm(g),
        "size": s.mean(),
        "cosine": (cosine.sum() - m) / max(m * (m - 1), 1),
        "spread": jnp.where(held, A.std(1, keepdims=True) / jnp.abs(A.mean(1, keepdims=True)), 0.0).max(),
    }


def classifier(W: jax.Array, p: Problem) -> dict[str, jax.Array]:
    """Of a classifier on two-patch data.

    `signal`: largest |<w_jr, mu_j>|; `noise`: largest |<w_(y_i)r, xi_i>|; `signal_mean`, `noise_mean`: means
    of their absolute values; `weak_signal`, `weak_noise`: the smallest over j and i of the largest over r;
    `loss`; `accuracy` on the training points.
    """
    f, A = model.classifier_outputs(W, p["X"], p["members"])
    A = jnp.abs(A)
    signal = jnp.stack([A[0, 0], A[1, 1]])  # [2, m]
    noise = jnp.where((p["labels"] > 0)[:, None], A[0, 2:], A[1, 2:])  # [n, m]
    return {
        "signal": signal.max(),
        "noise": noise.max(),
        "signal_mean": signal.mean(),
        "noise_mean": noise.mean(),
        "weak_signal": signal.max(1).min(),
        "weak_noise": noise.max(1).min(),
        "loss": jnp.mean(jax.nn.softplus(-p["labels"] * f)),
        "accuracy": jnp.mean(jnp.sign(f) == p["labels"]),
    }
