"""When to look: steps (or times) chosen before the run starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from saltus.core.errors import BadInput

__all__ = ["At", "all", "every", "given", "linear", "log"]


@dataclass(frozen=True)
class At:
    """Moments of a run; made by `log`, `linear`, `every`, `given` and `all`."""

    rule: str
    number: float = 0
    moments: tuple[float, ...] = ()

    def steps(self, total: int) -> np.ndarray:
        """Steps to look at, sorted, in 0..total; step n is the state after n updates."""
        if self.rule == "all":
            return np.arange(total + 1)
        if self.rule == "every":
            if self.number != int(self.number):
                raise BadInput(f"at.every({self.number:g}) of a descent in steps needs a whole number")
            # The end belongs to every record.
            return np.unique(np.append(np.arange(0, total + 1, int(self.number)), total))
        if self.rule == "given":
            return self._given_steps(total)
        n = int(self.number)
        if self.rule == "log":
            spaced = np.geomspace(1, total, max(n - 1, 1)) if n > 1 else np.array([total])
        else:
            spaced = np.linspace(0, total, n)
        return np.unique(np.concatenate([[0], np.round(spaced), [total]]).astype(np.int64))

    def times(self, until: float) -> np.ndarray:
        """Times to look at, sorted, in 0..until."""
        if self.rule == "all":
            raise BadInput("at.all means every step, and a flow has none; use at.linear(n) or at.log(n)")
        if self.rule == "every":
            return np.unique(np.append(np.arange(0, until, self.number), until))
        if self.rule == "given":
            moments = np.unique(np.asarray(self.moments, float))
            if moments[0] < 0 or moments[-1] > until:
                raise BadInput(
                    f"at.given: times must lie in 0..{until:g}; got {moments[0]:g}..{moments[-1]:g}"
                )
            return moments
        n = int(self.number)
        if self.rule == "log":
            # Four decades: the early growth of a small start is where log spacing earns its keep.
            return np.concatenate([[0], np.geomspace(until * 1e-4, until, n - 1)])
        return np.linspace(0, until, n)

    def _given_steps(self, total: int) -> np.ndarray:
        moments = np.asarray(self.moments)
        if np.any(moments != np.round(moments)):
            raise BadInput("at.given: a descent in steps is looked at after whole numbers of steps")
        steps = moments.astype(np.int64)
        steps = np.where(steps < 0, total + 1 + steps, steps)  # -1 is the end
        if steps.min() < 0 or steps.max() > total:
            raise BadInput(
                f"at.given: steps must lie in 0..{total} (or -1 for the end); got {list(self.moments)}"
            )
        return np.unique(steps)


def log(n: int = 64) -> At:
    """The start, the end and log-spaced moments between: at most `n`."""
    return At("log", _count(n))


def linear(n: int = 64) -> At:
    """`n` evenly spaced moments, start and end among them."""
    return At("linear", _count(n))


def every(interval: float) -> At:
    """The start, every `interval` steps (or units of time), and the end."""
    if not 0 < interval < float("inf") or (isinstance(interval, int) and interval < 1):
        raise BadInput(f"at.every needs a positive interval; got {interval!r}")
    return At("every", interval)


def given(moments: Sequence[float]) -> At:
    """These steps (or times); -1 is the last step."""
    listed = tuple(float(m) for m in moments)
    if not listed or not np.isfinite(listed).all():
        raise BadInput("at.given needs at least one moment, all finite")
    return At("given", moments=listed)


#: Every step.
all = At("all")


def _count(n: int) -> int:
    if not isinstance(n, int | np.integer) or n < 2:
        raise BadInput(f"moments to look at: a whole number >= 2 is needed; got {n!r}")
    return int(n)
