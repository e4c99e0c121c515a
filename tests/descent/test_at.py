"""Moments to look at: sorted, unique, inside the run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saltus.core.errors import BadInput
from saltus.descent import at

RULES = st.one_of(
    st.builds(at.log, st.integers(2, 500)),
    st.builds(at.linear, st.integers(2, 500)),
    st.builds(at.every, st.integers(1, 500)),
    st.just(at.all),
)


@given(RULES, st.integers(1, 10_000))
def test_steps_are_sorted_unique_and_hold_both_ends(rule, total):
    steps = rule.steps(total)
    assert (np.diff(steps) > 0).all()
    assert steps[0] == 0
    assert steps[-1] == total
    if rule.rule in ("log", "linear"):
        assert len(steps) <= rule.number + (rule.rule == "log")


def test_the_four_helpers():
    assert at.every(4).steps(10).tolist() == [0, 4, 8, 10]
    assert at.linear(3).steps(10).tolist() == [0, 5, 10]
    assert at.log(4).steps(100).tolist() == [0, 1, 10, 100]
    assert at.given([5, 0, -1, -2]).steps(10).tolist() == [0, 5, 9, 10]
    assert at.given([0.5, 0]).times(1.0).tolist() == [0.0, 0.5]
    assert at.every(0.5).times(1.2).tolist() == [0.0, 0.5, 1.0, 1.2]
    np.testing.assert_allclose(
        at.log(5).times(10.0), [0, 1e-3, 10 ** (-5 / 3), 10 ** (-1 / 3), 10], rtol=1e-12
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: at.log(1),
        lambda: at.linear(2.5),
        lambda: at.every(0),
        lambda: at.every(0.5).steps(3),
        lambda: at.given([]),
        lambda: at.given([float("nan")]),
        lambda: at.given([0.5]).steps(3),
        lambda: at.given([-5]).steps(3),
        lambda: at.given([-1.0]).times(3.0),
    ],
)
def test_nonsense_is_refused(make):
    with pytest.raises(BadInput):
        make()
