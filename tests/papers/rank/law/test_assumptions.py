"""Assumptions 4.3-4.5 where they are known to hold, and where they are known to fail."""

from __future__ import annotations

import numpy as np
import pytest

from papers.rank.toys import quadratic
from saltus.papers.rank.law import assumptions, greedy


@pytest.fixture(scope="module")
def found() -> greedy.Staircase:
    return greedy.run(quadratic())


def test_the_hand_checked_problem_is_nondegenerate(found: greedy.Staircase) -> None:
    seen = assumptions.nondegenerate(quadratic(), found)
    assert seen.holds
    np.testing.assert_allclose(
        seen.gaps, [1.041667 / 0.980392 - 1, 1.400560 / 0.408497 - 1, np.inf, np.inf], rtol=1e-4
    )
    assert seen.unbalanced == pytest.approx(0.5)
    assert seen.leavers == pytest.approx(2 / 46.666667, rel=1e-6)
    np.testing.assert_allclose(assumptions.strict(found), [2.04, 0.2017795, 0.7892975, 0.0633435], rtol=1e-5)


def test_ties_and_balanced_starts_are_not() -> None:
    alike = quadratic(np.eye(3), [1.0, 1.0, 0.5])
    assert not assumptions.nondegenerate(alike, greedy.run(alike)).holds
    balanced = quadratic(v0=np.asarray([1.0, -0.3, 0.2]))
    never = greedy.run(balanced)
    assert not assumptions.nondegenerate(balanced, never).holds
    # Its u - v is 0 for ever, so what would have to grow in that direction is infinitely late.
    assert (never.stages[-2].winner, never.stages[-2].sign, never.stages[-1].C) == (0, -1, np.inf)


def test_flat_saddles_are_not_strict() -> None:
    assert abs(assumptions.strict(greedy.run(quadratic(np.ones((3, 3)), np.ones(3))))[-1]) < 1e-9


def test_the_rate_of_return_is_half_the_smallest_eigenvalue(found: greedy.Staircase) -> None:
    for stage in found.stages[1:]:
        rate = assumptions.relaxation(quadratic(), stage)
        assert rate == pytest.approx(stage.least / 2, rel=1e-2)
    assert found.stages[1].least / 2 == pytest.approx(2 * 1.02)
    assert np.isnan(assumptions.relaxation(quadratic(), found.stages[0]))


@pytest.mark.parametrize("size", [0.01, 0.05, 0.2])
def test_noisy_transitions_end_at_the_same_saddle(size: float, found: greedy.Staircase) -> None:
    rng = np.random.default_rng(3)
    for k in range(4):
        noise = rng.standard_normal(3)
        noise *= size / np.linalg.norm(noise)
        assert assumptions.restarted(quadratic(), found, k, noise) < 1e-4


def test_with_the_wrong_sign_they_cannot(found: greedy.Staircase) -> None:
    noise = np.full(3, 0.01)
    for k in range(4):
        assert assumptions.restarted(quadratic(), found, k, noise, flip=True) > 0.1
