"""The recursion on W from many starts, computed: which leave the PSD cone, and which were to by theory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from saltus._lazy import np, xr
from saltus.core import stats
from saltus.papers.sim.studies import _flows, _grid

if TYPE_CHECKING:
    import xarray

    from saltus.core.lab import Lab
    from saltus.papers.sim.studies.recursion import Recursion

__all__ = ["compute", "paired", "run_steps", "slope"]

COUNTS = {
    "left": "starts whose W gets a negative eigenvalue",
    "negative": "starts whose W gets a negative diagonal entry",
    "diverged": "starts whose loss passes a million times its first value",
    "predicted": "starts that leave by the linear phase",
    "agree": "starts whose fate is the predicted one",
    "agree_other": "starts whose fate is the one predicted for the next start",
}
FATE = 40.0  # further time, in units of 1/(2 a_1), for runs that left the cone to diverge


def _time(study: Recursion, size: float, more: float = 0.0) -> float:
    return float(_grid.learnt_by(study.rates(), size, study.extra + more).max())


def _steps(study: Recursion, eta: float, size: float, more: float = 0.0) -> int:
    return int(np.ceil(_time(study, size, more) / eta))


def run_steps(study: Recursion) -> float:
    """Steps of one start, over all starts."""
    eta, size = study.eta, study.size
    each = sum(_steps(study, e, size) for e in study.etas) * len(study.widths)
    each += sum(_steps(study, e, size) for e in study.gd_etas()) * len(study.widths)
    each += sum(_steps(study, eta, x) for x in (*study.sizes, size)) + _steps(study, eta / 3, size)
    each += 2 * _steps(study, eta, size) + _steps(study, eta / 3, size) + _steps(study, eta, size, FATE)
    return float(each * study.runs)


def _starts(study: Recursion, width: int, size: float) -> Any:
    return size * _flows.unit_starts("uniform", study.runs, len(study.mu), width, study.base)


def _fates(
    study: Recursion, starts: Any, eta: float, size: float, how: str = "recursion", dtype: str = "float64",
    more: float = 0.0,
) -> dict[str, Any]:  # fmt: skip
    """Flags [n] of what became of every start."""
    from saltus.papers.sim import symmetric

    watch = (symmetric.Cone(), symmetric.Lowest(), symmetric.Diverged())
    n = len(starts)
    seen = symmetric.evolve(
        study.rates(),
        study.mu,
        n,
        how=how,
        start=starts,
        eta=eta,
        steps=_steps(study, eta, size, more),
        watch=watch,
        dtype=dtype,
        block=_flows.block_of(n),
    )
    names = {"left": "indefinite_step", "negative": "negative_step", "diverged": "diverged_step"}
    return {name: np.isfinite(seen[key]) for name, key in names.items()}


def _predicted(study: Recursion, starts: Any, eta: float) -> Any:
    from saltus.papers.sim.law import cone

    return cone.doomed_by_linear_phase(study.rates(), starts @ np.swapaxes(starts, 1, 2), eta)


def _counted(fates: dict[str, Any], predicted: Any) -> dict[str, int]:
    left = fates["left"]
    found = {name: int(np.sum(flag)) for name, flag in fates.items()}
    found["predicted"] = int(np.sum(predicted))
    found["agree"] = int(np.sum(predicted == left))
    found["agree_other"] = int(np.sum(np.roll(predicted, 1) == left))
    return found


def _step_size(study: Recursion, width: int, eta: float) -> xarray.Dataset:
    starts = _starts(study, width, study.size)
    found = _counted(_fates(study, starts, eta, study.size), _predicted(study, starts, eta))
    return xr.Dataset(
        {name: (("width", "eta"), [[value]]) for name, value in found.items()},
        coords={"width": [width], "eta": [eta]},
    )


def _descent(study: Recursion, width: int, eta: float) -> xarray.Dataset:
    """Gradient descent on U, with the same step from the same starts."""
    fates = _fates(study, _starts(study, width, study.size), eta, study.size, how="gd")
    return xr.Dataset(
        {f"gd_{name}": (("width", "gd_eta"), [[int(flag.sum())]]) for name, flag in fates.items()},
        coords={"width": [width], "gd_eta": [eta]},
    )


def _sizes(study: Recursion) -> xarray.Dataset:
    """The same starts at several sizes, and at the reference size with a third of the step."""
    s, eta = len(study.mu), study.eta
    left = _fates(study, _starts(study, s, study.size), eta, study.size)["left"]
    finer = _fates(study, _starts(study, s, study.size), eta / 3, study.size)["left"]
    found, gained = [], []
    for size in study.sizes:
        starts = _starts(study, s, size)
        fates = _fates(study, starts, eta, size)
        found.append(_counted(fates, _predicted(study, starts, eta)))
        gained.append([int(np.sum(fates["left"] & ~left)), int(np.sum(left & ~fates["left"]))])
    data = {f"size_{name}": ("size", [f[name] for f in found]) for name in ("left", "negative", "predicted")}
    return xr.Dataset(
        {
            **data,
            "size_changed": (("size", "way"), gained),
            "finer_changed": ("way", [int(np.sum(finer & ~left)), int(np.sum(left & ~finer))]),
        },
        coords={"size": list(study.sizes), "way": ["gained", "lost"]},
    )


def _precision(study: Recursion) -> xarray.Dataset:
    """Negative diagonals in both precisions, start by start; and at a third of the step."""
    starts, eta = _starts(study, len(study.mu), study.size), study.eta
    ways = {"float64": (eta, "float64"), "float32": (eta, "float32"), "finer": (eta / 3, "float64")}
    fates = {k: _fates(study, starts, e, study.size, dtype=t)["negative"] for k, (e, t) in ways.items()}
    return xr.Dataset(
        {
            "precise_negative": ("way_of", [int(f.sum()) for f in fates.values()]),
            "precise_changed": ("way_of", [int(np.sum(f != fates["float64"])) for f in fates.values()]),
        },
        coords={"way_of": list(ways)},
    )


def _fate(study: Recursion) -> xarray.Dataset:
    """What becomes, in a longer time, of the starts that leave the cone, and of the others."""
    starts = _starts(study, len(study.mu), study.size)
    fates = _fates(study, starts, study.eta, study.size, more=FATE)
    groups = (fates["left"], ~fates["left"])
    return xr.Dataset(
        {
            "fate_diverged": ("group", [int(np.sum(fates["diverged"] & g)) for g in groups]),
            "fate_starts": ("group", [int(g.sum()) for g in groups]),
        },
        coords={"group": ["left", "stayed"]},
    )


def compute(study: Recursion, lab: Lab) -> xarray.Dataset:
    """Every setting, each a part."""
    jobs: list[tuple[str, Any]] = []
    for w in study.widths:
        for e in study.etas:
            jobs.append((f"width {w} eta {e:g}", lambda w=w, e=e: _step_size(study, w, e)))
        for e in study.gd_etas():
            jobs.append((f"descent width {w} eta {e:g}", lambda w=w, e=e: _descent(study, w, e)))
    jobs += [("sizes", lambda: _sizes(study)), ("precision", lambda: _precision(study))]
    jobs += [("fate", lambda: _fate(study))]
    found = []
    with lab.progress("settings") as tick:
        for number, (name, make) in enumerate(jobs, 1):
            found.append(lab.keep(name, make))
            tick(number, len(jobs))
    data = xr.merge(found, join="outer", compat="no_conflicts")
    data.attrs.update(scale=study.scale, run_steps=run_steps(study))
    for name in map(str, data.data_vars):
        data[name].attrs.update(long_name=COUNTS.get(name, name.replace("_", " ")), units="starts")
    data.eta.attrs.update(long_name="step of the recursion", units="paper's clock")
    return data


def slope(etas: Any, counts: Any, runs: int) -> stats.Estimate:
    """Exponent k of a share that grows as 1 - exp(-c eta^k), by weighted least squares.

    The law is a power of small shares; -ln(1 - share) is the share while it is small and does not saturate.
    """
    etas, counts = np.asarray(etas, float), np.asarray(counts, float)
    used = (counts > 0) & (counts < runs)
    if used.sum() < 2:
        return stats.Estimate(float("nan"), -np.inf, np.inf, runs)
    x, share = np.log(etas[used]), counts[used] / runs
    y = np.log(-np.log1p(-share))
    weight = runs * (1 - share) * np.log1p(-share) ** 2 / share  # one over the binomial variance of y
    centre = np.average(x, weights=weight)
    spread = np.sum(weight * (x - centre) ** 2)
    value = float(np.sum(weight * (x - centre) * y) / spread)
    # Steps share their starts, so that errors go together and the true interval is narrower.
    half = 1.96 / float(np.sqrt(spread))
    return stats.Estimate(value, value - half, value + half, runs)


def paired(changed: Any, runs: int) -> stats.Estimate:
    """The change of a share between two settings on the same starts, changed = (gained, lost)."""
    gained, lost = (int(c) for c in changed)
    value = (gained - lost) / runs
    half = 1.96 * float(np.sqrt(max(gained + lost - (gained - lost) ** 2 / runs, 1.0))) / runs
    return stats.Estimate(value, value - half, value + half, runs)
