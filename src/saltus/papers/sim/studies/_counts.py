"""The census of descents computed: one part a setting, kept as counts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from saltus._lazy import np, xr
from saltus.core import stats
from saltus.papers.sim.studies import _flows, _grid
from saltus.papers.sim.studies._flows import World
from saltus.papers.sim.studies._grid import Grid

if TYPE_CHECKING:
    import xarray

    from saltus.core.lab import Lab
    from saltus.papers.sim.studies.census import Census

__all__ = ["Case", "count", "share", "too_many"]

MOST = 7  # counts of this many descents and more share a bin
UNSTABLE = 1.05  # eta max(a): gradient descent on U is stable below 1 in the paper's clock
UNSTABLE_STEPS = 1000
COARSER = 4  # Euler's time step in units of the integrator's: as much work


class Case(NamedTuple):
    """One setting: the family it belongs to, and where in it."""

    family: str
    x: float
    world: World
    start: str
    size: float
    width: int
    power: int

    @property
    def name(self) -> str:
        return f"{self.family} {self.x:g} {self.start} power {self.power}"

    def rates(self) -> Any:
        return _flows.moment(self.world) ** self.power

    def horizon(self, study: Census) -> float:
        return float(_grid.learnt_by(self.rates(), self.size, study.extra).max())

    def grid(self, study: Census, finer: float = 1.0) -> Grid:
        return _grid.paced(self.rates(), self.horizon(study), finer * study.stride, self.size, study.extra)

    def starts(self, study: Census, runs: int) -> Any:
        unit = _flows.unit_starts(self.start, runs, len(self.world.mu), self.width, study.base)
        return unit * _flows.same_spread(self.start, self.size)


def _watch(study: Census) -> tuple[Any, ...]:
    from saltus.papers.sim import symmetric

    return (symmetric.Descents(study.theta), symmetric.Hits((0.5,)))


def _flow(study: Census, case: Case, starts: Any, grid: Grid, how: str = "flow") -> dict[str, Any]:
    return _flows.run_flow(case.rates(), case.world.mu, starts, grid, how=how, watch=_watch(study))


def _one(study: Census, case: Case) -> xarray.Dataset:
    """Counts of one setting [sign of w_12(0), theta, number of descents], and how many runs did not end."""
    starts = case.starts(study, study.starts)
    grid = case.grid(study)
    seen = _flow(study, case, starts, grid)
    negative = np.sum(starts[:, 0] * starts[:, 1], axis=-1) < 0
    number = np.minimum(seen["descents"], MOST)
    counts = [
        [np.bincount(number[chosen, t], minlength=MOST + 1) for t in range(len(study.theta))]
        for chosen in (negative, ~negative)
    ]
    return xr.Dataset(
        {
            "count": (("setting", "sign", "theta", "descents"), np.asarray(counts)[None]),
            "unfinished": ("setting", [int(np.isinf(seen["hit"]).any((1, 2)).sum())]),
            "steps": ("setting", [grid.steps]),
            "concepts": ("setting", [len(case.world.mu)]),
        },
        coords={
            "family": ("setting", [case.family]),
            "x": ("setting", [float(case.x)]),
            "start": ("setting", [case.start]),
            "power": ("setting", [case.power]),
            "sign": [-1, 1],
            "theta": list(study.theta),
            "descents": np.arange(MOST + 1),
        },
    )


def _accuracy(study: Census, power: int) -> xarray.Dataset:
    """The integrator on s = 3: against half its time step, Euler's method and an adaptive solver."""
    case = Case("concepts", 3, study.spaced(3), "uniform", study.size, 3, power)
    starts = case.starts(study, study.checked)
    a, horizon = case.rates(), case.horizon(study)
    ways = {
        "flow": (case.grid(study), "flow"),
        "half": (case.grid(study, 0.5), "flow"),
        "euler": (_grid.even(a, horizon, COARSER * study.stride), "gd"),
    }
    counts = [_flow(study, case, starts, *way)["descents"][:, 0] for way in ways.values()]
    error = _flows.against_solver(a, case.world.mu, starts[: study.solved], case.grid(study))
    # Steps past the stability limit: the strongest axis never settles, and the detector counts it.
    past = Grid(UNSTABLE / float(np.max(a)), UNSTABLE_STEPS)
    shaken = _flow(study, case, starts, past, "gd")
    return xr.Dataset(
        {
            "recount": (("accuracy_power", "by", "checked"), np.asarray(counts)[None]),
            "solver_error": (("accuracy_power", "of", "solved"), error[None]),
            "unstable": (("accuracy_power", "checked"), shaken["descents"][None, :, 0]),
        },
        coords={"accuracy_power": [power], "by": list(ways), "of": ["flow", "other"]},
    )


def count(study: Census, lab: Lab) -> xarray.Dataset:
    """Every setting and the checks of accuracy, each a part."""
    cases = study.cases()
    with lab.progress("settings") as tick:
        parts = []
        for number, case in enumerate(cases):
            parts.append(lab.keep(case.name, partial(_one, study, case)))
            tick(number + 1, len(cases) + 2)
        checks = []
        for power in (1, 2):
            checks.append(lab.keep(f"accuracy {power}", partial(_accuracy, study, power)))
            tick(len(cases) + power, len(cases) + 2)
    data = xr.merge([xr.concat(parts, "setting"), xr.concat(checks, "accuracy_power")])
    data.attrs.update(run_steps=study.run_steps())
    for name, words in (
        ("count", "starts with so many descents"),
        ("unfinished", "starts with an axis not learnt at the end"),
        ("steps", "steps of the integrator"),
        ("concepts", "number of concepts"),
        ("recount", "descents of the same starts by other methods"),
        ("solver_error", "largest difference of an entry of W"),
        ("unstable", "descents under gradient descent past its stability limit"),
    ):
        data[name].attrs.update(long_name=words, units="1")
    return data


def _at(record: xarray.Dataset, family: str, x: float, start: str, power: int) -> xarray.DataArray:
    found = (record.family == family) & (record.x == x) & (record.start == start) & (record.power == power)
    return record["count"].isel(setting=int(np.flatnonzero(found.values)[0]))


def share(
    record: xarray.Dataset,
    family: str,
    x: float,
    start: str,
    power: int,
    theta: float,
    least: int,
    sign: int | None = None,
) -> stats.Estimate:
    """The share of starts with at least so many descents; with a sign, of those with that sign of w_12(0)."""
    counts = _at(record, family, x, start, power).sel(theta=theta)
    counts = counts.sum("sign") if sign is None else counts.sel(sign=sign)
    return stats.share_of(int(counts.sel(descents=slice(least, None)).sum()), int(counts.sum()))


def too_many(record: xarray.Dataset) -> stats.Estimate:
    """The share of starts with more descents than concepts, at the lowest threshold."""
    counts = record["count"].isel(theta=0).sum("sign")
    more = counts.where(counts.descents > record.concepts, 0)
    return stats.share_of(int(more.sum()), int(counts.sum()))
