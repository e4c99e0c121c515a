"""The classifier's second stage: a point that the weights near while they fit (App. C.3.2, C.4.2)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saltus.core.errors import BadInput

__all__ = ["Approach", "approach", "reference"]

Array = Any
CASES = ("signal", "noise")


def reference(W0: Array, X: Array, labels: Array, case: str, epsilon: float = 0.1) -> np.ndarray:
    """W* [2, m, D]: the start and 2 log(4/epsilon) of what is to be learnt, with the start's own signs.

    In the case `signal` that is mu_j / |mu|^2, in the case `noise` the sum of xi_i / |xi_i|^2 over the points
    of class j.

    **Arguments:** `W0` [2, m, D]; `X` [n + 2, D] with the signals first; `labels` [n], +1 or -1.
    """
    if case not in CASES:
        raise BadInput(f"the case is one of {', '.join(CASES)}, not {case!r}")
    W0, X, y = (np.asarray(v, float) for v in (W0, X, labels))
    held = np.zeros((2, len(X)))
    if case == "signal":
        held[[0, 1], [0, 1]] = 1
    else:
        held[:, 2:] = np.stack([y > 0, y < 0])
    signs = np.sign(W0 @ X.T) * held[:, None, :]  # [2, m, P]
    return W0 + 2 * np.log(4 / epsilon) * (signs / (X**2).sum(1)) @ X


class Approach(NamedTuple):
    """What the second stage's proof needs of every step of a run but the last [t - 1]; `distance` [t]."""

    lead: np.ndarray  # least y_i <grad f(x_i), W*> over 2 log(4/epsilon): at least 1
    gain: np.ndarray  # what |W - W*|^2 falls by, over eta, less 2 L - epsilon: at least 0
    slope: np.ndarray  # |grad L|^2 / (max(|mu|^2, mean |xi|^2) L): of order 1 (Lemma C.8)
    ratio: np.ndarray  # largest |l'_i| / |l'_i'| of two points of a class
    distance: np.ndarray  # |W - W*|


def approach(
    path: Array, W0: Array, X: Array, members: Array, labels: Array, eta: float, case: str,
    epsilon: float = 0.1,
) -> Approach:  # fmt: skip
    """Lemmas C.8, C.12 and C.19 along `path` [t, 2, m, D], all steps of it kept, with the exact gradient."""
    path, X, members, y = (np.asarray(v, float) for v in (path, X, members, labels))
    n, m, j = len(y), path.shape[2], np.array([1.0, -1.0])
    aim = reference(W0, X, y, case, epsilon)
    toward = X @ np.swapaxes(aim, -1, -2)  # [2, P, m]
    scale = max((X[:2] ** 2).sum(1).max(), (X[2:] ** 2).sum(1).mean())
    apart = ((path - aim) ** 2).sum((1, 2, 3))
    leads, losses, slopes, ratios = [], [], [], []
    for W in path[:-1]:
        A = X @ np.swapaxes(W, -1, -2)
        f = members @ (j @ (A**2).sum(-1)) / m
        pull = 1 / (1 + np.exp(y * f))  # |l'|
        leads.append((y * (members @ (j @ (A * toward).sum(-1)) * 2 / m)).min())
        losses.append(np.logaddexp(0, -y * f).mean())
        weight = (2 / (n * m)) * ((pull * y) @ members)
        slopes.append(((np.swapaxes(A, -1, -2) @ (weight[:, None] * X)) ** 2).sum())
        ratios.append(max(pull[y == k].max() / pull[y == k].min() for k in np.unique(y)))
    loss = np.asarray(losses)
    gain = (apart[:-1] - apart[1:]) / eta - (2 * loss - epsilon)
    return Approach(
        np.asarray(leads) / (2 * np.log(4 / epsilon)), gain, np.asarray(slopes) / (scale * loss),
        np.asarray(ratios), np.sqrt(apart),
    )  # fmt: skip
