"""The flow in logarithms against closed forms, reference tables and the flow in u and v."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from papers.rank.toys import U0, V0, quadratic, random_quadratic
from saltus.core.errors import BadInput
from saltus.papers.rank.law import direct, flow, greedy, riccati
from saltus.papers.rank.world import Toy

# (T_k(alpha) - T_k) L of the quadratic in which a coordinate comes back, by -log10(alpha).
LATE = {
    4: (0.357789, 2.515643, 5.038480, 28.554444),
    8: (0.304252, 3.487256, 5.044542, 28.109044),
    16: (0.292717, 4.091029, 4.856595, 27.590302),
    32: (0.291760, 4.141865, 4.809564, 27.456108),
    64: (0.29174842, 4.14217247, 4.80813056, 27.451666),
    300: (0.291748, 4.142172, 4.808129, 27.45166),
    3000: (0.291748, 4.142172, 4.808129, 27.45166),
}


@pytest.fixture(scope="module")
def stages() -> greedy.Staircase:
    return greedy.run(quadratic())


@pytest.mark.parametrize("power", LATE)
def test_stage_times_of_the_table(power: int, stages: greedy.Staircase) -> None:
    L = flow.log_inverse(power)
    path = flow.simulate(quadratic(), L, 52.0, atol=1e-7)
    assert path.path.status == "ended"
    late = (path.half_rises(stages.stages) - stages.stacked("T")[1:]) * L
    np.testing.assert_allclose(late, LATE[power], rtol=1e-5, atol=1e-4)


def test_at_a_large_start_the_last_stage_is_further_off(stages: greedy.Staircase) -> None:
    L = flow.log_inverse(2)
    late = (flow.simulate(quadratic(), L, 60.0).half_rises(stages.stages) - stages.stacked("T")[1:]) * L
    np.testing.assert_allclose(late, [0.473184, 2.034541, 4.459955, 28.639232], rtol=1e-4)


# One coordinate, g = 0.7 - 1.3 m, from alpha (1, 0.5): m at rescaled times 1.4 and 1.6, and the half-rise.
ALONE = {
    1: (0.2642815885701, 0.3486458783713, 1.411405147349),
    2: (0.2503596574499, 0.4088721883163, 1.421779194460),
    4: (0.2258961198677, 0.4873122619343, 1.425184313551),
    8: (0.1794865829087, 0.5323349718594, 1.426877871511),
    16: (0.1039779432425, 0.5383870435239, 1.427724650041),
    32: (0.02798611883383, 0.5384615276923, 1.428148039306),
}


@pytest.mark.parametrize("power", ALONE)
def test_one_coordinate_is_a_riccati_equation(power: int) -> None:
    L = flow.log_inverse(power)
    early, later, half = ALONE[power]
    said = riccati.product([1.4, 1.6], 0.7, 1.3, 1.0, 0.5, L)
    np.testing.assert_allclose(said, [early, later], rtol=1e-11)
    assert riccati.half_rise(0.7, 1.3, 1.0, 0.5, L) == pytest.approx(half, rel=1e-12)
    one = quadratic(1.3 * np.eye(3), [0.7, -0.7, 0.2], [1.0, 1.0, 1.0], [0.5, 0.5, 0.5])
    path = flow.simulate(one, L, 1.7, atol=1e-9)
    np.testing.assert_allclose(path.products([1.4, 1.6])[:, 0], [early, later], rtol=1e-7)
    assert path.passes(0, 0.35 / 1.3) == pytest.approx(half, rel=1e-8)
    other = riccati.product([1.4, 1.6], -0.7, 1.3, 1.0, 0.5, L)
    np.testing.assert_allclose(path.products([1.4, 1.6])[:, 1], other, rtol=1e-7)


def test_one_coordinate_that_is_pulled_down() -> None:
    said = riccati.product([1.4, 1.6], -0.7, 1.3, 1.0, 0.5, flow.log_inverse(8))
    np.testing.assert_allclose(said, [-0.0283399471, -0.487922654], rtol=1e-8)
    half = riccati.half_rise(-0.7, 1.3, 1.0, 0.5, flow.log_inverse(8))
    assert riccati.product(half, -0.7, 1.3, 1.0, 0.5, flow.log_inverse(8)) == pytest.approx(
        -0.35 / 1.3, rel=1e-10
    )


# From smaller starts u and v lose u^2 - v^2 ~ alpha^2 to rounding while a coordinate waits.
@given(st.integers(0, 10_000), st.floats(1.0, 5.0))
@settings(max_examples=10)
def test_both_forms_agree_where_nothing_leaves(seed: int, power: float) -> None:
    problem = random_quadratic(seed)
    found = greedy.run(problem)
    if any(s.left for s in found.stages):
        return
    times = np.linspace(0.0, min(1.2 * found.stages[-1].T, 30.0), 25)[1:]
    L = flow.log_inverse(power)
    exact = flow.simulate(problem, L, times[-1], atol=1e-8).products(times)
    seen = direct.simulate(problem, L, times, rtol=1e-12)
    assert seen.finished
    np.testing.assert_allclose(seen.products, exact, rtol=0, atol=1e-6)
    assert seen.drift.max() < 1e-7


def test_the_flow_in_u_and_v_cannot_bring_a_coordinate_back() -> None:
    times = np.asarray([60.0])
    L = flow.log_inverse(16)
    lost = direct.simulate(quadratic(), L, times, rtol=1e-10).products[0]
    np.testing.assert_allclose(lost, [0, 0.714286, 0.614286], atol=1e-3)
    np.testing.assert_allclose(flow.simulate(quadratic(), L, 60.0).products(60.0), [-0.5, 1, 0.9], atol=1e-6)


def test_equal_weights_lock_their_sign() -> None:
    """|u| = |v|: kappa is -inf, and what left stays at 0."""
    locked = quadratic(v0=np.asarray([1.0, -0.3, 0.2]))
    path = flow.simulate(locked, flow.log_inverse(100), 60.0)
    np.testing.assert_allclose(path.products(60.0), [0, 0.714286, 0.614286], atol=1e-5)


@given(st.integers(0, 10_000), st.floats(0.5, 400.0))
@settings(max_examples=10)
def test_the_loss_never_rises_and_what_is_conserved_is(seed: int, power: float) -> None:
    problem = random_quadratic(seed)
    L = flow.log_inverse(power)
    path = flow.simulate(problem, L, 8.0)
    times = np.linspace(0, 8.0, 200)
    assert (np.diff(path.losses(times)) < 1e-5).all()
    P, Q = path.logs(times)
    np.testing.assert_allclose(P + Q, np.broadcast_to(problem.kappa - 2 * L, P.shape), rtol=1e-12)
    if power < 100:
        u, v = path.weights(times)
        np.testing.assert_allclose(u * v, path.products(times), rtol=1e-9, atol=1e-300)


def test_at_the_start_the_weights_are_the_start() -> None:
    L = flow.log_inverse(3)
    path = flow.simulate(quadratic(), L, 1.0)
    u, v = path.weights(0.0)
    np.testing.assert_allclose(u, 1e-3 * U0, rtol=1e-12)
    np.testing.assert_allclose(v, 1e-3 * V0, rtol=1e-10)
    np.testing.assert_allclose(path.powers(0.0), 1 - np.log(abs(U0 + V0)) / L, rtol=1e-12)
    np.testing.assert_allclose(path.size(0.0), np.log(1e-3 * U0), atol=1e-12)


def test_powers_are_those_of_algorithm_1(stages: greedy.Staircase) -> None:
    path = flow.simulate(quadratic(), flow.log_inverse(3000), 2.0)
    np.testing.assert_allclose(path.powers(25 / 18), stages.stages[2].b, atol=2e-3)


def test_a_flow_goes_on_from_where_another_was() -> None:
    L = flow.log_inverse(16)
    whole = flow.simulate(quadratic(), L, 2.0, atol=1e-8)
    P, Q = whole.logs(1.0)
    rest = flow.onward(quadratic(), P, P + Q, 1.0 * L, L, atol=1e-8)
    np.testing.assert_allclose(rest.products(1.0), whole.products(2.0), atol=1e-6)


def test_impossible_starts_are_refused() -> None:
    for wrong in (dict(u0=[1.0, 1.0], v0=V0), dict(u0=U0, v0=-U0), dict(u0=[np.nan, 1, 1], v0=V0)):
        with pytest.raises(BadInput):
            quadratic(**wrong)
    for L, until in ((0.0, 1.0), (1.0, 0.0), (-1.0, 1.0)):
        with pytest.raises(BadInput):
            flow.simulate(quadratic(), L, until)


def _toy_a(powers: Any) -> dict[float, Any]:
    problem = Toy().problem()
    found = greedy.run(problem, stages=12)
    T = found.stacked("T")[1:]
    out = {}
    for power in powers:
        path = flow.simulate(problem, flow.log_inverse(power), 13.5, atol=1e-6)
        out[power] = np.abs(path.half_rises(found.stages) - T)
    return out


@pytest.mark.slow
def test_toy_a_from_many_starts() -> None:
    table = {
        1: (2.907, 1.665), 2: (1.493, 0.943), 4: (0.765, 0.4806), 8: (0.3885, 0.2432), 16: (0.1942, 0.1218),
        32: (0.0971, 0.0609), 64: (0.0486, 0.0305), 128: (0.0243, 0.0152), 300: (0.01036, 0.0065),
        1000: (0.00311, 0.00195),
    }  # fmt: skip
    for power, late in _toy_a(table).items():
        most, mean = table[power]
        assert late.max() == pytest.approx(most, rel=2e-3)
        assert late.mean() == pytest.approx(mean, rel=2e-3)


@pytest.mark.slow
def test_toy_a_in_u_and_v() -> None:
    problem, times = Toy().problem(), np.linspace(0.2, 8.0, 40)
    for power in (2, 8, 32):
        L = flow.log_inverse(power)
        exact = flow.simulate(problem, L, 8.0, atol=1e-8).products(times)
        np.testing.assert_allclose(direct.simulate(problem, L, times).products, exact, atol=1e-5)
