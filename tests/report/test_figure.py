from __future__ import annotations

import numpy as np
import pytest
from matplotlib import rcParams

from saltus.report import figure
from saltus.report.style import COLOURS, house_style
from saltus.report.table import number


def test_band_is_the_median_and_the_middle_of_the_runs() -> None:
    fig, ax = figure.sheet()
    runs = np.arange(11.0)[:, None] * np.ones((11, 4))
    runs[0, 0] = np.nan
    figure.band(ax[0, 0], np.arange(4), runs, label="seen")
    (line,) = ax[0, 0].lines
    assert line.get_ydata().tolist() == [5.5, 5, 5, 5]
    edges = ax[0, 0].collections[0].get_paths()[0].vertices[:, 1]
    assert (edges.min(), edges.max()) == (pytest.approx(1.0), pytest.approx(9.1))
    assert fig.axes


def test_a_band_of_runs_that_all_left_the_numbers() -> None:
    _, ax = figure.sheet()
    figure.band(ax[0, 0], np.arange(2), np.array([[1.0, np.nan], [1.0, np.inf]]))
    figure.band(ax[0, 0], np.arange(2), np.array([[1.0, np.nan], [1.0, np.nan]]))


def test_theory_is_black_and_dashed() -> None:
    _, ax = figure.sheet()
    figure.theory(ax[0, 0], [0, 1], [0, 1])
    (line,) = ax[0, 0].lines
    assert line.get_color() == "#000000"
    assert line.is_dashed()


@pytest.mark.parametrize("points", [np.zeros((1, 2)), np.zeros((5, 2)), np.full((5, 2), np.nan), np.eye(2)])
def test_paths_of_any_kind_are_drawn(points: np.ndarray) -> None:
    fig, ax = figure.sheet()
    figure.path(ax[0, 0], points)
    figure.finding(fig, "Nothing moves", "at all")


def test_arrows_point_along_the_path() -> None:
    _, ax = figure.sheet()
    figure.path(ax[0, 0], np.stack([np.linspace(0, 1, 9), np.zeros(9)], 1), marks=3)
    assert len(ax[0, 0].texts) == 3
    assert all(t.xy[0] > t.xyann[0] for t in ax[0, 0].texts)


def test_heat_has_its_bar() -> None:
    fig, ax = figure.sheet()
    figure.heat(ax[0, 0], [0, 1], [0, 1, 2], np.eye(3, 2), label="share")
    assert [a.get_ylabel() for a in fig.axes] == ["", "share"]


def test_the_style_is_lent_not_left() -> None:
    before = dict(rcParams)
    with house_style():
        assert rcParams["axes.prop_cycle"].by_key()["color"] == list(COLOURS)
    assert dict(rcParams) == before


def test_numbers() -> None:
    assert [number(x) for x in (0.5, 1e-9, 123456.0, float("nan"))] == [
        "0.5",
        "1e-09",
        "1.235e+05",
        "undefined",
    ]
