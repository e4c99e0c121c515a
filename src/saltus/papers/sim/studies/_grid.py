"""Time grids of the symmetric model's flow: short steps while a concept is learnt, longer ones after it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from saltus._lazy import np

__all__ = ["Grid", "even", "learnt_by", "paced"]

# Once the quick axes are learnt only stability binds the step, to 2.78 / (2 max a) for the classical method.
# At 1 / max a it takes an error of theirs away by a factor of 3 a step.
CALM = 1.0
LONGER = 5.0  # and it is never more than so many times what was asked for


@dataclass(frozen=True)
class Grid:
    """So many `steps`, of length eta at first and of factor * eta from each of the `paces` (n, factor) on."""

    eta: float
    steps: int
    paces: tuple[tuple[int, float], ...] = ()

    def times(self, at: Any) -> Any:
        """Time after the steps `at`."""
        turns = np.asarray([0, *(n for n, _ in self.paces), self.steps])
        lengths = self.eta * np.asarray([1.0, *(f for _, f in self.paces)])
        clock = np.concatenate([[0.0], np.cumsum(np.diff(turns) * lengths)])
        return np.interp(at, turns, clock)


def learnt_by(a: Any, scale: float, extra: float) -> Any:
    """Times by which all but about exp(-extra / 2) of the starts have learnt an axis of rate a.

    It needs ln(1/sigma) / (2 a) with sigma below scale^2, and the chance of a sigma below x falls as sqrt(x)
    or faster.
    """
    return (math.log(1 / scale**2) + extra) / (2 * np.asarray(a))


def even(a: Any, time: float, stride: float) -> Grid:
    """Steps of stride / max(a)."""
    steps = max(1, math.ceil(time * float(np.max(a)) / stride))
    return Grid(time / steps, steps)


def paced(a: Any, time: float, stride: float, scale: float, extra: float) -> Grid:
    """Steps of stride / a_k until axis k is learnt, from the quickest axis on, as far as stability lets them
    grow; for a [d] or [n, d], in which case they suit every row."""
    rows = -np.sort(-np.atleast_2d(np.asarray(a, float)), axis=1)
    top = float(rows.max())
    longest = min(CALM, LONGER * stride) / top
    turns = np.minimum(learnt_by(rows.min(0), scale, extra), time)
    turns[-1] = time
    # Every stretch as a whole number of steps; one that adds nothing is left out.
    spans = np.diff(turns, prepend=0.0)
    wanted = np.minimum(stride / rows.max(0), longest)
    counts = np.ceil(spans / wanted * (1 - 1e-12)).astype(int)
    kept = counts > 0
    counts, lengths = counts[kept], spans[kept] / counts[kept]
    begins = np.cumsum(counts)[:-1]
    paces = tuple((int(n), float(x / lengths[0])) for n, x in zip(begins, lengths[1:], strict=True))
    return Grid(float(lengths[0]), int(counts.sum()), paces)
