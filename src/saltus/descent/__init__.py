"""How a model moves: steps, exact gradient flow, and ensembles of either with probes inside the loop.

runs = train(model, world, sgd(lr=0.1, batch=128, epochs=40), seeds=range(32), watch=[...])
"""

from __future__ import annotations

from saltus.descent import at, rate, stop
from saltus.descent._batches import order
from saltus.descent._ensemble import keys, run_many
from saltus.descent._flow import Flow, flow
from saltus.descent._how import (
    Adam,
    AdamW,
    Momentum,
    Sgd,
    Steps,
    Using,
    adam,
    adamw,
    gd,
    momentum,
    sgd,
    using,
)
from saltus.descent._train import train
from saltus.descent._world import Points, cross_entropy, half_squared_error

__all__ = [
    "Adam",
    "AdamW",
    "Flow",
    "Momentum",
    "Points",
    "Sgd",
    "Steps",
    "Using",
    "adam",
    "adamw",
    "at",
    "cross_entropy",
    "flow",
    "gd",
    "half_squared_error",
    "keys",
    "momentum",
    "order",
    "rate",
    "run_many",
    "sgd",
    "stop",
    "train",
    "using",
]
