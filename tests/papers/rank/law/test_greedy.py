"""Algorithm 1 against hand-checked stages, nonnegative least squares and the reference toy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from papers.rank.toys import U0, V0, A, R, quadratic, random_quadratic
from saltus._jax import jnp
from saltus.papers.rank.law import greedy, orbit, riccati
from saltus.papers.rank.law.objective import Objective, Problem
from saltus.papers.rank.world import Toy


@pytest.fixture(scope="module")
def first() -> greedy.Staircase:
    """A coordinate leaves and comes back with the other sign."""
    return greedy.run(quadratic())


def test_the_hand_checked_staircase(first: greedy.Staircase) -> None:
    assert first.end == "no winner"
    np.testing.assert_allclose(
        first.stacked("T"), [0, 50 / 51, 25 / 18, 50 / 27, 48.518518518518], rtol=1e-11
    )
    np.testing.assert_allclose(
        first.stacked("C"), [0, 0.2917484178, 4.14217251, 4.80812910, 27.451660], rtol=1e-6
    )
    saddles = [[0, 0, 0], [1.02, 0, 0], [0.7, 0.4, 0], [0, 5 / 7, 0.6142857142857], [-0.5, 1, 0.9]]
    np.testing.assert_allclose(first.stacked("m"), saddles, atol=1e-12)
    b = [[1, 1, 1], [0, 1 / 17, 2 / 17], [0, 0, 1 / 12], [0, 0, 0], [2, 0, 0]]
    np.testing.assert_allclose(first.stacked("b"), b, atol=1e-12)
    np.testing.assert_allclose(
        first.stacked("loss"), [0, -0.5202, -0.549, -0.6192857142857, -0.63], atol=1e-12
    )
    np.testing.assert_allclose(
        first.stacked("least")[1:], [4.08, 0.403559, 1.578595, 0.126687], rtol=0, atol=5e-7
    )
    assert [(s.winner, s.sign) for s in first.stages[:-1]] == [(0, 1), (1, 1), (2, 1), (0, -1)]
    assert [s.left for s in first.stages] == [(), (), (), (0,), ()]
    np.testing.assert_allclose(
        [s.wait for s in first.stages[:-1]], [1 / 1.02, 0.408497, 0.462963, 46.6667], rtol=1e-5
    )
    np.testing.assert_allclose([s.runner_up for s in first.stages[:2]], [1.041667, 1.400560], rtol=1e-5)
    assert max(s.residual for s in first.stages) < 1e-12
    assert max(s.gap for s in first.stages) < 1e-8


def test_the_limit_is_constant_between_stages(first: greedy.Staircase) -> None:
    np.testing.assert_array_equal(first.at([0.0, 0.9, 1.0, 1e9]), first.stacked("m")[[0, 0, 1, 4]])
    late = first.at([0.99, 1.0], L=10.0)  # T_1 + C_1 / 10 = 1.0096
    np.testing.assert_array_equal(late, first.stacked("m")[[0, 0]])
    np.testing.assert_array_equal(first.at([1.02], L=10.0), first.stacked("m")[[1]])


def test_the_printed_base_case_ties_everything_at_once() -> None:
    printed = greedy.run(quadratic(), printed_base=True, stages=0).stages[0]
    assert printed.wait == 0.0
    assert len(printed.tied) == 2  # with b = 1 it is 1 / |g|


@given(st.floats(0.05, 20.0), st.integers(0, 200))
@settings(max_examples=12)
def test_a_loss_times_c_divides_all_times_by_c(factor: float, seed: int) -> None:
    one, other = random_quadratic(seed), random_quadratic(seed)
    other = quadratic(other.data[0] * factor, other.data[1] * factor, other.u0, other.v0)
    plain, scaled = greedy.run(one), greedy.run(other)
    assert [s.winner for s in plain.stages] == [s.winner for s in scaled.stages]
    np.testing.assert_allclose(scaled.stacked("T") * factor, plain.stacked("T"), rtol=1e-8)
    np.testing.assert_allclose(scaled.stacked("m"), plain.stacked("m"), atol=1e-8)
    np.testing.assert_allclose(scaled.stacked("C") * factor, plain.stacked("C"), rtol=1e-4, atol=1e-4)


@given(st.permutations([0, 1, 2]), st.integers(0, 200))
@settings(max_examples=12)
def test_the_order_of_coordinates_does_not_matter(order: list[int], seed: int) -> None:
    one = random_quadratic(seed)
    matrix, r = one.data
    turned = quadratic(matrix[np.ix_(order, order)], r[order], one.u0[order], one.v0[order])
    plain, other = greedy.run(one), greedy.run(turned)
    np.testing.assert_allclose(other.stacked("T"), plain.stacked("T"), rtol=1e-8)
    np.testing.assert_allclose(other.stacked("m"), plain.stacked("m")[:, order], atol=1e-8)


@given(st.integers(0, 10_000))
@settings(max_examples=25)
def test_part_b_is_nonnegative_least_squares_for_linear_networks(seed: int) -> None:
    problem = random_quadratic(seed)
    found = greedy.run(problem)
    matrix, r = problem.data
    values, vectors = np.linalg.eigh(matrix)
    root = vectors * np.sqrt(values) @ vectors.T
    for before, after in zip(found.stages[:-1], found.stages[1:], strict=True):
        signs = np.sign(before.m)
        signs[before.winner] = before.sign
        on = np.flatnonzero(signs)
        best, _ = nnls(root[:, on] * signs[on], np.linalg.solve(root, r))
        want = np.zeros(3)
        want[on] = signs[on] * best
        np.testing.assert_allclose(after.m, want, atol=1e-8)
    # The last saddle is the minimum of all: here the loss is strictly convex.
    np.testing.assert_allclose(found.stages[-1].m, np.linalg.solve(matrix, r), atol=1e-8)
    T, loss = found.stacked("T"), found.stacked("loss")
    assert (np.diff(T) >= 0).all()
    assert (np.diff(loss) <= 1e-12).all()


def test_uncoupled_coordinates_have_a_closed_form() -> None:
    a, r = np.asarray([1.3, 0.8, 2.0]), np.asarray([0.7, -0.4, 0.25])
    found = greedy.run(quadratic(np.diag(a), r), atol=1e-8)
    for stage, i in zip(found.stages[1:], [0, 1, 2], strict=True):
        np.testing.assert_allclose((stage.T, stage.C), riccati.stage(r[i], a[i], U0[i], V0[i]), rtol=1e-6)
        assert stage.m[i] == pytest.approx(r[i] / a[i], rel=1e-12)


def test_the_end_point_does_not_depend_on_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = greedy.run(quadratic(), stages=3)
    for seed in (0.1, 1e-2, 1e-4):
        monkeypatch.setattr(greedy, "SEED", seed)
        np.testing.assert_allclose(
            greedy.run(quadratic(), stages=3).stacked("m"), plain.stacked("m"), atol=1e-10
        )


def test_ties_rise_together_or_one_at_a_time() -> None:
    alike = quadratic(np.eye(3), [1.0, 1.0, 0.5])
    both = greedy.run(alike)
    assert both.stages[0].tied == (1,)
    np.testing.assert_allclose(both.stacked("m"), [[0, 0, 0], [1, 1, 0], [1, 1, 0.5]], atol=1e-9)
    one = greedy.run(alike, ties="lowest")
    np.testing.assert_allclose(one.stacked("m"), [[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 0.5]], atol=1e-9)
    np.testing.assert_allclose(one.stacked("T"), [0, 1, 1, 2], atol=1e-9)


def test_what_only_counts_as_a_sum_is_shared_by_amplitude() -> None:
    flat = greedy.run(quadratic(np.ones((3, 3)), np.ones(3)))
    assert flat.end == "no winner"
    m = flat.stages[-1].m
    amplitude = (U0 + V0) ** 2
    np.testing.assert_allclose(m, amplitude / amplitude.sum(), rtol=1e-5)
    assert abs(flat.stages[-1].least) < 1e-9


def test_stages_and_time_can_be_limited(first: greedy.Staircase) -> None:
    assert [s.k for s in greedy.run(quadratic(), stages=2).stages] == [0, 1, 2]
    timed = greedy.run(quadratic(), until=1.5)
    assert timed.end == "time"
    assert len(timed.stages) == 3
    assert first.least_log == 0.0


def test_a_network_that_cannot_learn_has_no_stage() -> None:
    still = greedy.run(quadratic(np.eye(3), np.zeros(3)))
    assert still.end == "no winner"
    assert len(still.stages) == 1


@dataclass(frozen=True)
class Tail(Objective):
    """log(1 + exp(-r m)): a loss with an exponential tail, whose weights grow for ever."""

    def value(self, m: Any, data: Any) -> Any:
        return jnp.logaddexp(0.0, -data @ m)


def test_losses_with_exponential_tails_do_not_settle() -> None:
    problem = Problem(Tail(), jnp.asarray([1.0, 0.5]), np.ones(2), np.zeros(2) + 0.1)
    slow = orbit.follow(
        problem.objective, problem.data, np.asarray([1e-6, 0.0]), np.asarray([True, False]),
        np.asarray([1.0, 0.0]), np.asarray([0.5, 0.25]), max_steps=120,
    )  # fmt: skip
    assert not slow.settled or abs(slow.end[0]) > 10


# Stages of Toy A: T_k, C_k, loss, winner with its sign, runner-up / Delta - 1, smallest eigenvalue.
TOY_A = [
    (0, 0, 2.355502499548, 10, -1, 0.151, None),
    (2.3825944397, 6.176880, 1.816051987569, 11, 1, 1.010, 1.6788),
    (2.7428103376, 2.511964, 1.366344918847, 13, 1, 0.503, 1.4584),
    (3.1065936210, 3.444618, 1.079070310979, 2, -1, 1.224, 1.2876),
    (3.3010323267, 6.604040, 1.017490120792, 5, 1, 0.507, 1.2643),
    (3.5119612134, 4.040671, 0.762186475002, 15, -1, 1.424, 1.3046),
    (3.6050313920, 5.785906, 0.482540157113, 0, -1, 1.574, 1.1971),
    (3.7268847739, 6.461315, 0.321587899360, 7, 1, 1.412, 1.1144),
    (3.9049486565, 4.415250, 0.136352273374, 1, -1, 3.027, 1.0946),
    (4.1343653978, 7.158042, 0.052232613465, 3, 1, 5.750, 1.0218),
    (4.6426557278, 2.058283, 0.033211003846, 6, -1, 1.786, 0.9642),
    (6.8345402434, -2.524223, 0.022399956418, 4, -1, 0.397, 0.8301),
    (10.7170801595, 2.710478, 0.018958732980, 8, -1, 58.4, 0.5261),
    (12.2533690861, 17.391178, 0.000412541847, 14, -1, 0.036, 0.3952),
    (101.9612336916, -69.1416, 0.000198411091, 9, -1, 182, 0.0397),
    (105.1930748884, -79.506, 4.776886e-6, 12, 1, None, 0.0386),
    (693.2163442476, -752.132, 0.0, -1, 0, None, 0.0058),
]


def _as_in_the_table(found: greedy.Staircase) -> None:
    for stage, (T, C, loss, winner, sign, gap, least) in zip(found.stages, TOY_A, strict=False):
        assert pytest.approx(T, rel=1e-10, abs=1e-10) == stage.T
        assert pytest.approx(C, rel=1e-5, abs=1e-5) == stage.C
        assert stage.loss == pytest.approx(loss, abs=1e-11)
        assert (stage.winner, stage.sign) == (winner, sign)
        assert stage.left == ()
        if gap is not None:
            assert stage.runner_up / stage.wait - 1 == pytest.approx(gap, rel=5e-3)
        if least is not None:
            assert stage.least == pytest.approx(least, rel=2e-3)


def test_toy_a_stage_by_stage() -> None:
    found = greedy.run(Toy().problem(), stages=4)
    _as_in_the_table(found)
    assert found.stages[1].m[10] == pytest.approx(-2.57058358, abs=1e-8)
    assert found.stages[4].m[[2, 10]] == pytest.approx([-0.10830378, -2.82705841], abs=1e-8)
    assert found.stages[1].b[[11, 13, 15]] == pytest.approx([0.13133, 0.23305, 1.65916], abs=1e-5)
    np.testing.assert_allclose(found.stages[2].m[11], 2.46692239, atol=1e-8)


@pytest.mark.slow
def test_toy_a_to_the_end() -> None:
    found = greedy.run(Toy().problem())
    assert found.end == "no winner"
    assert len(found.stages) == len(TOY_A)
    _as_in_the_table(found)
    counted = greedy.Staircase(found.stages[:13], "stages")
    assert counted.least_log == pytest.approx(12.15, abs=0.01)


@pytest.mark.slow
def test_toy_a_with_a_sharp_teacher_needs_a_far_smaller_start() -> None:
    found = greedy.run(Toy(sharp=True).problem(), stages=3)
    assert found.stages[0].loss == pytest.approx(4.709725436872, abs=1e-11)
    assert found.stacked("T")[1:3] == pytest.approx([2.5498468096, 2.5727810486], abs=1e-9)
    assert found.stacked("C")[1:3] == pytest.approx([6.523987, 2.438569], abs=1e-5)
    assert greedy.Staircase(found.stages[:3], "").least_log == pytest.approx(178.1, abs=0.1)


@pytest.mark.slow
def test_toy_b_at_the_papers_size() -> None:
    found = greedy.run(Toy(50, 10, 1000).problem(), stages=8, atol=1e-5)
    assert found.stages[0].loss == pytest.approx(4.360694113794, abs=1e-11)
    assert [(s.winner, s.sign) for s in found.stages] == [
        (75, -1),
        (64, 1),
        (32, -1),
        (21, -1),
        (38, 1),
        (43, -1),
        (47, 1),
        (27, 1),
        (31, 1),
    ]
    T = [2.65523975, 3.19362647, 3.77634517, 3.80032287, 4.01224081, 4.13665859, 4.35135497, 4.47801489]
    assert found.stacked("T")[1:] == pytest.approx(T, abs=1e-8)
    assert found.stacked("C")[1:] == pytest.approx(
        [6.7047, 11.4879, 8.5074, 10.98, 9.660, 7.265, 7.713, 7.920], abs=6e-3
    )
    assert greedy.Staircase(found.stages[:8], "").least_log == pytest.approx(19.25, abs=0.05)


def test_the_matrix_of_the_table_is_the_one_used() -> None:
    np.testing.assert_allclose(R, [1.02, 0.96, 0.9], atol=1e-12)
    assert np.linalg.eigvalsh(A)[0] > 0
