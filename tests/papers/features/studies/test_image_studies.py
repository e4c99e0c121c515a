"""The studies of noisy images on the embedded digits, small: every one end to end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from papers.features.studies.said import told
from said import Said
from saltus.core.errors import BadInput
from saltus.papers.features.studies import _image_views, film, image_accuracy, image_dynamics, image_rows

SMALL: dict[str, Any] = dict(
    data="digits", side=6, per_class=4, neurons=5, iterations=2000, class_steps=40, test=8, seeds=2
)
TEN: dict[str, Any] = {**SMALL, "per_class": 2}
STUDIES: list[tuple[Any, dict[str, Any]]] = [
    (image_dynamics.LowNoise, SMALL),
    (image_dynamics.HighNoise, SMALL),
    (image_dynamics.LateLow, SMALL),
    (image_dynamics.LateHigh, SMALL),
    (image_dynamics.TenClasses, TEN),
    (image_rows.LowRows, SMALL),
    (image_rows.HighRows, SMALL),
    (image_rows.LateLowRows, SMALL),
    (image_rows.LateHighRows, SMALL),
    (image_rows.TenRows, TEN),
    (image_accuracy.Accuracy, SMALL),
    (film.Film, SMALL),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One store for all: what one study trains, its views read."""
    return tmp_path_factory.mktemp("records")


@pytest.mark.parametrize(("kind", "changes"), STUDIES, ids=lambda x: getattr(x, "__name__", ""))
def test_small_runs_give_claims_and_a_figure(kind: Any, changes: dict[str, Any], store: Path) -> None:
    record, _ = told(kind(**changes), store)
    assert record.attrs["data"] == "digits"


def test_the_part_taken_away_is_the_loss_of_the_patch() -> None:
    rng = np.random.default_rng(0)
    W, X = 0.5 * rng.standard_normal((3, 6)), rng.standard_normal((2, 6))
    alpha, beta = 0.8, 0.6
    said = _image_views.gain(W, X, alpha, beta)
    eps = rng.standard_normal((200_000, 6))
    for x, value in zip(X, said, strict=True):
        f = ((alpha * x + beta * eps) @ W.T) ** 2 @ W / np.sqrt(3)
        square = ((f - eps) ** 2).sum(1) / 6
        assert abs(1 - square.mean() - value) < 5 * square.std() / np.sqrt(len(eps))


def test_leading_directions_and_their_parts() -> None:
    run = film.Film(**SMALL).prepare(0)
    direction = run.drawn.signal[0] / np.linalg.norm(run.drawn.signal[0])
    W = np.outer(np.ones(4), 3 * direction)
    size, found = film.leading(W)
    assert size == pytest.approx(3)
    assert abs(found @ direction) == pytest.approx(1)
    assert film.shares(W, run)[0] == pytest.approx(1)
    strip = np.stack([-np.ones((2, 3)), np.ones((2, 3))])
    np.testing.assert_array_equal(film.upright(strip), np.ones((2, 2, 3)))


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (image_dynamics.LowNoise, dict(classes=(1, 1))),
        (image_dynamics.TenClasses, dict(data="digits", per_class=200)),
        (image_accuracy.Accuracy, dict(snr=0.5, high=0.1)),
        (film.Film, dict(snr=0.5, high=0.5)),
    ],
)
def test_impossible_settings_are_refused_before_anything_runs(kind: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        kind(**wrong)


@pytest.mark.parametrize(
    "words",
    [
        ("features/fig2", "--mu", "15,5"),
        ("features/patches", "--shares", "0.5,0.2,0.1"),
        ("features/fig4", "--snr", "-1"),
        ("features/phase", "--chi", "1,2"),
        ("features/film", "--hihg", "1"),
    ],
)
def test_bad_words_are_one_line_and_exit_status_two(
    cli: Callable[..., Said], words: tuple[str, ...], tmp_path: Path
) -> None:
    said = cli("run", *words, "--out", tmp_path)
    assert said.status == 2
    assert said.out == ""
    assert len(said.err.strip().splitlines()) == 1
