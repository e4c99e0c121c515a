"""The studies over many starts: their parts against plain loops and closed forms, small runs of each."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from saltus.core import stats
from saltus.core.errors import BadInput
from saltus.core.lab import Lab
from saltus.papers.sim.law import hitting
from saltus.papers.sim.studies import _cone, _counts, _deep, _failures, _flows, _grid
from saltus.papers.sim.studies.census import Census
from saltus.papers.sim.studies.failures import Failures
from saltus.papers.sim.studies.recursion import Recursion

SMALL: dict[Any, dict[str, Any]] = {
    Census: dict(starts=64, concepts=(2, 3), sizes=(0.1, 0.001), ratios=(1.1, 2.0), widths=(1, 2, 3),
                 checked=32, solved=4, extra=10.0),
    Failures: dict(ratios=3, sizes=2, runs=16, widths=(2, 3), long_runs=64, long=100.0, depths=(2, 3),
                   deep_sizes=(0.1, 0.5), deep_runs=8, law_runs=2000, solved=4),
    Recursion: dict(runs=64, etas=(0.03, 0.01), widths=(3, 4), sizes=(0.1, 0.01), extra=10.0),
}  # fmt: skip


@pytest.mark.parametrize("reading", ["as-written", "as-drawn"])
@pytest.mark.parametrize("kind", SMALL, ids=lambda kind: kind.__name__)
def test_small_runs_give_claims_and_a_figure(kind: Any, reading: str) -> None:
    one = kind(reading=reading, **SMALL[kind])
    record = one.run(Lab())
    law = one.law(record)
    claims = list(one.claims(record, law))
    json.dumps([c.as_json() for c in claims], allow_nan=False)
    assert len({c.id for c in claims}) == len(claims) == len(one.info.checks)
    assert all(c.expected or c.because for c in claims)
    assert one.draw(record, law).axes
    assert all(record[name].attrs["long_name"] for name in record.data_vars)
    assert record.attrs["run_steps"] > 0
    assert record.nbytes < 2e6  # counts and quantiles, no trajectories


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (Census, dict(theta=(0.01,))),
        (Census, dict(theta=(0.01, 0.001))),
        (Census, dict(sizes=(0.1, 0.1))),
        (Census, dict(concepts=(2, 7))),
        (Failures, dict(ratio=(3.0, 1.2))),
        (Failures, dict(widths=(3, 4))),
        (Failures, dict(time=200.0)),
        (Failures, dict(mu=(2.0, 1.0, 3.0))),
        (Recursion, dict(etas=(0.01,))),
        (Recursion, dict(widths=(3, 6))),
        (Recursion, dict(etas=(1.0, 0.1))),
        (Recursion, dict(mu=(2.0, 1.0))),
    ],
)
def test_settings_that_cannot_be(kind: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput) as caught:
        kind(**wrong)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("width", [2, 3])
def test_learnt_for_good_is_what_the_path_says(width: int) -> None:
    world = _flows.World((1.0, 1.1, 1.2), (0.05,) * 3)
    a, time = _flows.moment(world), 60.0
    grid = _grid.even(a, time, 0.2)
    steps = grid.steps
    starts = 0.1 * _flows.unit_starts("uniform", 200, 3, width, 0)
    seen = _flows.run_flow(a, world.mu, starts, grid, watch=(_flows.Learnt(),), at=np.arange(steps + 1))
    least = np.diagonal(seen["path_w"], axis1=2, axis2=3).min(-1)
    past = least >= 0.5
    # The first step of the last stretch past 1/2.
    since = steps + 1 - np.argmin(past[:, ::-1], axis=1)
    expected = np.where(past[:, -1], since, np.inf) * time / steps
    found = seen["learnt"]
    np.testing.assert_array_equal(np.isinf(found), np.isinf(expected))
    known = np.isfinite(found)
    assert np.all(
        (expected[known] - found[known] >= -1e-9) & (expected[known] - found[known] <= time / steps)
    )
    if width == 3:
        assert known.all()
    else:  # three axes of a rank-two matrix, for a while
        assert past.any(1).sum() > known.sum()


def test_the_horizon_is_long_enough() -> None:
    study = Census(starts=512)
    for size in (0.3, 0.001):
        case = next(c for c in study.cases() if c.family == "size" and c.x == size)
        assert int(_counts._one(study, case).unfinished[0]) == 0


@pytest.mark.parametrize("depth", [3])
def test_deep_networks_follow_a_plain_loop(depth: int) -> None:
    a, time, scale = np.array([0.5, 1.0, 2.0]), 20.0, np.full(6, 0.6)
    found = _deep.learning_times(a, depth, 4, "uniform", scale, time, base=3)
    steps = _deep.steps_of(a, depth, time)
    eta = time / steps
    for run in range(6):
        assert found[run] == _plain_deep(run, a, depth, 4, 0.6, eta, steps)
    assert np.isfinite(found).any()


def _plain_deep(run: int, a: Any, depth: int, width: int, scale: float, eta: float, steps: int) -> float:
    import jax

    key = jax.random.fold_in(jax.random.key(np.uint32(3)), np.uint32(run))
    shapes = [(width if n < depth - 1 else 3, width if n else 3) for n in range(depth)]
    keys = jax.random.split(key, depth)
    layers = [scale * np.asarray(jax.random.uniform(k, s, float)) for k, s in zip(keys, shapes, strict=True)]
    seen = np.full(3, np.inf)
    for n in range(steps + 1):
        product = np.linalg.multi_dot([*layers[::-1], np.eye(3)])
        seen = np.where((np.diag(product) >= 0.5) & np.isinf(seen), n * eta, seen)
        slope = (product - np.eye(3)) * a
        new = []
        for k in range(depth):
            above = (
                np.linalg.multi_dot([np.eye(3), *layers[:k:-1], np.eye(layers[k].shape[0])])
                if k < depth - 1
                else np.eye(3)
            )
            below = np.linalg.multi_dot([*layers[:k][::-1], np.eye(3)]) if k else np.eye(3)
            new.append(layers[k] - eta * above.T @ slope @ below.T)
        layers = new
    return float(seen.max())


def test_the_law_of_the_map_is_chi_squared_for_gaussian_starts() -> None:
    study = Failures(start="gaussian", law_runs=40_000, ratios=3, sizes=2, widths=(2, 3))
    record = _failures.xr.merge(
        [_failures._distribution(study, w) for w in study.widths], join="outer", compat="no_conflicts"
    )
    record = record.assign_coords(ratio=study.grid_ratios(), size=study.grid_sizes(), time=study.grid_times())
    said = study.law(record).late
    for i, ratio in enumerate(study.grid_ratios()):
        a = _flows.moment(study.world(ratio))
        for j, size in enumerate(study.grid_sizes()):
            for w in study.widths:
                deviation = size / np.sqrt(3)
                exact = hitting.gaussian_survival(study.grid_times(), a, w, deviation)[:, 0]
                np.testing.assert_allclose(said.sel(width=w)[i, j], exact, atol=0.015)


def test_an_exponent_is_recovered() -> None:
    rng, etas, runs = np.random.default_rng(0), np.array([0.03, 0.01, 0.003, 0.001]), 5000
    for k, c in ((0.5, 4.0), (1.0, 5.0)):
        inside = 0
        for _ in range(100):
            counts = rng.binomial(runs, 1 - np.exp(-c * etas**k))
            e = _cone.slope(etas, counts, runs)
            inside += e.low <= k <= e.high
        assert inside >= 85  # 95% nominal
    assert np.isnan(_cone.slope(etas, np.zeros(4), runs).value)


def test_a_paired_change_covers_the_true_one() -> None:
    rng, inside = np.random.default_rng(1), 0
    for _ in range(200):
        u = rng.random(400)
        one, other = u < 0.3, u < 0.35  # nested, as fates are
        e = _cone.paired((np.sum(other & ~one), np.sum(one & ~other)), 400)
        inside += e.low <= 0.05 <= e.high
    assert inside >= 175


def test_the_tail_of_an_exponential_is_read_off() -> None:
    study = Failures(**SMALL[Failures])
    time = np.random.default_rng(2).exponential(1 / 0.7, 20_000)
    mark = np.quantile(time, 0.9)
    excess = (time[time > mark] - mark).mean()
    xr = _failures.xr
    record = xr.Dataset({"tail_runs": ("width", [2000]), "tail_excess": ("width", [excess])}, {"width": [3]})
    law = xr.Dataset({"tail_rate": ("columns", [0.7])}, {"columns": [3]})
    e = _failures.tail(record, law, 3, 3)
    assert e.low < 1 < e.high
    assert e.high - e.low < 0.1
    assert study.power == 1


def test_counts_become_shares() -> None:
    study = Census(**SMALL[Census])
    case = study.cases()[0]
    record = _counts._one(study, case)
    every = _counts.share(record, "concepts", 2, "uniform", 1, 0.001, 0)
    assert (every.value, every.n) == (1.0, 64)
    both = _counts.share(record, "concepts", 2, "uniform", 1, 0.001, 2)
    positive = _counts.share(record, "concepts", 2, "uniform", 1, 0.001, 2, sign=1)
    assert both.value == positive.value  # a non-negative start has w_12 >= 0
    assert isinstance(_counts.too_many(record), stats.Estimate)


def test_a_constant_ratio_gives_the_reference_shares() -> None:
    # 5000 starts, theta .1%: .16/.66/.19 non-negative, .76/.24/.008 Gaussian.
    study = Census(starts=1024, concepts=(2, 3))
    cases = [c for c in study.cases() if c.family == "constant ratio" and c.x == 3]
    assert [c.world.mu for c in cases] == [(1.0, 1.5, 2.25)] * 2
    for case, expected in zip(cases, ((0.16, 0.66, 0.19), (0.76, 0.24, 0.008)), strict=True):
        counts = _counts._one(study, case)["count"].isel(setting=0, theta=0).sum("sign")
        seen = [int(counts.sel(descents=k)) / 1024 for k in (1, 2, 3)]
        np.testing.assert_allclose(seen, expected, atol=0.045)
    assert Census().kept() == [2, 3, 4, 5, 6]
    assert Census(reading="as-drawn").kept() == [2, 3, 4]


@pytest.mark.slow
@pytest.mark.parametrize("reading", ["as-written", "as-drawn"])
@pytest.mark.parametrize("kind", SMALL, ids=lambda kind: kind.__name__)
def test_documented_defaults(kind: Any, reading: str) -> None:
    one = kind(reading=reading)
    record = one.run(Lab())
    wrong = [c.id for c in one.claims(record, one.law(record)) if not c.as_documented]
    assert not wrong
