"""Transformers written out in numpy, head by head and token by token, in float64."""

from __future__ import annotations

from math import erf

import numpy as np


def norm(p, x):
    z = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return z * p["scale"] + p["bias"]


def gelu(x, approximate):
    if approximate:
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + np.vectorize(erf)(x / np.sqrt(2)))


def heads(p, x, causal):
    """One sequence x [T, d]: sum over heads of softmax(X W_Q W_K' X' / sqrt(d')) X W_V W_O'."""
    total = np.zeros_like(x)
    for i in range(p["W_Q"].shape[1]):
        q, k, v = (x @ p[f"W_{n}"][:, i] + (p[f"b_{n}"][i] if f"b_{n}" in p else 0) for n in "QKV")
        for t in range(len(x)):
            scores = np.array([q[t] @ k[s] for s in range(t + 1 if causal else len(x))]) / np.sqrt(len(q[t]))
            weights = np.exp(scores - scores.max())
            weights /= weights.sum()
            total[t] += p["W_O"][:, i] @ (weights @ v[: len(weights)])
    return total + p["b_O"]


def layers(blocks, x, causal, approximate):
    for p in blocks:
        x = x + heads(p["attention"], norm(p["norm1"], x), causal)
        hidden = gelu(norm(p["norm2"], x) @ p["mlp"]["W_1"] + p["mlp"]["b_1"], approximate)
        x = x + hidden @ p["mlp"]["W_2"] + p["mlp"]["b_2"]
    return x


def vit(p, image, side, pool):
    """Outputs [classes] at one image [height, width, channels]."""
    rows, columns = image.shape[0] // side, image.shape[1] // side
    patches = [
        image[side * i : side * (i + 1), side * j : side * (j + 1)].reshape(-1)
        for i in range(rows)
        for j in range(columns)
    ]
    x = np.stack(patches) @ p["embed"]["W"] + p["embed"]["b"]
    if pool == "class":
        x = np.vstack([p["embed"]["class"], x])
    x = layers(p["blocks"], x + p["embed"]["positions"], False, False)
    read = x[0] if pool == "class" else x.mean(0)
    return norm(p["head"]["norm"], read) @ p["head"]["W"] + p["head"]["b"]


def gpt(p, tokens):
    """Scores [T, vocabulary] at one row of tokens [T]."""
    x = p["embed"]["tokens"][tokens] + p["embed"]["positions"][: len(tokens)]
    return norm(p["norm"], layers(p["blocks"], x, True, True)) @ p["embed"]["tokens"].T
