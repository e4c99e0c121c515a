"""Drawings the SIM studies share: paths of the output in the plane of two concepts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from saltus._lazy import np
from saltus.report import figure

__all__ = ["corner_axes", "plane"]


def plane(
    ax: Any,
    paths: Sequence[Any],
    labels: Sequence[str],
    laws: Sequence[Any],
    steps: Any,
    *,
    every: float = 0.0,
    law_name: str = "theory",
) -> None:
    """Median paths of the learnt shares (g_1, g_2) over runs, the theory dashed on the same axes.

    paths: one [run, step, 2] a setting; laws: one [step, 2] a setting; every: steps between two arrows
    (0: about 12 arrows evenly spread over the steps in which the first path is learnt).
    """
    ax.plot([0, 1], [0, 1], color=figure.MUTED, linewidth=0.8, zorder=0)
    for number, (runs, label, law) in enumerate(zip(paths, labels, laws, strict=True)):
        runs, colour = np.asarray(runs, float), figure.COLOURS[number % len(figure.COLOURS)]
        middle = np.nanmedian(runs, axis=0)
        figure.path(ax, middle, label=label, colour=colour, marks=_marks(steps, middle, every))
        last = number == len(paths) - 1
        figure.theory(ax, law[:, 0], law[:, 1], label=law_name if last else "_", linewidth=1.0)
    ax.plot([1], [1], marker="*", color="black", markersize=9, zorder=5, linestyle="none")
    ax.annotate("x̂", (1, 1), textcoords="offset points", xytext=(5, 4), fontsize=8)


def _marks(steps: Any, middle: Any, every: float) -> list[int]:
    """Looks nearest to equal intervals of training time, while the path still moves."""
    steps = np.asarray(steps, float)
    away = np.linalg.norm(1 - middle, axis=-1) > 0.03
    end = steps[away][-1] if away.any() else steps[-1]
    wanted = np.arange(every or end / 12, end + 1e-9, every or end / 12)
    return [int(np.argmin(np.abs(steps - w))) for w in wanted]


def corner_axes(ax: Any) -> None:
    """Axis names and limits of a plane of learnt shares."""
    ax.set(xlabel="learnt of concept 1, $g_1$", ylabel="learnt of concept 2, $g_2$")
    ax.set_xlim(-0.18, 1.18)
    ax.set_ylim(-0.18, 1.18)
    ax.set_aspect("equal")
