"""The synthetic studies, small: every one end to end, and what can be known of its numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from papers.features.studies.said import told
from saltus.core.errors import BadInput
from saltus.papers.features.studies import (
    _patches,
    _phase,
    conditions,
    early,
    fig1,
    fig2,
    fig5,
    fig6,
    patches,
    phase,
    sampled,
    stationary,
    time,
)

SMALL: dict[str, Any] = dict(
    n=6, d=60, m=3, sigma0=0.05, steps=400, eta=0.3, steps_classifier=200, looks=30, seeds=2
)
PAIR: dict[str, Any] = {**SMALL, "mu": (2.0, 5.0)}
GRID = (0.3, 1.5, 3.0, 6.0, 12.0)
ALL: list[tuple[Any, dict[str, Any]]] = [
    (conditions.Conditions, {**PAIR, "draws_checked": 20}),
    (fig2.Figure2, PAIR),
    (fig5.Figure5, {**PAIR, "points": 20}),
    (fig6.Figure6, {**SMALL, "mu": (2.0, 3.0, 4.0)}),
    (early.Early, {**SMALL, "chis": (0.5, 2.0), "starts": (0.01, 0.03), "dims": (100, 200)}),
    (
        fig1.Figure1,
        dict(n=6, d=60, m=3, sigma0=0.01, small=0.001, large=120, chi=GRID, seeds=4, seeds_denoiser=2),
    ),
    (sampled.Sampled, {**SMALL, "mu": 5.0, "noises": (1, 16)}),
    (time.DiffusionTime, dict(n=6, d=60, m=3, sigma0=0.05, times=(0.2, 0.8), seeds=2)),
]


@pytest.mark.parametrize(("kind", "changes"), ALL, ids=lambda x: getattr(x, "__name__", ""))
def test_small_runs_give_claims_and_a_figure(kind: Any, changes: dict[str, Any]) -> None:
    told(kind(**changes))


def test_more_noises_are_nearer_to_the_closed_form() -> None:
    one = sampled.Sampled(**{**SMALL, "mu": 5.0, "noises": (1, 400), "steps": 200, "seeds": 3})
    law = one.law(told(one)[0])
    few, many = law.distance.median("seed").values
    assert many < few / 5  # 1 / 20 by the square root
    np.testing.assert_array_less(law.at_paper, few)


def test_a_small_phase_diagram_counts_its_trainings() -> None:
    one = phase.Phase(
        n=(6,), d=(60,), m=(3,), sigma0=(0.01, 0.001), chi=(1.0, 3.0, 9.0), chi_denoiser=(0.5, 2.0, 8.0),
        seeds=4, seeds_denoiser=2,
    )  # fmt: skip
    record, claims = told(one)
    assert one.trainings() == 2 * 3 * 4 + 3 * 2
    assert record.ratio.size + record.end.size == one.trainings()
    assert "boundary-falls" in claims


def test_a_small_stationary_study_ends_where_it_is_solved_for() -> None:
    one = stationary.Stationary(
        **{**SMALL, "steps": 3000, "eta": 0.6}, mu=(3.0, 4.0), neurons=(1, 20), chis=(1.0, 3.0), points=4,
        wide=200, inside=(0.01, 0.03),
    )  # fmt: skip
    record, claims = told(one)
    np.testing.assert_allclose(record.inside_ratio, record.inside_solved, rtol=1e-4)
    np.testing.assert_allclose(record.inside_early / record.chi_inside, 0.5, rtol=0.2)
    assert float(record.gap.min()) < 1e-3
    assert not claims["theta-inside"].holds


MANY: dict[str, Any] = dict(
    n=12, d=200, m=4, sigma0=0.0001, mu=8.0, shares=(1, 0.5, 0.2), counts=(1, 2), seeds=6, classifier_span=60
)


def test_small_data_of_many_patches(monkeypatch: pytest.MonkeyPatch) -> None:
    """One world is trained for all, which is what takes the time."""
    one = patches.Patches(**MANY)
    made = {task: getattr(_patches, task)(one, one.three(0.5), views=True) for task in
            ("denoiser", "classifier")}  # fmt: skip
    for task, held in made.items():
        monkeypatch.setattr(_patches, task, lambda *_, held=held, **__: held)
    record, _ = told(one)
    assert record.strength.values.tolist() == [1, 0.5, 1 / 6]
    held = made["denoiser"]
    agree = held.spread.values < 1e-4
    assert agree.mean() > 0.5
    assert held.gap.values[agree].max() < 1e-5
    ratio, said = (v.median("seed").values for v in (held.early, held.pull))
    np.testing.assert_allclose((ratio / ratio[0])[:3], (said / said[0])[:3], rtol=0.25)
    assert (held.gain.values[:, :3] > held.gain_unseen.values[:, None]).all()


@pytest.mark.slow
def test_many_patches_small_and_whole() -> None:
    _, claims = told(patches.Patches(**MANY))
    assert claims["early-law"].holds
    assert claims["solved"].holds


def test_means_over_groups_and_a_probe_that_can_be_known() -> None:
    world = patches.Patches(**MANY).equal(2)
    values = np.arange(world.distinct, dtype=float)
    found = _patches.by_group(world, values)
    np.testing.assert_allclose(found, [0.5, 2.5, values[4:].mean()])
    rng = np.random.default_rng(0)
    h, y = rng.standard_normal((2, 200, 3)), []
    for part in h:
        y.append(np.sign(part[:, 1]))
    assert _patches.probe(list(h), y) > 0.95
    assert abs(_patches.probe(list(h), [rng.permutation(v) for v in y]) - 0.5) < 0.15


def test_crossings_and_powers_of_known_curves() -> None:
    chi = np.geomspace(0.5, 16, 12)
    ratio = (chi / 3)[:, None] ** 2 * np.ones(5)
    assert _phase.crossing(chi, ratio) == pytest.approx(3)
    assert _phase.steepness(chi, ratio, 3.0) == pytest.approx(2)
    assert _phase.crossing(chi, ratio + 100) == 0.0
    assert np.isinf(_phase.crossing(chi, ratio / 1e6))
    np.testing.assert_allclose(early._early_claims.powers(chi, ratio), 2)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (fig2.Figure2, dict(mu=(15.0, 5.0))),
        (fig2.Figure2, dict(steps_classifier=150)),
        (fig5.Figure5, dict(mu=(5.0,))),
        (fig6.Figure6, dict(mu=(5.0, 15.0))),
        (fig1.Figure1, dict(chi=(3.0, 2.0, 1.0, 0.5))),
        (fig1.Figure1, dict(small=0.1)),
        (early.Early, dict(chis=(1.0,))),
        (stationary.Stationary, dict(neurons=(4, 2))),
        (phase.Phase, dict(chi=(1.0, 2.0))),
        (phase.Phase, dict(n=(30, 30))),
        (time.DiffusionTime, dict(times=(0.2,))),
        (conditions.Conditions, dict(mu=(5.0,))),
        (patches.Patches, dict(shares=(0.5, 0.2, 0.1))),
        (patches.Patches, dict(shares=(1.0, 0.54, 0.52))),
        (patches.Patches, dict(counts=(2, 1))),
        (patches.Patches, dict(d=50)),
    ],
)
def test_impossible_settings_are_refused_before_anything_runs(kind: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        kind(**wrong)
