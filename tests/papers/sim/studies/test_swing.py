"""Swing-by studies: measures against hand-made curves, small runs of each, documented defaults (slow)."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from saltus.core import stats
from saltus.core.errors import BadInput
from saltus.core.lab import Lab
from saltus.papers.sim.studies import _swing, corners, swing, three_layers, training_set

SMALL: dict[str, Any] = dict(seeds=8, points=300, epochs=40)
ALL = [
    # Equal networks are trained once in a process, so these share their compilations.
    (swing.SwingBy, dict(dims=(2, 3), widths=(3, 4))),
    (swing.LossDoubleDescent, dict(dims=(2, 3), widths=(3, 4))),
    (three_layers.SmallSwing, {}),
    (three_layers.SmallLoss, {}),
    (training_set.NoPointNear, dict(dims=(2, 3), widths=(3, 4), narrow=4)),
    (training_set.Truncated, dict(dims=(2, 3), widths=(3, 4), narrow=4)),
    (corners.ComponentOrder, dict(dim=6, width=8, mu=(1.0, 2.0, 3.0))),
]


@pytest.mark.parametrize("reading", ["as-written", "as-drawn"])
@pytest.mark.parametrize(("kind", "changes"), ALL, ids=lambda x: getattr(x, "__name__", ""))
def test_small_runs_give_claims_and_a_figure(kind: Any, changes: dict[str, Any], reading: str) -> None:
    one = kind(reading=reading, **{**SMALL, **changes})
    record = one.run(Lab())
    law = one.law(record) if hasattr(one, "law") else None
    claims = list(one.claims(record, law))
    json.dumps([c.as_json() for c in claims], allow_nan=False)
    assert len({c.id for c in claims}) == len(claims)
    assert all(c.expected or c.because for c in claims)
    assert one.draw(record, law).axes
    assert all(record[name].attrs["long_name"] for name in record.data_vars)


def test_a_sum_of_decaying_exponentials_has_no_shoulder() -> None:
    t = np.arange(400.0)
    rates = np.random.default_rng(0).uniform(0.005, 0.1, (50, 2, 1))
    assert not _swing.shoulder(np.exp(-rates * t).sum(axis=1)).any()


def test_two_steps_one_after_the_other_have_a_shoulder() -> None:
    t = np.arange(400.0)
    fall = 1 / (1 + np.exp((t - 60) / 8)) + 0.3 / (1 + np.exp((t - 250) / 12))
    assert _swing.shoulder(fall[None]).all()


def test_difference_of_shares_covers_the_true_one() -> None:
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(200):
        e = _swing.difference(rng.random(80) < 0.5, rng.random(80) < 0.3)
        hits += e.low <= 0.2 <= e.high
    assert hits >= 180  # 95% nominal; below 90% has a chance under 0.2%


def test_pairs_of_sixteen_corners() -> None:
    bits = np.array([[i >> k & 1 for k in range(4)] for i in range(16)])
    assert len(corners.pairs(bits, origin=True)) == 65
    assert len(corners.pairs(bits, origin=False)) == 50
    size = bits.sum(1).astype(float)
    assert corners.in_order(size[None], corners.pairs(bits, origin=True)) == 1
    assert corners.in_order(-size[None], corners.pairs(bits, origin=True)) == 0


def test_measures_are_taken_on_every_step_not_on_the_stored_ones() -> None:
    one = three_layers.SmallSwing(**SMALL)
    how = one.protocol((1.0, 2.0), 0.1)
    sparse = _swing.swing(how, 8, 0, fine=3)
    full = _swing.swing(how, 8, 0)
    assert sparse.sizes["step"] < full.sizes["step"]
    np.testing.assert_array_equal(sparse.s_loss, full.s_loss)


@pytest.mark.parametrize("reading", ["as-written", "as-drawn"])
def test_the_one_layer_law_is_full_batch_descent(reading: str) -> None:
    one = swing.SwingBy(reading=reading, dims=(2,), widths=(4,), epochs=1, points=300)
    how = one.protocol(2, 4)
    centres = np.diag(one.mu) if reading == "as-written" else np.vstack([np.diag(one.mu), np.zeros(2)])
    spread = np.diag(np.square(how.world.sigmas))
    W, b, eta, path = np.zeros((2, 2)), np.zeros(2), how.lr * 2 * how.loss_factor, []
    for _ in range(6):
        path.append(W @ one.mu + b)
        # The gradient of half the squared error, cluster by cluster.
        off = [((W - np.eye(2)) @ c + b, c) for c in centres]
        dW = sum(np.outer(r, c) for r, c in off) / len(off) + (W - np.eye(2)) @ spread
        db = sum(r for r, _ in off) / len(off)
        W, b = W - eta * dW, b - eta * db * how.bias
    said = one.law(_swing.xr.Dataset(coords={"step": np.arange(6), "axis": [1, 2]})).output
    np.testing.assert_allclose(said, path, atol=1e-12)


def test_every_variant_keeps_its_own_looks_to_its_end() -> None:
    one = three_layers.SmallSwing(**SMALL)
    record = one.run(Lab())
    how = one.protocol(one.mu[0], one.lr)
    for variant, longer in (("given", 1), ("slower", three_layers.SLOWER), ("one layer", 1)):
        seen = one.looked_at(record, "1,2", variant)
        assert seen.step[-1] == longer * how.steps
        assert np.isfinite(seen.loss.values).all()
        assert np.isfinite(seen.output.values).all()


def test_truncation_that_discards_nothing_changes_nothing() -> None:
    one = training_set.Truncated(**{**SMALL, "dims": (2, 3), "widths": (3, 4)})
    record = one.run(Lab())
    untouched = record.discarded.values == 0
    assert untouched[:2].all()
    # Two programs, so two ways of rounding.
    assert (record.gap.values[untouched] < 1e-13).all()
    assert (record.gap.values[~untouched] > 1e-9).any()
    assert stats.worst(record.discarded.values[2]).value > 0


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (swing.SwingBy, dict(narrow=5)),
        (swing.SwingBy, dict(mu=(1.0, 2.0, 3.0))),
        (swing.SwingBy, dict(widths=(4, 2))),
        (swing.SwingBy, dict(theta=0.2)),
        (swing.LossDoubleDescent, dict(batch=20000, points=10)),
        (three_layers.SmallSwing, dict(sigma=(0.1,))),
        (corners.ComponentOrder, dict(mu=(1.0,))),
        (corners.ComponentOrder, dict(dim=3)),
    ],
)
def test_impossible_settings_are_refused(kind: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        kind(**wrong)


@pytest.mark.slow
@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("reading", ["as-written", "as-drawn"])
@pytest.mark.parametrize("kind", [k for k, _ in ALL], ids=lambda k: k.__name__)
def test_every_claim_comes_out_as_documented(kind: Any, reading: str, base: int) -> None:
    one = kind(reading=reading, base=base)
    record = one.run(Lab())
    law = one.law(record) if hasattr(one, "law") else None
    odd = [c.id for c in one.claims(record, law) if not c.as_documented]
    assert not odd
