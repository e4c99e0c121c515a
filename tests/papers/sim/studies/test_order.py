"""The studies of the order of learning, small, and at their documented defaults (slow)."""

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
from saltus.papers.sim.studies import _checks, _common, _theory, layers, one_layer, order

SMALL: dict[str, Any] = dict(seeds=8, points=300, dim=6, epochs=30, looks=120)
ALL = [
    (order.StrongerFirst, {}),
    (order.DiverseFirst, dict(sigma_1=(0.05, 0.5, 2.0), sweep=(0.6, 1.0, 1.4))),
    (layers.TwoLinearLayers, dict(sigma_1=(0.05, 2.0), width=6)),
    (layers.TwoReluLayers, dict(sigma_1=(0.05, 2.0), width=6)),
    (one_layer.OneLayerTheory, dict(cases=3, step_sizes=(0.1, 0.02))),
]


@pytest.mark.parametrize("reading", ["as-written", "as-drawn"])
@pytest.mark.parametrize(("kind", "changes"), ALL, ids=lambda x: getattr(x, "__name__", ""))
def test_small_runs_give_claims_and_a_figure(kind: Any, changes: dict[str, Any], reading: str) -> None:
    one = kind(reading=reading, **{**SMALL, **changes})
    record = one.run(Lab())
    law = one.law(record)
    claims = list(one.claims(record, law))
    json.dumps([c.as_json() for c in claims], allow_nan=False)
    assert len({c.id for c in claims}) == len(claims)
    assert all(c.expected or c.because for c in claims)
    assert one.draw(record, law).axes
    for name in record.data_vars:
        if not str(name).startswith("gd_"):
            assert record[name].attrs["long_name"], name


def test_the_record_keeps_the_start_that_the_law_needs() -> None:
    one = order.StrongerFirst(**SMALL)
    record = one.run(Lab())
    output = record.output.isel(step=0)
    rebuilt = (record.start * record.mu.rename(axis="source")).sum("source") + record.offset
    np.testing.assert_allclose(rebuilt.transpose(*output.dims), output, atol=1e-12)


@pytest.mark.parametrize("reading", ["as-written", "as-drawn"])
def test_the_law_starts_where_the_runs_start_and_stays_close(reading: str) -> None:
    one = order.StrongerFirst(reading=reading, **{**SMALL, "points": 3000, "epochs": 4})
    record = one.run(Lab())
    law, g = one.law(record), _common.learnt(record)
    first = law.g.isel(step=0).transpose("setting", "seed", "axis").values
    np.testing.assert_allclose(first, g.isel(step=0).transpose("setting", "seed", "axis").values, atol=1e-12)
    mirrored = (law.g + law.g_mirror) / 2
    np.testing.assert_allclose(mirrored.values, (0 * law.g + law.g_median).values, atol=1e-12)
    assert np.median(_checks.distances(record, g, law, "g")) < 0.05


def test_predicted_crossing_makes_the_rates_equal() -> None:
    for reading in ("as-written", "as-drawn"):
        one = order.DiverseFirst(reading=reading)
        a = _theory.rates(one, one.mu, (one.predicted(), one.sigma_2))
        assert a[0] == pytest.approx(a[1], rel=1e-12)
        assert one.predicted(wrong=True) > 1.3 * one.predicted()
    assert order.DiverseFirst().predicted() == pytest.approx(1.226, abs=1e-3)


def test_a_control_with_equal_signals_is_added_when_missing() -> None:
    pairs = [c[0] for c in order.StrongerFirst(mu=((1.0, 2.0),)).cases()]
    assert (1.5, 1.5) in pairs


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (order.StrongerFirst, dict(mu=((1.0, 1.0),))),
        (order.DiverseFirst, dict(mu=(2.0, 1.0))),
        (order.DiverseFirst, dict(sigma_1=(2.0, 1.0))),
        (order.DiverseFirst, dict(sweep=(1.0,))),
        (layers.TwoLinearLayers, dict(sigma_1=(0.1,))),
        (one_layer.OneLayerTheory, dict(mu=((1.0, 2.0),))),
    ],
)
def test_impossible_settings_are_refused_before_anything_runs(kind: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        kind(**wrong)


@pytest.mark.slow
@pytest.mark.parametrize("reading", ["as-written", "as-drawn"])
@pytest.mark.parametrize("name", ["sim/fig2a", "sim/fig2b", "sim/one-layer", "sim/fig11", "sim/fig12"])
def test_defaults_come_out_as_documented(name: str, reading: str, tmp_path: Path) -> None:
    outcome = saltus.run(registry.info(name).cls(reading=reading), out=tmp_path)
    wrong = [c.id for c in outcome.claims if not c.as_documented]
    assert not wrong
