"""The flow between saddles, where it comes to rest: a draw on which an old Jacobian once never let it."""

from __future__ import annotations

import numpy as np
import pytest

from saltus._jax import jnp
from saltus.papers.rank.law import flow, greedy
from saltus.papers.rank.law.objective import Problem, Quadratic
from saltus.papers.rank.law.radau import Solver
from saltus.papers.rank.studies import _toys
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


@pytest.mark.slow
@pytest.mark.parametrize("run", range(4))
def test_what_the_tolerance_of_the_studies_costs(run: int) -> None:
    """Far below what any claim can see: 1e-3 of a stage time, 0.01 in C_k, 0.02 in a product."""
    atol, problem = _toys.Toys().atol, Toy(run=run).problem()
    fine, loose = (greedy.run(problem, atol=x) for x in (1e-8, atol))
    last = _toys.last_stage(fine, 0.01)
    np.testing.assert_allclose(loose.stacked("T"), fine.stacked("T"), rtol=1e-12)
    np.testing.assert_allclose(loose.stacked("m"), fine.stacked("m"), atol=1e-9)
    np.testing.assert_allclose(loose.stacked("C")[: last + 1], fine.stacked("C")[: last + 1], atol=5e-3)
    L, until = flow.log_inverse(32), 1.15 * fine.stages[last].T
    times = np.linspace(0.0, until, 2000)
    paths = [flow.simulate(problem, L, until, atol=x) for x in (1e-8, atol)]
    exact, seen = (path.products(times) for path in paths)
    np.testing.assert_allclose(seen, exact, atol=1e-3)
    exact, seen = (path.half_rises(fine.stages[: last + 1]) * L for path in paths)
    np.testing.assert_allclose(seen, exact, atol=1e-2)


def test_a_path_without_a_stop_rule_ends_at_rest_and_does_not_hang() -> None:
    solver = Solver(lambda y, args: -y, lambda y, args: -jnp.eye(1))
    path = solver(np.ones(1), (), np.inf, atol=1e-6)
    assert path.status == "stuck"
    assert path.counts["steps"] < 1000
    assert abs(path.y[-1]) < 1e-5
