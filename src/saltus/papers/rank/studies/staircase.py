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
from saltus.papers.rank.studies._toys import Toys, finite

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
    version=2,
    checks=(
        "coordinates grow in the order of Algorithm 1 (control: a start of 0.1)",
        "they do so at T_k + C_k / log(1/alpha) (control: at T_k)",
        "in the middle of a plateau the network is at Algorithm 1's saddle (control: at the half-rise)",
        "of stages due apart one product rises at a time (control: a start of 0.1)",
        "saddles are stationary to rounding (control: what pulls the winner away)",
        "the flow in u and v is that in logarithms (control: an absolute tolerance)",
        "u^2 - v^2 is conserved (control: a thousandth of noise in the weights)",
    ),
)
@dataclass(frozen=True)
class StaircaseOverTraining(Toys):
    """Training from a tiny start climbs Algorithm 1's staircase, each stage late by C_k / log(1/alpha).

    One diagonal attention head learns another from alpha = 10^-32. Algorithm 1 says which product u v
    grows next, when, and to which saddle; C_k, which it can carry along, says how late that is at a
    given alpha.
    """

    power: float = setting(32.0, "training starts at alpha = 10^-power", above=0.3, high=150)
    large: float = setting(1.0, "the control starts at alpha = 10^-large", above=0.3, high=150)

    def run(self, lab: Lab) -> xarray.Dataset:
        parts = {f"teacher {r}": partial(self.one, r) for r in range(self.teachers)}
        data = _toys.padded(lab.keep_all(parts, "teachers"))
        return _toys.describe(
            data,
            half_rise_large=("half-rise from the control's start", "rescaled time"),
            at_rise_large=("products u v at the half-rise of the winner, from the control's start", "1"),
            at_rise=("products u v at the half-rise of the winner", "1"),
            apart=("largest difference of products: flow in u, v and in logarithms", "1"),
            apart_loose=("the same with an absolute tolerance of 1e-9", "1"),
            drift=("largest change of u^2 - v^2 over the largest u^2 + v^2", "1"),
            drift_noise=("the same with 0.1% of noise in the weights", "1"),
        )

    def one(self, run: int) -> xarray.Dataset:
        """One teacher: Algorithm 1, the flow, and the flow in u and v."""
        toy = self.toy(run)
        found = _toys.counted(toy, self.learnt, self.atol)
        until = _toys.horizon(found)
        flow = _toys.followed(toy, self.power, until, self.atol)
        control = _toys.followed(toy, self.large, until, self.atol)
        rises, rises_large = (x.half_rises(found.stages) for x in (flow, control))
        middle = _toys.middles(rises)
        times = np.linspace(0.0, until, LOOKS)
        cut = np.where(np.isfinite(middle), middle, 0.0)
        stage, plateau = np.arange(1, len(found.stages)), np.arange(1, len(found.stages) - 1)
        data = xr.Dataset(
            {
                "half_rise": ("stage", rises),
                "half_rise_large": ("stage", rises_large),
                "at_rise": (("stage", "coordinate"), flow.products(np.nan_to_num(rises))),
                "at_rise_large": (("stage", "coordinate"), control.products(np.nan_to_num(rises_large))),
            },
            coords={"stage": stage},
        )
        data = data.merge(
            xr.Dataset(
                {
                    "middle": (("stage", "coordinate"), flow.products(cut)),
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
        parts = [_toys.stairs(toy, self.learnt, self.atol), data, curves, self.directly(toy, flow, until)]
        return xr.merge(parts, join="outer")

    def directly(self, toy: Any, flow: Any, until: float) -> xarray.Dataset:
        from saltus.papers.rank.law import direct
        from saltus.papers.rank.world import normals

        problem = _toys.problem(toy)
        times = np.linspace(0.0, until, 60)[1:]
        exact = flow.products(times)
        fine = direct.simulate(problem, flow.L, times, rtol=1e-8)
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

        found = _toys.limit(record)
        found["due"] = record["T"] + record.C / log_inverse(self.power)
        found["due"].attrs.update(long_name="T_k + C_k / log(1/alpha)", units="rescaled time")
        return found

    def claims(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        stage, counts = record.stage, _toys.counting(record)
        small, large = (_toys.settled(record, power, counts) for power in (self.power, self.large))
        yield claim.above(
            "order",
            "Stages that come apart at this α, by T_k + C_k/L, come in the order of Algorithm 1 (share of "
            "pairs).",
            stats.share(_toys.in_order(record.half_rise, counts)[small]),
            0.9,
            control=(
                f"pairs that do not at α = 10^-{self.large:g}",
                stats.share(_toys.in_order(record.half_rise_large, counts)[~large]),
            ),
        )
        yield claim.below(
            "times",
            "A stage comes at T_k + C_k/L (relative error, median over stages).",
            stats.median(_toys.late(record.half_rise, law.due, counts)),
            0.001,
            control=("T_k alone", stats.median(_toys.late(record.half_rise, record["T"], counts))),
        )
        inner = (stage >= 1) & (stage < record["last"]) & np.isfinite(record.middle).all("coordinate")
        there = abs(record.middle - record.saddle).max("coordinate").where(inner)
        rising = abs(record.at_rise - record.saddle).max("coordinate").where(inner)
        yield claim.below(
            "plateaus",
            "In the middle of a plateau no product is far from the saddle's (distance, median over "
            "plateaus).",
            stats.median(finite(there.values)),
            0.02,
            control=("at the half-rise", stats.median(finite(rising.values))),
        )
        yield claim.above(
            "one-at-a-time",
            "Of two stages due 6 time constants apart the second is below 10% when the first is half "
            "risen (share "
            "of pairs).",
            stats.share(_toys.early(record, record.at_rise, self.power, counts, 6.0) < 0.1),
            0.9,
            control=(
                f"all pairs, α = 10^-{self.large:g}",
                stats.share(_toys.early(record, record.at_rise_large, self.large, counts, -np.inf) < 0.1),
            ),
        )
        yield claim.below(
            "saddles",
            "Algorithm 1's saddles are stationary (gradient on the support, largest of all stages).",
            stats.worst(finite(record.residual.values)),
            1e-10,
            control=("the winner's", stats.worst(finite(record.rate.values))),
        )
        stays = ~leaves(record.products.transpose("run", "look", "coordinate").values)
        yield claim.below(
            "direct",
            "Flows in u, v and in logarithms agree where no product falls to 1e-12 of what it was (largest "
            "difference of products).",
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


def leaves(products: Any) -> Any:
    """Whether any of the products [run, look, coordinate] leaves again [run], if only for a while.

    What u and v themselves can follow ends where a product falls to the rounding of what it was.
    """
    size = abs(products)
    before = np.maximum.accumulate(size, axis=1)
    return (size < 1e-12 * before).any((1, 2))
