"""The admissible region as a study: figures outside, shrunken starts inside, closed form beside search."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from saltus.core import lab
from saltus.core.errors import BadInput
from saltus.papers.sim.law import admissible
from saltus.papers.sim.studies import _region
from saltus.papers.sim.studies.assumptions import AdmissibleRegion

SMALL = dict(concepts=(2, 3), seeds=64, looked=24, ratios=(3.1, 10.0), scales=8, points=20)


@pytest.fixture(scope="module")
def region(tmp_path_factory: pytest.TempPathFactory) -> tuple[AdmissibleRegion, xr.Dataset, xr.Dataset]:
    study = AdmissibleRegion(**SMALL)
    record = lab.run(study, tmp_path_factory.mktemp("store"))[0].data
    return study, record, study.law(record)


def test_every_claim_comes_out_as_documented(
    region: tuple[AdmissibleRegion, xr.Dataset, xr.Dataset],
) -> None:
    study, record, law = region
    claims = list(study.claims(record, law))
    assert len({c.id for c in claims}) == len(claims) == 10
    assert [c.id for c in claims if not c.as_documented] == []
    text = json.dumps([c.as_json() for c in claims])
    assert "NaN" not in text
    assert {c.id for c in claims if not c.holds} == {"figures-satisfy", "common-in-practice"}


def test_search_and_closed_form(region: tuple[AdmissibleRegion, xr.Dataset, xr.Dataset]) -> None:
    _, record, law = region
    np.testing.assert_allclose(record.searched, law.searched, atol=4e-3)
    np.testing.assert_allclose(law.searched.sel(searched_ratio=3.1), [-84.4, -100.8], atol=0.0501)
    np.testing.assert_allclose(law.best, [-60.85, -80.59], atol=6e-3)


def test_the_figures(region: tuple[AdmissibleRegion, xr.Dataset, xr.Dataset]) -> None:
    """Signals of the spec: figures 5 and 8 break a_i > 3 a_j, figure 10 does not; the rest fails for all."""
    _, record, _ = region
    np.testing.assert_allclose(record.a.sel(figure="fig5")[:2], [0.5025, 1.1275])
    three = record.fails.sel(failing="D.5 three-fold").all("look")
    assert three.sel(figure=["fig5", "fig8", "fig9", "fig7"]).all()
    assert not three.sel(figure=["fig10", "fig2", "fig14"]).any()
    assert (record.omega_over > 50).all()
    assert (record.short_of_P > 0).all()


def test_as_drawn_signals_are_squared_for_the_theory_only() -> None:
    written = {s.name: s for s in _region.settings(False, 0.01, 0.1, 0.1)}
    drawn = {s.name: s for s in _region.settings(True, 0.01, 0.1, 0.1)}
    np.testing.assert_allclose(drawn["fig8"].a, np.square(written["fig8"].a))
    np.testing.assert_allclose(drawn["fig2"].a, [0.05 + 1 / 3, 0.05 + 4 / 3])
    assert (drawn["fig5"].scale, drawn["fig10"].scale) == (0.2, 0.1)


def test_shares_rise_from_none_to_all(region: tuple[AdmissibleRegion, xr.Dataset, xr.Dataset]) -> None:
    _, record, _ = region
    share = record.held.mean("seed").values
    assert (np.diff(share, axis=1) >= 0).all()
    assert (share[:, 0] == 0).all()
    assert (share[:, -1] == 1).all()


def test_starts_do_not_depend_on_how_many_or_how_wide() -> None:
    np.testing.assert_array_equal(_region.unit_starts(3, 4, 2), _region.unit_starts(3, 9, 2)[:4])
    assert (np.linalg.eigvalsh(_region.unit_starts(3, 16, 3)) > 0).all()


def test_best_over_signals_is_at_least_that_of_any() -> None:
    for beta in (1.5, 30.0):
        best = _region._best(2, np.array([beta]))[0]
        assert best == pytest.approx(admissible.best_ratio(2, beta)[1], abs=0.02)


def test_draws_and_refuses(region: tuple[AdmissibleRegion, xr.Dataset, xr.Dataset], tmp_path: Path) -> None:
    study, record, law = region
    study.draw(record, law).savefig(tmp_path / "region.png")
    with pytest.raises(BadInput, match="increase"):
        AdmissibleRegion(concepts=(3, 2))
    with pytest.raises(BadInput, match="two values"):
        AdmissibleRegion(betas=(2.0,))
    with pytest.raises(BadInput, match="looked"):
        AdmissibleRegion(seeds=8)


@pytest.mark.slow
@pytest.mark.parametrize("reading", ["as-written", "as-drawn"])
def test_defaults_are_as_documented(reading: str, tmp_path: Path) -> None:
    study = AdmissibleRegion(reading=reading, base=11)
    record = lab.run(study, tmp_path)[0].data
    assert all(c.as_documented for c in study.claims(record, study.law(record)))
