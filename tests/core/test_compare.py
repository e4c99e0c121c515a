from __future__ import annotations

import math

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from saltus.core.compare import distance
from saltus.core.errors import BadInput


def data(x: np.ndarray, *dims: str, **coords: object) -> xr.Dataset:
    return xr.Dataset({"x": (dims, x)}, coords=coords)


@given(st.integers(1, 9), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_against_the_formula(seeds: int, steps: int, key: int) -> None:
    rng = np.random.default_rng(key)
    seen, said = rng.standard_normal((seeds, steps)), rng.standard_normal(steps)
    found = distance(data(seen, "seed", "t"), data(said, "t")).x
    expected = np.sqrt(((seen - said) ** 2).mean(1)) / np.sqrt((said**2).mean())
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert found.attrs["n"] == seeds
    assert found.attrs["median"] == pytest.approx(np.median(expected))


def test_coordinates_are_matched() -> None:
    runs = data(np.array([[1.0, 2.0, 9.0]]), "seed", "t", t=[0, 1, 2])
    law = data(np.array([2.0, 1.0]), "t", t=[1, 0])
    assert distance(runs, law).x.item() == 0
    with pytest.raises(BadInput, match="share no value of coordinate 't'"):
        distance(runs, data(np.ones(2), "t", t=[7, 8]))


def test_a_run_that_diverged_is_not_close() -> None:
    runs = data(np.array([[1.0, 1.0], [1.0, np.nan], [np.inf, 1.0]]), "seed", "t")
    found = distance(runs, data(np.ones(2), "t")).x
    assert found.values.tolist() == [0, math.inf, math.inf]
    assert math.isnan(found.attrs["median"])


def test_where_the_law_says_nothing_nothing_is_compared() -> None:
    runs = data(np.array([[1.0, np.nan]]), "seed", "t")
    assert distance(runs, data(np.array([1.0, np.nan]), "t")).x.item() == 0


@pytest.mark.parametrize("law", [[np.nan, np.nan], [0.0, np.nan], [1.0, np.inf], [1.0, 1e300]])
def test_from_a_law_that_left_the_numbers_no_distance_is_told(law: list[float]) -> None:
    found = distance(data(np.ones((7, 2)), "seed", "t"), data(np.array(law), "t")).x
    assert np.isnan(found.values).all()
    assert (math.isnan(found.attrs["median"]), found.attrs["n"]) == (True, 7)


def test_refusals() -> None:
    runs = data(np.ones((2, 2)), "seed", "t")
    with pytest.raises(BadInput, match="share no variable"):
        distance(runs, data(np.ones(2), "t").rename(x="y"))
    with pytest.raises(BadInput, match="no variable 'z'"):
        distance(runs, runs, variables=["z"])
    with pytest.raises(BadInput, match="give scale="):
        distance(runs, data(np.zeros(2), "t"))
    assert distance(runs, data(np.zeros(2), "t"), scale=2.0).x.values.tolist() == [0.5, 0.5]
