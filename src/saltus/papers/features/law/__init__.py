"""What the theory says: the expected loss in closed form, stages, stationary points, growth rates."""

from saltus.papers.features.law import (
    classifier,
    concentration,
    conditions,
    ddpm,
    newton,
    parts,
    second_stage,
    stage_one,
    stationary,
)

__all__ = [
    "classifier",
    "concentration",
    "conditions",
    "ddpm",
    "newton",
    "parts",
    "second_stage",
    "stage_one",
    "stationary",
]
