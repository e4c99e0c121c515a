"""A sentence with a number: statistic, interval, runs, threshold, verdict, and a control that must fail."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from saltus.core.stats import Estimate

Test = Literal["above", "below", "within"]
Threshold = float | tuple[float, float]


def passes(estimate: Estimate, test: Test, threshold: Threshold) -> bool:
    """Whether the whole interval lies on the right side of the threshold."""
    if not math.isfinite(estimate.value):
        return False
    if test == "within":
        assert isinstance(threshold, tuple)
        return bool(threshold[0] <= estimate.low and estimate.high <= threshold[1])
    assert not isinstance(threshold, tuple)
    return bool(estimate.low >= threshold if test == "above" else estimate.high <= threshold)


@dataclass(frozen=True)
class Control:
    """The same test in a setting where it must fail."""

    says: str
    estimate: Estimate
    holds: bool

    def as_json(self) -> dict[str, Any]:
        return {"says": self.says, **_numbers(self.estimate), "holds": self.holds}


@dataclass(frozen=True)
class Claim:
    """One sentence of a paper, or of ours, put to the test.

    It `holds` when the whole interval of the statistic is on the right side of the threshold. It came out
    `as_documented` when that verdict is the expected one and the control failed, as controls must.
    """

    id: str
    says: str
    estimate: Estimate
    test: Test
    threshold: Threshold
    control: Control
    expected: bool = True
    because: str = ""

    @property
    def holds(self) -> bool:
        return passes(self.estimate, self.test, self.threshold)

    @property
    def open(self) -> bool:
        """Whether the statistic is on the right side and its interval is not: more runs would tell."""
        e = self.estimate
        return not self.holds and passes(Estimate(e.value, e.value, e.value, e.n), self.test, self.threshold)

    @property
    def as_documented(self) -> bool:
        return self.holds == self.expected and not self.control.holds

    def __str__(self) -> str:
        sign = {"above": "≥", "below": "≤", "within": "in"}[self.test]
        limit = list(self.threshold) if isinstance(self.threshold, tuple) else f"{self.threshold:.4g}"
        verdict = "holds" if self.holds else "not settled" if self.open else "does not hold"
        return f"{verdict}: {self.says}: {self.estimate}, must be {sign} {limit}"

    def as_json(self) -> dict[str, Any]:
        t = self.threshold
        return {
            "id": self.id,
            "says": self.says,
            **_numbers(self.estimate),
            "test": self.test,
            "threshold": [_number(x) for x in t] if isinstance(t, tuple) else _number(t),
            "holds": self.holds,
            "expected": bool(self.expected),
            "because": self.because,
            "control": self.control.as_json(),
        }


def _numbers(e: Estimate) -> dict[str, Any]:
    return {"value": _number(e.value), "low": _number(e.low), "high": _number(e.high), "n": int(e.n)}


def _number(x: float) -> float | None:
    """JSON has no word for infinity, nor for what is not a number."""
    return float(x) if math.isfinite(x) else None


def _claim(test: Test) -> Callable[..., Claim]:
    def make(
        id: str,
        says: str,
        estimate: Estimate,
        threshold: Threshold,
        *,
        control: tuple[str, Estimate],
        expected: bool = True,
        because: str = "",
    ) -> Claim:
        if not expected and not because:
            raise TypeError(f"claim {id!r} is documented as not holding and must say why")
        words, seen = control
        if not all(isinstance(text, str) for text in (id, says, words, because)):
            raise TypeError(f"claim {id!r}: its id, its sentence and its control's are words")
        held = passes(seen, test, threshold)
        return Claim(id, says, estimate, test, threshold, Control(words, seen, held), expected, because)

    return make


above = _claim("above")
below = _claim("below")
within = _claim("within")
above.__doc__ = "The statistic is at least the threshold; the control, put to the same test, must not be."
below.__doc__ = "The statistic is at most the threshold; the control, put to the same test, must not be."
within.__doc__ = "The statistic lies in [low, high]; the control, put to the same test, must not."
