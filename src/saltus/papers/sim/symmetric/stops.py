"""Where the loop over steps stops on its way: to keep a state, or to change the length of its steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from saltus.core.errors import BadInput

__all__ = ["looks", "stretches"]


def looks(at: Sequence[int] | np.ndarray | None, steps: int) -> np.ndarray:
    """The steps whose state is kept [T]."""
    kept = np.asarray([] if at is None else at, np.int64)
    if kept.ndim != 1 or (kept.size and (np.any(np.diff(kept) <= 0) or kept[0] < 0 or kept[-1] > steps)):
        raise BadInput(f"at must be ascending steps between 0 and {steps}")
    return kept


def stretches(kept: np.ndarray, paces: Sequence[tuple[int, float]], steps: int) -> dict[str, np.ndarray]:
    """Where the loop stops, to keep a state or to change its pace: `at` [T]; and, for the stretch to each of
    them and to the end [T+1], the length of a step and the time before step 0 that it would imply, in
    units of eta."""
    turns, factors = [n for n, _ in paces], [float(f) for _, f in paces]
    ascending = all(x < y for x, y in zip([0, *turns], [*turns, steps], strict=True))
    if not ascending or not all(np.isfinite(f) and f > 0 for f in factors):
        raise BadInput(
            f"paces are (step, factor > 0) with ascending steps between 1 and {steps - 1}; got {paces}"
        )
    stops = np.unique(np.concatenate([kept, np.asarray(turns, np.int64)])).astype(np.int64)
    begins = np.concatenate([[0], stops])
    place = np.searchsorted(turns, begins, side="right")
    factor = np.asarray([1.0, *factors])
    lengths = np.diff(np.asarray([0, *turns, steps]))
    clock = np.concatenate([[0.0], np.cumsum(lengths * factor)[:-1]])
    offset = clock - np.asarray([0, *turns]) * factor
    return {"at": stops, "offset": offset[place], "factor": factor[place]}
