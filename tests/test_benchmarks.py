"""Contestants of the benchmarks train the very same networks: outputs agree with the plain path."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

cases = importlib.import_module("cases")
contest = importlib.import_module("contest")
ours = importlib.import_module("ours")
ours_flows = importlib.import_module("ours_flows")
work = importlib.import_module("work")

TINY = dict(dim=6, width=5, depth=3, points=70, epochs=2, seeds=2)
READINGS = ("as-drawn", "as-written")
PEERS = ("torch_loop", "torch_ensemble", "published")


def small(reading: str, **more: Any) -> dict[str, Any]:
    """A case in its JSON form, with two settings."""
    settings = cases.PANELS[:2]
    return cases.Case("test", "", (), reading=reading, settings=settings, **{**TINY, **more}).as_json()


@pytest.fixture(scope="module", params=READINGS)
def dealt(request: pytest.FixtureRequest) -> tuple[Any, np.ndarray]:
    """The arrays peers are given, and what saltus' plain path makes of the same runs."""
    case = small(request.param)
    outputs = ours.prepare(case, list(range(4)), 0, "cpu", "float64", "plain")()
    return ours.deal(case), outputs


def outputs_of(module: str, given: Any) -> np.ndarray:
    return importlib.import_module(f"peers.{module}").prepare(given, "cpu", "float64")()


def test_plain_jax_trains_the_same_networks(dealt: tuple[Any, np.ndarray]) -> None:
    given, known = dealt
    assert np.max(np.abs(known[:, -1] - known[:, 0])) > 0.01, "nothing was learnt, so nothing is compared"
    np.testing.assert_allclose(outputs_of("plain_jax", given), known, atol=1e-13)


def test_a_different_step_size_would_be_seen(dealt: tuple[Any, np.ndarray]) -> None:
    given, known = dealt
    gap = np.max(np.abs(outputs_of("plain_jax", replace(given, lr=1.001 * given.lr)) - known))
    assert gap > 1e3 * contest.TOLERANCE["float64"]


@pytest.mark.parametrize("module", PEERS)
def test_pytorch_trains_the_same_networks(module: str, dealt: tuple[Any, np.ndarray]) -> None:
    pytest.importorskip("torch")
    given, known = dealt
    np.testing.assert_allclose(outputs_of(module, given), known, atol=1e-13)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_compiled_pytorch_trains_the_same_networks(dealt: tuple[Any, np.ndarray]) -> None:
    pytest.importorskip("torch")
    given, known = dealt
    np.testing.assert_allclose(outputs_of("torch_compile", given), known, atol=1e-13)


def test_a_part_is_the_beginning_of_the_whole(dealt: tuple[Any, np.ndarray]) -> None:
    given, known = dealt
    part = outputs_of("plain_jax", given.part([1, 2], 1))
    np.testing.assert_allclose(part, known[1:3, : part.shape[1]], atol=1e-13)


def test_arrays_survive_the_file(dealt: tuple[Any, np.ndarray], tmp_path: Path) -> None:
    given, _ = dealt
    work.save(tmp_path / "case.npz", given)
    back = work.load(tmp_path / "case.npz")
    assert len(back.biases) == len(given.biases)
    assert back.lr == given.lr
    np.testing.assert_array_equal(back.order, given.order)
    np.testing.assert_array_equal(back.weights[1], given.weights[1])


def test_chosen_runs_hold_the_checked_ones() -> None:
    case = cases.two_panels("cpu")
    assert set(case.chosen(case.checked)) <= set(case.chosen(28))
    assert len(case.chosen(0)) == case.runs


@pytest.mark.parametrize("module", ["flows_jax", "flows_torch"])
def test_flows_agree(module: str) -> None:
    if "torch" in module:
        pytest.importorskip("torch")
    case = cases.Case("test", "", (), flows=True, seeds=3, steps=300).as_json()
    given = ours_flows.deal(case)
    known = ours_flows.prepare(case, [0, 1, 2], 0, "cpu", "float64", watch=False)()
    assert np.max(np.abs(known - given.start @ np.swapaxes(given.start, 1, 2))) > 0.1
    np.testing.assert_allclose(outputs_of(module, given), known, atol=1e-13)
