"""Theorem 4.1 as a measurement: how far training is from Algorithm 1 as the start shrinks, down to
10^-1000."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from saltus._lazy import np, xr
from saltus.core import claim, stats
from saltus.core.errors import BadInput
from saltus.core.settings import setting
from saltus.core.study import study
from saltus.papers.rank.studies import _toys
from saltus.papers.rank.studies._toys import Toys, finite

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab

FINE = 6000
WINDOW = 0.1  # half-width of fixed windows around the T_k, in rescaled time
SHARP = 6.0  # half-width of windows around T_k + C_k / L, in time constants over L


@study(
    "rank/limit",
    cites="boixadsera2023rank",
    figure="Theorem 4.1",
    cost="half a minute on two cores; --scale paper: minutes",
    version=2,
    checks=(
        "at fixed times between stages the distance to the staircase vanishes (control: a large start)",
        "the distance averaged over time falls as 1 / log(1/alpha) (control: its largest value)",
        "the largest distance outside fixed windows is small at 10^-32 (control: without windows)",
        "outside windows around T_k + C_k / L it is (control: windows of that width around T_k)",
        "stages are late by C_k / L (control: the next stage's C)",
        "what is left after T_k + C_k / L is less than that (control: after T_k)",
    ),
)
@dataclass(frozen=True)
class TheLimit(Toys):
    """Training tends to Algorithm 1 as slowly as 1 / log(1/alpha), at a rate that it can tell."""

    powers: tuple[float, ...] = setting(
        (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 300.0, 1000.0),
        "starts alpha = 10^-power",
        above=0.3,
        high=1e4,
    )
    deep: float = setting(32.0, "rates are fitted from alpha = 10^-deep on", above=0.3)

    def check(self) -> None:
        if list(self.powers) != sorted(set(self.powers)):
            raise BadInput("powers come in ascending order, each once, as in 1,8,32")
        if sum(p >= self.deep for p in self.powers) < 3:
            raise BadInput(f"a rate needs three starts from 10^-{self.deep:g} on: give more powers")

    def run(self, lab: Lab) -> xarray.Dataset:
        parts = {f"teacher {r}": partial(self.one, r) for r in range(self.teachers)}
        data = _toys.padded(lab.keep_all(parts, "teachers")).assign_coords(power=list(self.powers))
        return _toys.describe(
            data,
            apart=("distance to the staircase in the middle of a stage, largest of all products", "1"),
            mean_apart=("largest difference of a product from the staircase, average over time", "1"),
            most_apart=("the same, largest of all times", "1"),
            outside=("the same, outside windows of 0.1 around T_k", "1"),
            outside_due=("the same, outside windows of 6 time constants / L around T_k + C_k / L", "1"),
            outside_plain=("the same, with windows of that width around T_k", "1"),
        )

    def one(self, run: int) -> xarray.Dataset:
        """One teacher from every start, against the staircase."""
        toy = self.toy(run)
        found = _toys.counted(toy, self.learnt, self.atol)
        whole = _toys.staircase(toy, self.atol)
        K, until = len(found.stages) - 1, _toys.horizon(found)
        T, C = found.stacked("T"), found.stacked("C")
        times = np.linspace(0.0, until, FINE + 1)[1:]
        rate = np.asarray([abs(s.g[s.winner]) for s in found.stages[:-1]])
        between = (T[1:-1] + T[2:]) / 2
        rows = []
        for power in self.powers:
            flow = _toys.followed(toy, power, until, self.atol)
            L = flow.L
            seen = flow.products(times)
            far = abs(seen - whole.at(times)).max(1)
            # Against a staircase whose steps are late by C_k / L.
            shifted = abs(seen - whole.at(times, L)).max(1)
            near = {
                "outside": abs(times[:, None] - T[1:]) < WINDOW,
                "outside_plain": abs(times[:, None] - T[1:]) < SHARP / (rate * L),
                "outside_due": abs(times[:, None] - T[1:] - C[1:] / L) < SHARP / (rate * L),
            }
            outside = {
                name: largest((shifted if name == "outside_due" else far)[~inside.any(1)])
                for name, inside in near.items()
            }
            rows.append(
                xr.Dataset(
                    {
                        "half_rise": ("stage", flow.half_rises(found.stages)),
                        "mean_apart": ((), far.mean()),
                        "most_apart": ((), far.max()),
                        **{name: ((), value) for name, value in outside.items()},
                    },
                    coords={"stage": np.arange(1, K + 1)},
                ).merge(
                    xr.Dataset(
                        {"apart": ("stage", abs(flow.products(between) - whole.at(between)).max(1))},
                        coords={"stage": np.arange(1, K)},
                    ),
                    join="outer",
                )
            )
        data = xr.concat(rows, "power", join="outer").assign_coords(power=list(self.powers))
        return xr.merge([_toys.stairs(toy, self.learnt, self.atol), data], join="outer")

    def law(self, record: xarray.Dataset) -> xarray.Dataset:
        """C_k / L: how late a stage is."""
        late = record.C / (record.power * np.log(10.0))
        late.attrs.update(long_name="C_k / log(1/alpha)", units="rescaled time")
        return xr.Dataset({"late": late})

    def claims(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        stages = _toys.counting(record)
        last, first = record.power.values[-1], record.power.values[0]
        apart = record.apart.where(stages)
        yield claim.above(
            "theorem",
            f"Half way between T_k and T_k+1 no product is more than 0.02 from θ^k at α = 10^-{last:g} "
            f"(share of "
            "stages).",
            stats.share(finite(apart.sel(power=last).values) < 0.02),
            0.9,
            control=(f"α = 10^-{first:g}", stats.share(finite(apart.sel(power=first).values) < 0.02)),
        )
        deep = record.sel(power=record.power.values[record.power.values >= self.deep])
        L = deep.power.values * np.log(10.0)
        yield claim.within(
            "rate",
            "The distance averaged over time goes as L to the power -1 (fitted power, median over teachers).",
            stats.median([slope(L, row) for row in deep.mean_apart.transpose("run", "power").values]),
            (-1.1, -0.9),
            control=(
                "the largest distance of all times",
                stats.median([slope(L, row) for row in deep.most_apart.transpose("run", "power").values]),
            ),
        )
        at = deep.isel(power=0)
        scale = abs(record.saddle).max(("stage", "coordinate"))
        yield claim.below(
            "fixed-windows",
            f"Outside windows of {WINDOW:g} around the T_k no product is far from the staircase at α = "
            f"10^-{self.deep:g} (largest distance over the largest product, median over teachers).",
            stats.median((at.outside / scale).values),
            0.05,
            control=("without windows", stats.median((at.most_apart / scale).values)),
            expected=False,
            because="stages are late by C_k/L, here as much as the windows are wide, and last for O(1/L)",
        )
        yield claim.below(
            "due-windows",
            f"Outside windows of {SHARP:g} time constants around T_k + C_k/L none is, from a staircase "
            f"that late.",
            stats.median((at.outside_due / scale).values),
            0.05,
            control=("windows of that width around T_k", stats.median((at.outside_plain / scale).values)),
        )
        late = (deep.half_rise - record["T"]).where(stages)
        fitted = through_origin(1 / L, late.transpose("run", "stage", "power").values)
        own, other = record.C.where(stages), record.C.shift(stage=-1).where(stages)
        yield claim.below(
            "lateness",
            "Fitted slopes of T_k(α) - T_k against 1/L are C_k (relative error, median over stages).",
            stats.median(finite(abs(fitted / own.transpose("run", "stage").values - 1))),
            0.01,
            control=(
                "C of the next stage",
                stats.median(finite(abs(fitted / other.transpose("run", "stage") - 1))),
            ),
        )
        end = record.sel(power=last)
        left = abs(end.half_rise - record["T"] - law.late.sel(power=last)).where(stages)
        plain = abs(end.half_rise - record["T"]).where(stages)
        L_last = last * np.log(10.0)
        yield claim.below(
            "second-order",
            f"At α = 10^-{last:g} stages come within 0.01/L of T_k + C_k/L (error times L, median over "
            f"stages).",
            stats.median(finite(left.values) * L_last),
            0.01,
            control=("of T_k", stats.median(finite(plain.values) * L_last)),
        )

    def draw(self, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
        from saltus.papers.rank.studies import _limit_pictures

        return _limit_pictures.limit(self, record, law)


def largest(values: Any) -> float:
    """The largest, nan when the windows leave nothing."""
    return float(values.max()) if values.size else np.nan


def slope(x: Any, y: Any) -> float:
    """Fitted power of y as x grows."""
    with np.errstate(divide="ignore", invalid="ignore"):
        x, y = np.log(x), np.log(y)
    x = x - x.mean()
    return float(x @ y / (x @ x))


def through_origin(x: Any, y: Any) -> Any:
    """Least squares slope of y [..., n] on x [n], without an offset."""
    return (y @ x) / (x @ x)
