"""Time grids: where their steps are, and the flow along them against an adaptive solver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saltus.papers.sim.studies import _flows, _grid
from saltus.papers.sim.symmetric import Hits

rates = st.lists(st.floats(0.01, 10.0), min_size=1, max_size=5)


@given(rates, st.floats(0.05, 1.0), st.floats(1e-4, 0.9), st.floats(0.1, 30.0))
def test_a_paced_grid_covers_the_time_in_steps_that_suit(a, stride, scale, extra):
    time = float(_grid.learnt_by(a, scale, extra).max())
    grid = _grid.paced(a, time, stride, scale, extra)
    at = grid.times(np.arange(grid.steps + 1))
    assert at[0] == 0
    assert at[-1] == pytest.approx(time)
    steps, top = np.diff(at), max(a)
    assert np.all(steps > 0)
    assert np.all(steps <= max(stride, _grid.CALM) / top * (1 + 1e-9))
    # While an axis is being learnt, no step is longer than what it asks for.
    for rate in a:
        until = _grid.learnt_by(rate, scale, extra)
        assert np.all(steps[at[1:] <= until * (1 + 1e-9)] <= stride / rate * (1 + 1e-9))
    assert grid.steps <= _grid.even(a, time, stride).steps + len(a)


def test_one_grid_for_many_rows_suits_each_of_them():
    rows = np.array([[1.0, 2.0, 3.0], [3.0, 0.1, 0.5]])
    grid = _grid.paced(rows, 100.0, 0.2, 0.1, 20.0)
    steps = np.diff(grid.times(np.arange(grid.steps + 1)))
    assert steps.sum() == pytest.approx(100.0)
    alone = _grid.paced(rows[1], 100.0, 0.2, 0.1, 20.0)
    assert alone.steps <= grid.steps <= _grid.even(rows, 100.0, 0.2).steps


def test_a_short_time_needs_one_stretch():
    grid = _grid.paced([0.5, 3.0], 0.5, 0.2, 0.1, 20.0)
    assert grid.paces == ()
    assert grid.times(grid.steps) == pytest.approx(0.5)


def test_the_flow_on_a_paced_grid_is_as_near_to_the_solver_and_a_fraction_of_the_work():
    a = np.array([0.05, 1.0, 9.0])
    target, starts = np.sqrt(3 * a), 0.1 * _flows.unit_starts("uniform", 32, 3, 3, 0)
    time = float(_grid.learnt_by(a, 0.1, 20.0).max())
    grid, even = _grid.paced(a, time, 0.2, 0.1, 20.0), _grid.even(a, time, 0.2)
    assert grid.steps < 0.25 * even.steps
    for one in (grid, even):
        error, other = _flows.against_solver(a, target, starts, one)
        assert error.max() < 1e-4
        assert other.max() > 0.1
    watch = (Hits((0.5,)),)
    times = [_flows.run_flow(a, target, starts, g, watch=watch)["hit"][:, 0] for g in (grid, even)]
    np.testing.assert_allclose(*times, atol=2e-3)
