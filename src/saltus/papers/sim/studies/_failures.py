"""The map of failures computed, kept as counts; and its law."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from saltus._lazy import np, xr
from saltus.core import stats
from saltus.papers.sim.studies import _deep, _flows, _grid

if TYPE_CHECKING:
    import xarray

    from saltus.core.lab import Lab
    from saltus.papers.sim.studies._grid import Grid
    from saltus.papers.sim.studies.failures import Failures

__all__ = ["compute", "cost", "law", "tail"]

PART = 2**17  # runs of a part: small enough to lose little, large enough to fill an accelerator
KEPT = 1024  # runs of which times are kept one by one
LEVELS = 1000
LAW_KEYS = 2**31  # the law's own starts have keys that no training has
TAIL = 0.9  # quantile where the tail begins


EXTRA = 20.0  # log of the rarest start, squared, that has learnt an axis before steps get longer


class Cost(NamedTuple):
    trainings: float
    run_steps: float


def _rates(study: Failures, world: _flows.World) -> Any:
    return _flows.moment(world) ** study.power


def _grid_of(study: Failures, a: Any, time: float, size: float) -> Grid:
    return _grid.paced(a, time, study.stride, size, EXTRA)


def cost(study: Failures) -> Cost:
    """How many trainings, and how many steps of one training they take together."""
    cells = study.ratios * study.sizes * len(study.widths) * study.runs
    followed = sum(study.followed_runs(w) for w in study.widths)
    deep = len(study.deep_sizes) * study.deep_runs
    a, one = _rates(study, study.followed()), _rates(study, study.world(1.5))
    steps = cells * _grid_of(study, one, study.horizon, min(study.size)).steps
    steps += followed * _grid_of(study, a, study.long, study.long_size).steps
    steps += deep * sum(_deep.steps_of(a, n, study.deep_horizon) for n in study.depths)
    return Cost(cells + followed + deep * len(study.depths), steps)


def _rows(study: Failures, width: int, rows: Any) -> xarray.Dataset:
    """Counts of late runs for some rows of the map [ratio, size, time]."""
    ratios, sizes, times = study.grid_ratios()[rows], study.grid_sizes(), study.grid_times()
    n, shape = study.runs, (len(rows), study.sizes, study.runs)
    first = int(rows[0]) * study.sizes * n
    unit = _flows.unit_starts(study.start, math.prod(shape), 3, width, study.base, first)
    size = np.broadcast_to(_flows.same_spread(study.start, 1.0) * sizes[None, :, None], shape).ravel()
    worlds = [study.world(r) for r in ratios]
    each = study.sizes * n
    a = np.repeat([_rates(study, w) for w in worlds], each, axis=0)
    target = np.repeat([w.mu for w in worlds], each, axis=0)
    seen = _flows.run_flow(
        a,
        target,
        unit * size[:, None, None],
        _grid_of(study, a, study.horizon, min(study.size)),
        watch=(_flows.Learnt(),),
    )
    time = seen["learnt"].reshape(shape)
    stuck = (seen["loss"] > 0.1 * seen["start_loss"]).reshape(shape)
    return xr.Dataset(
        {
            "late": (("width", "ratio", "size", "time"), (time[..., None] > times).sum(2)[None]),
            "lossy": (("width", "ratio", "size"), stuck.sum(2)[None]),
        },
        coords={"width": [width], "ratio": ratios, "size": sizes, "time": times},
    )


def _followed(study: Failures, width: int) -> xarray.Dataset:
    """One world to the end: when it is learnt, against the law from the same start."""
    from saltus.papers.sim.law import hitting

    world, n = study.followed(), study.followed_runs(width)
    a = _rates(study, world)
    size = _flows.same_spread(study.start, study.long_size)
    starts = size * _flows.unit_starts(study.start, n, 3, width, study.base)
    # Rows of equal rates: the program of the map, compiled already, serves here too.
    seen = _flows.run_flow(
        np.tile(a, (n, 1)),
        np.tile(world.mu, (n, 1)),
        starts,
        _grid_of(study, a, study.long, study.long_size),
        watch=(_flows.Learnt(),),
    )
    time = seen["learnt"]
    kept = slice(0, min(KEPT, study.long_runs))
    with _flows.on_host():
        half_time = np.asarray(hitting.half_time(starts[kept], a))[:, 0]
    by = {
        "schur": half_time,
        "diagonal": -np.log(np.sum(starts[kept, 0] ** 2, axis=-1)) / (2 * a[0]),
    }
    mark = np.quantile(time, TAIL, method="lower")
    # Nothing is known of the tail of what does not end.
    over = (time[time > mark] - mark) if np.isfinite(time).all() else np.zeros(0)
    return xr.Dataset(
        {
            "long_never": ("width", [int(np.isinf(time).sum())]),
            "long_late": ("width", [int((time > study.published).sum())]),
            "long_time": (("width", "run"), time[None, kept]),
            "end_loss": (("width", "run"), seen["loss"][None, kept]),
            "predicted": (("width", "by", "run"), np.stack(list(by.values()))[None]),
            "tail_excess": ("width", [float(over.mean()) if over.size else np.nan]),
            "tail_runs": ("width", [over.size]),
        },
        coords={"width": [width], "by": list(by)},
    )


def _distribution(study: Failures, width: int) -> xarray.Dataset:
    """Quantiles of 1/2 ln(1/sigma_1) at start size 1: all that the law needs of the starts.

    sigma_1 does not depend on the signals' sizes, only on their order, and scales with the start's square.
    """
    from saltus.papers.sim.law import hitting

    starts = _flows.unit_starts(study.start, study.law_runs, 3, width, study.base, LAW_KEYS)
    starts = _flows.same_spread(study.start, 1.0) * starts
    with np.errstate(divide="ignore"), _flows.on_host():
        schur = -0.5 * np.log(np.asarray(hitting.schur(starts, np.array([1.0, 2.0, 3.0])))[:, 0])
        diagonal = -0.5 * np.log(np.sum(starts[:, 0] ** 2, axis=-1))
    levels = (np.arange(LEVELS) + 0.5) / LEVELS
    found = [np.quantile(x, levels, method="lower") for x in (schur, diagonal)]
    return xr.Dataset(
        {"quantile": (("width", "by", "level"), np.stack(found)[None])},
        coords={"width": [width], "by": ["schur", "diagonal"], "level": levels},
    )


def _depth(study: Failures, depth: int) -> xarray.Dataset:
    """Plain linear networks of one depth: late runs over the size of the start."""
    world, sizes = study.followed(), np.asarray(study.deep_sizes, float)
    scale = np.repeat(_flows.same_spread(study.start, 1.0) * sizes, study.deep_runs)
    a = _rates(study, world)
    time = _deep.learning_times(
        a, depth, study.deep_width, study.start, scale, study.deep_horizon, study.base
    )
    late = ~(time.reshape(len(sizes), -1) <= study.deep_horizon)
    return xr.Dataset(
        {"deep_late": (("depth", "deep_size"), late.sum(1)[None])},
        coords={"depth": [depth], "deep_size": sizes},
    )


def _accuracy(study: Failures) -> xarray.Dataset:
    world = study.followed()
    starts = study.long_size * _flows.unit_starts("uniform", study.solved, 3, 3, study.base)
    a = _rates(study, world)
    grid = _grid_of(study, a, study.horizon, study.long_size)
    error = _flows.against_solver(a, world.mu, starts, grid)
    return xr.Dataset({"solver_error": (("of", "solved"), error)}, coords={"of": ["flow", "other"]})


def compute(study: Failures, lab: Lab) -> xarray.Dataset:
    """The map, one world to the end, the law's distribution and the deep networks, part by part."""
    lump = max(1, PART // (study.sizes * study.runs))
    rows = [np.arange(k, min(k + lump, study.ratios)) for k in range(0, study.ratios, lump)]
    total = len(study.widths) * (len(rows) + 2) + len(study.depths) + 1
    done = 0
    found = []
    with lab.progress("trainings") as tick:

        def part(name: str, make: Any) -> None:
            nonlocal done
            found.append(lab.keep(name, make))
            done += 1
            tick(done, total)

        for w in study.widths:
            for r in rows:
                part(f"map, width {w}, rows from {r[0]}", lambda w=w, r=r: _rows(study, w, r))
            part(f"followed, width {w}", lambda w=w: _followed(study, w))
            part(f"law, width {w}", lambda w=w: _distribution(study, w))
        for n in study.depths:
            part(f"depth {n}", lambda n=n: _depth(study, n))
        part("accuracy", lambda: _accuracy(study))
    data = xr.merge(found, join="outer", compat="no_conflicts")
    count = cost(study)
    data.attrs.update(run_steps=count.run_steps, trainings=count.trainings)
    data["runs"] = study.runs
    return _described(data)


def _described(data: xarray.Dataset) -> xarray.Dataset:
    for name, words in (
        ("late", "trainings of a cell that have not learnt by this time"),
        ("lossy", "trainings of a cell that end above a tenth of their first loss"),
        ("runs", "trainings of a cell"),
        ("long_never", "trainings of the followed world that never learn"),
        ("long_late", "its trainings that have not learnt by the published time"),
        ("end_loss", "its loss at the test point at the end"),
        ("tail_runs", "its trainings in the slowest tenth"),
        ("quantile", "half the logarithm of 1/sigma_1 at start size 1"),
        ("deep_late", "plain linear networks that have not learnt by their horizon"),
        ("solver_error", "largest difference of an entry of W"),
    ):
        data[name].attrs.update(long_name=words, units="1")
    for name, words in (
        ("long_time", "time from which every axis is past one half"),
        ("predicted", "that time by the law"),
        ("tail_excess", "mean time by which the slowest tenth exceeds the others"),
        ("time", "time"),
    ):
        data[name].attrs.update(long_name=words, units="paper's clock")
    return data


def law(study: Failures, record: xarray.Dataset) -> xarray.Dataset:
    """P(t_1/2 > t) in every cell, the end of the followed world, and the rate of its tail."""
    from saltus.papers.sim.law import hitting

    weakest = np.asarray([_rates(study, study.world(float(r)))[0] for r in record.ratio.values])
    # x = 1/2 ln(1/sigma_1) at size 1; t_1/2 > t where x > a_1 t + ln(size).
    need = weakest[:, None, None] * record.time.values + np.log(record["size"].values)[:, None]
    dims = ("width", "ratio", "size", "time")

    def late(by: str) -> Any:
        levels = record.level.values
        # A width below s has infinite quantiles: larger than anything needed.
        rows = [np.minimum(record["quantile"].sel(width=w, by=by).values, 1e300) for w in record.width.values]
        return np.stack([1 - np.interp(need, row, levels, left=0.0, right=1.0) for row in rows])

    world = study.followed()
    a, mu = _rates(study, world), np.square(world.mu)
    columns = sorted({int(w) for w in record.width.values} | {len(mu), len(mu) + 1})
    missing = {w: 0.5 * float(mu[: max(0, len(mu) - w)].sum()) for w in record.width.values}
    fewer = {w: 0.5 * float(mu[: max(0, len(mu) - w + 1)].sum()) for w in record.width.values}
    return xr.Dataset(
        {
            "late": (dims, late("schur")),
            "late_diagonal": (dims, late("diagonal")),
            "end_loss": ("width", list(missing.values())),
            "end_loss_fewer": ("width", list(fewer.values())),
            "tail_rate": ("columns", [float(hitting.tail_exponent(a, w)) for w in columns]),
        },
        coords={**{k: record[k] for k in dims}, "columns": columns},
    )


def tail(record: xarray.Dataset, law: xarray.Dataset, width: int, columns: int) -> stats.Estimate:
    """Fitted rate of the slowest tenth over the law's; the interval is that of an exponential's rate."""
    n, excess = int(record.tail_runs.sel(width=width)), float(record.tail_excess.sel(width=width))
    if n < 6 or not excess > 0:
        return stats.Estimate(math.nan, -math.inf, math.inf, n)
    value = 1 / (excess * float(law.tail_rate.sel(columns=columns)))
    half = 1.96 * value / math.sqrt(n)
    return stats.Estimate(value, value - half, value + half, n)
