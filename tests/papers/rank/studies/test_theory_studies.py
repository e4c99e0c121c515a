"""The studies of the theory, small, and at their documented defaults (slow)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import saltus
from saltus.core import study as registry
from saltus.core.errors import BadInput
from saltus.core.lab import Lab
from saltus.papers.rank.studies import (
    _toys,
    assumptions,
    deep_diagonal,
    evolution,
    limit,
    perturbed,
    staircase,
)

SMALL: dict[str, Any] = dict(dim=4, tokens=3, samples=30, teachers=2, learnt=0.3, atol=1e-4)
ALL: list[tuple[Any, dict[str, Any]]] = [
    (evolution.LossAndEntries, dict(powers=(1, 4, 16))),
    (evolution.KeyQueryEntries, dict(powers=(1, 4, 16))),
    (evolution.ValueOutputEntries, dict(powers=(1, 4, 16))),
    (perturbed.Assumptions44And45, dict(pushes=2)),
    (perturbed.RandomTimes, dict(pushes=2)),
    (perturbed.NewCoordinates, dict(pushes=2)),
    (staircase.StaircaseOverTraining, {}),
    (limit.TheLimit, dict(powers=(1, 32, 64, 300))),
    (assumptions.Assumptions, dict(deltas=(0.05,))),
]
DEEP = dict(dim=2, layers=1, hidden=3, tokens=3, samples=20, teachers=2, learnt=0.5, atol=1e-4)


def _told(one: Any) -> tuple[Any, list[Any]]:
    record = one.run(Lab())
    law = one.law(record)
    claims = list(one.claims(record, law))
    json.dumps([c.as_json() for c in claims], allow_nan=False)
    assert len({c.id for c in claims}) == len(claims) > 0
    assert all(c.expected or c.because for c in claims)
    assert one.draw(record, law).axes
    for name in [*record.data_vars, *record.coords]:
        assert record[name].dtype != object, name
        if name in record.data_vars:
            assert record[name].attrs["long_name"], name
    return record, claims


@pytest.mark.parametrize(("kind", "changes"), ALL, ids=lambda x: getattr(x, "__name__", ""))
def test_small_runs_give_claims_and_a_figure(kind: Any, changes: dict[str, Any]) -> None:
    _told(kind(**{**SMALL, **changes}))


def test_a_small_transformer_with_two_heads_ties() -> None:
    record, claims = _told(deep_diagonal.DeepDiagonal(**DEEP))
    assert (record.tied.sel(heads=2, stage=0) >= 1).all()
    assert (record.tied.sel(heads=1, stage=0) == 0).all()
    assert not next(c for c in claims if c.id == "unique-several").holds


def test_stages_that_count_end_where_little_is_left() -> None:
    one = evolution.LossAndEntries(**SMALL)
    for run in range(2):
        found = _toys.staircase(one.toy(run), one.atol)
        last = _toys.last_stage(found, 0.3)
        loss = found.stacked("loss")
        assert loss[last] <= 0.3 * loss[0] < loss[last - 1]
        assert len(_toys.counted(one.toy(run), 0.3, one.atol).stages) == last + 1


def test_order_of_pairs_is_that_of_what_comes() -> None:
    import xarray as xr

    rises = xr.DataArray([[np.nan, 1.0, 3.0, 2.0, np.nan]], dims=("run", "stage"))
    used = xr.DataArray([[False, True, True, True, True]], dims=("run", "stage"))
    np.testing.assert_array_equal(_toys.in_order(rises, used), [True, False, False])
    late = _toys.late(rises, rises * 2, used)
    np.testing.assert_allclose(late, [0.5, 0.5, 0.5, 1e9])


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (evolution.LossAndEntries, dict(powers=(1, 2))),
        (evolution.LossAndEntries, dict(powers=(4, 2, 1))),
        (evolution.LossAndEntries, dict(powers=(0.1, 2, 4))),
        (limit.TheLimit, dict(powers=(1, 2, 4))),
        (limit.TheLimit, dict(powers=(64, 32, 300))),
        (perturbed.RandomTimes, dict(duration=1e9)),
        (staircase.StaircaseOverTraining, dict(power=1000)),
        (deep_diagonal.DeepDiagonal, dict(heads=1)),
    ],
)
def test_impossible_settings_are_refused_before_anything_runs(kind: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        kind(**wrong)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["fig2", "fig3", "fig8", "fig9", "fig10", "fig11", "staircase", "limit", "assumptions", "deep-diagonal"],
)
def test_defaults_come_out_as_documented(name: str, tmp_path: Path) -> None:
    outcome = saltus.run(registry.info(f"rank/{name}").cls(), out=tmp_path)
    assert not [c.id for c in outcome.claims if not c.as_documented]
