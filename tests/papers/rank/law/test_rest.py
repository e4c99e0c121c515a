"""The flow between saddles, where it comes to rest: a draw on which an old Jacobian once never let it."""

from __future__ import annotations

import numpy as np

from saltus._jax import jnp
from saltus.papers.rank.law import greedy
from saltus.papers.rank.law.objective import Problem, Quadratic
from saltus.papers.rank.law.radau import Solver
from saltus.papers.rank.world import Toy


def test_a_loose_flow_comes_to_rest_at_every_saddle() -> None:
    """Toy 6 at the tolerance of the studies: sixteen stages, to rounding at the end of each."""
    found = greedy.run(Toy(run=6).problem(), atol=1e-6)
    assert found.end == "no winner"
    assert len(found.stages) == 17
    assert max(s.gap for s in found.stages) < 1e-8
    assert found.stages[-1].loss < 1e-12


def test_the_tolerance_changes_no_stage() -> None:
    A = np.asarray([[1, 0.8, 0.8], [0.8, 1, 0.4], [0.8, 0.4, 1]])
    problem = Problem(
        Quadratic(), (A, A @ [-0.5, 1, 0.9]), np.asarray([1, 0.9, 1.1]), np.asarray([0.5, -0.3, 0.2])
    )
    fine, loose = (greedy.run(problem, atol=atol) for atol in (1e-8, 1e-5))
    np.testing.assert_allclose(loose.stacked("T"), fine.stacked("T"), rtol=1e-9)
    np.testing.assert_allclose(loose.stacked("m"), fine.stacked("m"), atol=1e-10)
    np.testing.assert_allclose(loose.stacked("C"), fine.stacked("C"), atol=1e-3)


def test_a_path_without_a_stop_rule_ends_at_rest_and_does_not_hang() -> None:
    solver = Solver(lambda y, args: -y, lambda y, args: -jnp.eye(1))
    path = solver(np.ones(1), (), np.inf, atol=1e-6)
    assert path.status == "stuck"
    assert path.counts["steps"] < 1000
    assert abs(path.y[-1]) < 1e-5
