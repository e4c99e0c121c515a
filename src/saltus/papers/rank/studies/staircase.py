"""Algorithm 1 over training: stage by stage, the same order, the same times, the same saddles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from saltus._lazy import np, xr
from saltus.core import claim, stats
from saltus.core.settings import setting
from saltus.core.study import study
from saltus.papers.rank.studies import _toys
from saltus.papers.rank.studies._toys import Toys

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab

LOOKS = 500


@study(
    "rank/staircase",
    cites="boixadsera2023rank",
    figure="Algorithm 1",
    cost="half a minute on two cores; --scale paper: minutes",
    checks=(
        "coordinates grow in the order of Algorithm 1 (control: a start of 0.1)",
        "they do so at T_k + C_k / log(1/alpha) (control: at T_k)",
        "in the middle of a plateau the network is at Algorithm 1's saddle (control: at the half-rise)",
        "at most one coordinate is added from one plateau to the next (control: a start of 0.1)",
        "saddles are stationary to rounding (control: what pulls the winner away)",
        "the flow in u and v is that in logarithms (control: an absolute tolerance)",
        "u^2 - v^2 is conserved (control: a thousandth of noise in the weights)",
    ),
)
@dataclass(frozen=True)
class StaircaseOverTraining(Toys):
    """Training from a tiny start climbs Algorithm 1's staircase, each stage late by C_k / log(1/alpha).

    One diagonal attention head learns another from alpha = 10^-32. Algorithm 1 says which product u v grows next,
    when, and to which saddle; C_k, which it can carry along, says how late that is at a given alpha.
    """

    power: float = setting(32.0, "training starts at alpha = 10^-power", above=0.3, high=150)
    large: float = setting(1.0, "the control starts at alpha = 10^-large", above=0.3, high=150)

    def run(self, lab: Lab) -> xarray.Dataset:
        parts = {f"teacher {r}": partial(self.one, r) for r in range(self.teachers)}
        data = _toys.padded(lab.keep_all(parts, "teachers"))
        return _toys.describe(
            data,
            half_rise_large=("half-rise from the control's start", "rescaled time"),
            middle_large=("products u v of the control, at the same times over L", "1"),
            at_rise=("products u v at the half-rise of the winner", "1"),
            apart=("largest difference of products: flow in u, v and in logarithms", "1"),
            apart_loose=("the same with an absolute tolerance of 1e-9", "1"),
            drift=("largest change of u^2 - v^2 over the largest u^2 + v^2", "1"),
            drift_noise=("the same with 0.1% of noise in the weights", "1"),
        )

    def one(self, run: int) -> xarray.Dataset:
        """One teacher: Algorithm 1, the flow, and the flow in u and v."""
        toy = self.toy(run)
        found = _toys.counted(toy, self.learnt)
        until = _toys.horizon(found)
        flow = _toys.followed(toy, self.power, until, self.atol)
        control = _toys.followed(toy, self.large, until, self.atol)
        rises = flow.half_rises(found.stages)
        middle = middles(rises)
        times = np.linspace(0.0, until, LOOKS)
        cut = np.where(np.isfinite(middle), middle, 0.0)
        stage, plateau = np.arange(1, len(found.stages)), np.arange(1, len(found.stages) - 1)
        data = xr.Dataset(
            {
                "half_rise": ("stage", rises),
                "half_rise_large": ("stage", control.half_rises(found.stages)),
                "at_rise": (("stage", "coordinate"), flow.products(np.nan_to_num(rises))),
            },
            coords={"stage": stage},
        )
        data = data.merge(
            xr.Dataset(
                {
                    "middle": (("stage", "coordinate"), flow.products(cut)),
                    "middle_large": (("stage", "coordinate"), control.products(cut)),
                },
                coords={"stage": plateau},
            ),
            join="outer",
        )
        curves = xr.Dataset(
            {
                "time": ("look", times),
                "loss": ("look", flow.losses(times)),
                "products": (("look", "coordinate"), flow.products(times)),
            }
        )
        parts = [_toys.stairs(toy, self.learnt), data, curves, self.directly(toy, flow, until)]
        return xr.merge(parts, join="outer")

    def directly(self, toy: Any, flow: Any, until: float) -> xarray.Dataset:
        from saltus.papers.rank.law import direct
        from saltus.papers.rank.world import normals

        problem = _toys.problem(toy)
        times = np.linspace(0.0, until, 60)[1:]
        exact = flow.products(times)
        fine = direct.simulate(problem, flow.L, times, rtol=1e-9)
        loose = direct.simulate(problem, flow.L, times, rtol=1e-6, atol=1e-9)
        noise = 1 + 1e-3 * normals(10_001 + toy.run, (2, *fine.u.shape))
        u, v = fine.u * noise[0], fine.v * noise[1]
        shaken = np.abs(u**2 - v**2 - (fine.u**2 - fine.v**2)).max(1) / (u**2 + v**2).max(1)
        return xr.Dataset(
            {
                "apart": ((), np.abs(fine.products - exact).max()),
                "apart_loose": ((), np.abs(loose.products - exact).max()),
                "drift": ((), fine.drift.max()),
                "drift_noise": ((), shaken.max()),
            }
        )

    def law(self, record: xarray.Dataset) -> xarray.Dataset:
        """The limit's products and loss at the looks of the record, and when stages are due at this alpha."""
        from saltus.papers.rank.law.flow import log_inverse

        L = log_inverse(self.power)
        rows = []
        for r in range(record.sizes["run"]):
            one = record.isel(run=r)
            T = one.T.values
            place = np.searchsorted(T[np.isfinite(T)], one.time.values, side="right") - 1
            rows.append(one[["saddle", "level"]].isel(stage=xr.DataArray(place, dims="look")).drop_vars("stage"))
        found = xr.concat(rows, "run").rename(saddle="products", level="loss")
        found["due"] = record["T"] + record.C / L
        found["due"].attrs.update(long_name="T_k + C_k / log(1/alpha)", units="rescaled time")
        found["products"].attrs.update(long_name="products u v of the limit", units="1")
        found["loss"].attrs.update(long_name="loss of the limit", units="1")
        return found

    def claims(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        stage = record.stage
        counts = (stage >= 1) & (stage <= record["last"])
        small, large = (_toys.settled(record, power) for power in (self.power, self.large))
        yield claim.above(
            "order",
            "Stages that Algorithm 1 tells apart at this α, by T_k + C_k/L, come in its order (share of pairs).",
            stats.share(in_order(record.half_rise, counts)[small]),
            0.9,
            control=(
                f"pairs it does not tell apart at α = 10^-{self.large:g}",
                stats.share(in_order(record.half_rise_large, counts)[~large]),
            ),
        )
        due = law.due.where(counts)
        off = abs(record.half_rise / due - 1).values[counts.transpose("run", "stage").values]
        plain = abs(record.half_rise / record["T"] - 1).transpose("run", "stage").values
        yield claim.below(
            "times",
            "A stage comes at T_k + C_k/L (relative error, median over stages).",
            stats.median(np.nan_to_num(off, nan=np.inf) if np.isinf(off).any() else off[np.isfinite(off)]),
            0.01,
            control=("T_k alone", stats.median(_finite(plain[counts.transpose("run", "stage").values]))),
        )
        inner = (stage >= 1) & (stage < record["last"]) & np.isfinite(record.middle).all("coordinate")
        there = abs(record.middle - record.saddle).max("coordinate").where(inner)
        rising = abs(record.at_rise - record.saddle).max("coordinate").where(inner)
        yield claim.below(
            "plateaus",
            "In the middle of a plateau no product is far from the saddle's (distance, median over plateaus).",
            stats.median(_finite(there.values)),
            0.02,
            control=("at the half-rise", stats.median(_finite(rising.values))),
        )
        yield claim.above(
            "one-at-a-time",
            "From one plateau to the next at most one product is added (share of plateaus).",
            stats.share(steps_of_one(record.middle.where(inner))),
            0.9,
            control=(
                f"from α = 10^-{self.large:g}",
                stats.share(steps_of_one(record.middle_large.where(inner))),
            ),
        )
        pulls = (1 / record.wait).where(np.isfinite(record.wait))
        yield claim.below(
            "saddles",
            "Algorithm 1's saddles are stationary (gradient on the support, largest of all stages).",
            stats.worst(_finite(record.residual.values)),
            1e-10,
            control=("the winner's", stats.worst(_finite(pulls.values))),
        )
        stays = (record.left.where(stage <= record["last"]).fillna(0).sum("stage") == 0).values
        yield claim.below(
            "direct",
            "Flows in u, v and in logarithms agree where nothing leaves (products, largest difference).",
            stats.worst(record.apart.values[stays]),
            1e-3,
            control=("an absolute tolerance of 1e-9", stats.worst(record.apart_loose.values[stays])),
        )
        yield claim.below(
            "conserved",
            "u² - v² stays what it was (largest change over the largest u² + v²).",
            stats.worst(record.drift.values),
            1e-6,
            control=("0.1% of noise in the weights", stats.worst(record.drift_noise.values)),
        )

    def draw(self, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
        from saltus.papers.rank.studies import _staircase_pictures

        return _staircase_pictures.staircase(self, record, law)


def middles(rises: Any) -> Any:
    """The middle of each plateau between two half-rises [K - 1]."""
    return (rises[1:] + rises[:-1]) / 2


def in_order(rises: Any, counts: Any) -> Any:
    """Whether each stage that counts comes after the one before it [pairs]; one that never comes does not."""
    later = rises.transpose("run", "stage").values
    used = counts.transpose("run", "stage").values
    pairs = used[:, 1:] & used[:, :-1]
    with np.errstate(invalid="ignore"):
        return (np.diff(later, axis=1) > 0)[pairs]


def steps_of_one(middle: Any, grown: float = 1e-2) -> Any:
    """Whether at most one product of more than `grown` is added from one plateau to the next [pairs]."""
    values = middle.transpose("run", "stage", "coordinate").values
    on = abs(values) > grown
    known = np.isfinite(values).all(2)
    added = (on[:, 1:] & ~on[:, :-1]).sum(2)
    return (added <= 1)[known[:, 1:] & known[:, :-1]]


def _finite(values: Any) -> Any:
    values = np.asarray(values, float).ravel()
    return values[np.isfinite(values)]
