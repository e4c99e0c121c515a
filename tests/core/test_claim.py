from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saltus.core import claim
from saltus.core.stats import Estimate, exact

numbers = st.floats(allow_nan=True, allow_infinity=True)


@given(numbers, numbers, numbers, numbers)
def test_verdicts_follow_the_whole_interval(value: float, a: float, b: float, threshold: float) -> None:
    e = Estimate(value, a, b, 5)
    finite = math.isfinite(value)
    assert claim.passes(e, "above", threshold) == (finite and a >= threshold)
    assert claim.passes(e, "below", threshold) == (finite and b <= threshold)
    assert claim.passes(e, "within", (threshold, 1.0)) == (finite and threshold <= a and b <= 1.0)


def test_expected_and_control() -> None:
    holds, control = exact(1.0), ("elsewhere", exact(0.0))
    assert claim.above("a", "A.", holds, 0.5, control=control).as_documented
    assert not claim.above("a", "A.", exact(0.0), 0.5, control=control).as_documented
    assert not claim.above("a", "A.", holds, 0.5, control=("same", holds)).as_documented
    found_not = claim.above(
        "a", "A.", exact(0.0), 0.5, control=control, expected=False, because="it is not so"
    )
    assert not found_not.holds
    assert found_not.as_documented
    with pytest.raises(TypeError, match="must say why"):
        claim.above("a", "A.", holds, 0.5, control=control, expected=False)


def test_a_claim_that_more_runs_would_settle() -> None:
    for estimate, open_ in (
        (Estimate(1.0, 0.4, 1.6, 5), True),
        (Estimate(1.0, -math.inf, math.inf, 2), True),
        (Estimate(0.4, 0.2, 1.6, 5), False),
        (Estimate(1.0, 0.6, 1.6, 5), False),
        (Estimate(math.nan, 0.6, 1.6, 5), False),
    ):
        assert claim.above("a", "A.", estimate, 0.5, control=("b", exact(0.0))).open == open_


@given(numbers, numbers, numbers, numbers)
def test_json_is_json_whatever_the_numbers(value: float, low: float, high: float, threshold: float) -> None:
    e = Estimate(np.float64(value), np.float64(low), np.float32(0), np.int64(7))  # type: ignore[arg-type]
    for made in (
        claim.above("a", "A.", e, np.float64(threshold), control=("b", e)),
        claim.within("a", "A.", e, (threshold, high), control=("b", e)),
    ):
        row = json.loads(json.dumps(made.as_json(), allow_nan=False))
        # fmt: off
        assert set(row) == {
            "id", "says", "value", "low", "high", "n", "test", "threshold", "holds", "expected", "because",
            "control",
        }
        # fmt: on
        assert row["value"] == (value if math.isfinite(value) else None)
        assert set(row["control"]) == {"says", "value", "low", "high", "n", "holds"}
