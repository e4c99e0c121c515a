"""The stiff solver against problems with known solutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from saltus._jax import jax, jnp
from saltus.papers.rank.law.radau import Solver

STIFF = jnp.asarray([[-1.0, 0.0], [3.0, -2000.0]])


def linear(y: Any, A: Any) -> Any:
    return A @ y


def rigid(y: Any, args: Any) -> Any:
    return jnp.stack([-2 * y[1] * y[2], 1.25 * y[0] * y[2], -0.5 * y[0] * y[1]])


@pytest.fixture(scope="module")
def stiff() -> Solver:
    return Solver(linear, lambda y, A: A)


def exact(A: Any, y0: Any, times: Any) -> Any:
    values, vectors = np.linalg.eig(np.asarray(A))
    return np.einsum(
        "ij,tj->ti", vectors, np.exp(np.outer(times, values)) * np.linalg.solve(vectors, y0)
    ).real


def test_a_stiff_linear_system_at_step_ends_and_between(stiff: Solver) -> None:
    y0 = np.asarray([1.0, 2.0])
    path = stiff(y0, STIFF, 5.0, atol=1e-8)
    assert path.status == "ended"
    assert path.t[-1] == 5.0
    assert path.counts["steps"] < 400  # an explicit method needs five thousand
    np.testing.assert_allclose(path.y, exact(STIFF, y0, path.t), atol=1e-6)
    times = np.linspace(0, 5, 501)
    np.testing.assert_allclose(path(times), exact(STIFF, y0, times), atol=1e-5)
    np.testing.assert_allclose(path(path.t), path.y, atol=1e-12)


def test_the_error_goes_with_the_tolerance(stiff: Solver) -> None:
    y0 = np.asarray([1.0, 2.0])
    errors = []
    for atol in (1e-4, 1e-6, 1e-8):
        path = stiff(y0, STIFF, 5.0, atol=atol)
        errors.append(abs(path.y - exact(STIFF, y0, path.t)).max())
    assert errors[2] < errors[1] < errors[0] < 1e-2
    assert errors[2] < 1e-6


def test_an_approximate_jacobian_gives_the_same_solution() -> None:
    half = Solver(linear, lambda y, A: jnp.diag(jnp.diag(A)))
    y0 = np.asarray([1.0, 2.0])
    np.testing.assert_allclose(half(y0, STIFF, 1.0, atol=1e-8).y[-1], exact(STIFF, y0, [1.0])[0], atol=1e-7)


def test_a_nonlinear_system_keeps_its_invariants() -> None:
    solver = Solver(rigid, lambda y, args: jax.jacfwd(rigid)(y, args))
    path = solver(np.asarray([1.0, 0.9, 0.3]), None, 50.0, atol=1e-9)
    energy = path.y**2 @ np.asarray([0.5, 1.0, 0.5])
    np.testing.assert_allclose(energy, energy[0], rtol=1e-6)


def test_a_stop_rule_ends_a_path_without_an_end() -> None:
    solver = Solver(linear, lambda y, A: A, lambda y, f, A: jnp.max(jnp.abs(f)) < 1e-9)
    path = solver(np.asarray([1.0, 2.0]), STIFF, np.inf, atol=1e-10)
    assert path.status == "stopped"
    assert abs(np.asarray(STIFF) @ path.y[-1]).max() < 1e-9


def test_what_blows_up_is_said_to_be_stuck() -> None:
    solver = Solver(lambda y, args: y**2, lambda y, args: jnp.diag(2 * y))
    path = solver(np.asarray([1.0]), None, 2.0, atol=1e-8)  # y = 1 / (1 - t)
    assert path.status == "stuck"
    assert path.t[-1] == pytest.approx(1.0, abs=1e-4)


def test_more_steps_than_one_chunk_holds(stiff: Solver) -> None:
    path = stiff(np.asarray([1.0, 0.0]), jnp.asarray([[0.0, 1.0], [-1.0, 0.0]]), 400.0, atol=1e-8)
    assert path.counts["steps"] > 600
    assert (np.diff(path.t) > 0).all()
    np.testing.assert_allclose(path(np.asarray([399.0]))[0], [np.cos(399.0), -np.sin(399.0)], atol=1e-3)
    short = stiff(
        np.asarray([1.0, 0.0]), jnp.asarray([[0.0, 1.0], [-1.0, 0.0]]), 400.0, atol=1e-8, max_steps=300
    )
    assert short.status == "stuck"
