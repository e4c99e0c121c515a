"""Training of the classifiers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from saltus._jax import jax
from saltus.papers.features import model
from saltus.papers.features.training.engine import descend, whole
from saltus.papers.features.world import Sample

__all__ = ["train_classes", "train_classifier"]


def _two(W: jax.Array, p: dict[str, jax.Array]) -> jax.Array:
    return model.classifier_gradient(W, p["X"], p["members"], p["labels"])


def _many_loss(W: jax.Array, p: dict[str, jax.Array]) -> jax.Array:
    return model.class_loss(W, p["V"], p["X"], p["members"], p["labels"])


_many = jax.grad(_many_loss)


def train_classifier(
    sample: Sample,
    W0: np.ndarray,
    *,
    eta: Any,
    at: Any,
    look: Callable[..., Any] = whole,
    block: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Gradient descent on the logistic loss with the exact gradient; many runs at a time.

    **Arguments:** `sample`: stacked (`world.stack`), labels +1 and -1; `W0` [run, 2, m, D], the weights of
    F_+1 first; `at`: steps looked at; `look(W, problem)`, where `problem` has `X`, `omega`, `members`,
    `labels`. **Returns** `step` [t] and by default `W` [run, t, 2, m, D].
    """
    problem = {**sample._asdict(), "labels": np.asarray(sample.labels, float)}
    return descend(_two, problem, W0, eta, at, look=look, block=block, progress=progress)


def train_classes(
    sample: Sample,
    V: np.ndarray,
    W0: np.ndarray,
    *,
    eta: Any,
    at: Any,
    look: Callable[..., Any] = whole,
    block: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """The same for many classes, with softmax cross-entropy and a fixed second layer.

    **Arguments:** `sample`: stacked, labels 0..classes-1; `V` [run, m, classes]; `W0` [run, m, D].
    **Returns** `step` [t] and by default `W` [run, t, m, D].
    """
    problem = {**sample._asdict(), "labels": np.asarray(sample.labels, np.int64), "V": V}
    return descend(_many, problem, W0, eta, at, look=look, block=block, progress=progress)
