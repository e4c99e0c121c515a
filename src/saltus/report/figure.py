"""The few drawings many studies share: sheets, bands over runs, theory on the same axes, paths."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.report.style import COLOURS, MUTED, THEORY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "MUTED", "THEORY", "band", "finding", "heat", "path", "sheet", "theory"]


def sheet(
    rows: int = 1, columns: int = 1, *, width: float = 3.4, height: float = 2.9, **options: Any
) -> tuple[Figure, Any]:
    """A figure without a window behind it, and its axes as `plt.subplots` gives them (always 2-D)."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return fig, fig.subplots(rows, columns, squeeze=False, **options)


def finding(fig: Figure, text: str, note: str = "") -> None:
    """The title says what was found; the note, in small print, under which settings."""
    fig.suptitle(text, x=0.01, ha="left", fontsize=10.5, fontweight="bold")
    if note:
        fig.supxlabel(note, x=0.01, ha="left", fontsize=7, color=MUTED)


def band(
    ax: Axes,
    x: Any,
    runs: Any,
    *,
    label: str = "",
    colour: str | None = None,
    level: float = 0.8,
    **line: Any,
) -> None:
    """Median over runs as a line, the central `level` of them as a band.

    **Arguments:** `x[step]`, `runs[run, step]`.
    """
    runs = np.asarray(runs, float)
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):  # all runs may have diverged
        low, mid, high = np.nanquantile(runs, [(1 - level) / 2, 0.5, (1 + level) / 2], axis=0)
    (drawn,) = ax.plot(x, mid, color=colour, label=label, **line)
    ax.fill_between(x, low, high, color=drawn.get_color(), alpha=0.18, linewidth=0)


def theory(ax: Axes, x: Any, y: Any, *, label: str = "theory", **line: Any) -> None:
    """Theory is always black and dashed."""
    ax.plot(x, y, **{"color": THEORY, "linestyle": (0, (4, 2)), "linewidth": 1.1, "label": label, **line})


def path(
    ax: Axes,
    points: Any,
    *,
    label: str = "",
    colour: str | None = None,
    marks: Sequence[int] | int = 12,
    **line: Any,
) -> None:
    """A path in the plane with arrow heads at equal intervals of training time.

    **Arguments:** `points[step, 2]`; `marks`: which steps carry an arrow, or how many.
    """
    points = np.asarray(points, float)
    (drawn,) = ax.plot(points[:, 0], points[:, 1], color=colour, label=label, **line)
    n = len(points)
    steps = np.linspace(1, n - 2, marks).astype(int) if isinstance(marks, int) else np.asarray(marks)
    known = points[np.isfinite(points).all(axis=1)]
    span = (np.ptp(known, axis=0).max() if len(known) else 0.0) or 1.0
    for i in np.unique(steps[(steps >= 1) & (steps < n - 1)]):
        move = points[i + 1] - points[i - 1]
        size = np.hypot(*move)
        if not np.isfinite(size) or size < 1e-4 * span:
            continue
        ax.annotate(
            "",
            xy=points[i] + 1e-3 * span * move / size,
            xytext=points[i],
            arrowprops=dict(arrowstyle="-|>", color=drawn.get_color(), mutation_scale=8, linewidth=0),
        )


def heat(ax: Axes, x: Any, y: Any, z: Any, *, label: str, **options: Any) -> Any:
    """A map of `z[y, x]` with its colour bar."""
    shown = ax.pcolormesh(x, y, np.asarray(z, float), shading="nearest", **{"cmap": "viridis", **options})
    ax.grid(False)
    assert ax.figure is not None
    ax.figure.colorbar(shown, ax=ax, label=label)
    return shown
