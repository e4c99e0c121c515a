"""Fig. 15 and 16: the swing-by is out of distribution: no training point is near x̂."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from saltus._lazy import jax, np, xr
from saltus.core import claim, stats
from saltus.core.settings import Presets, setting
from saltus.core.study import study
from saltus.papers.sim.studies._swing import swing
from saltus.papers.sim.studies.swing import CITES, DRAWN, Deep

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab
    from saltus.papers.sim.training import Protocol

CLOUD = 400  # training points of one seed kept for the drawing, a cluster


@dataclass(frozen=True)
class Pair(Deep):
    """The two networks of Fig. 2(c): low and narrow, high and wide."""

    widths: tuple[int, ...] = setting((4, 64), "hidden widths: the narrow one, the wide one", low=1)
    seeds: int = setting(64, "runs of each setting", low=1)
    wide_sigma: float = setting(0.5, "spread of the control world, in the reading's unit", above=0)

    presets: ClassVar[Presets] = {"reading": {"as-drawn": DRAWN}}

    def ends(self) -> list[tuple[str, Protocol]]:
        low, high = (self.dims[0], self.widths[0]), (self.dims[-1], self.widths[-1])
        return [(f"d = {d}, width {w}", self.protocol(d, w)) for d, w in (low, high)]

    def spread_out(self, how: Protocol) -> Protocol:
        """The control: clusters so wide that some training point may be anywhere."""
        sigma = self.wide_sigma if self.reading == "as-written" else float(np.sqrt(self.wide_sigma))
        return replace(how, world=replace(how.world, sigma=(sigma, sigma)))


@study(
    "sim/fig15",
    cites=CITES,
    figure="15",
    cost="10 s on two cores",
    checks=("no training point lies within half of the smallest mu of x̂ (control: wide clusters)",),
)
@dataclass(frozen=True)
class NoPointNear(Pair):
    """No training point is near x̂: what the networks do there is out of distribution."""

    def run(self, lab: Lab) -> xarray.Dataset:
        parts = lab.keep_all({name: partial(self._one, how) for name, how in self.ends()}, "training")
        data = xr.concat(parts, "network", join="inner")
        return data.assign_coords(network=[name for name, _ in self.ends()])

    def _one(self, how: Protocol) -> xarray.Dataset:
        data = swing(how, self.seeds, self.base)
        draws = [_draw(how, self.base, seed) for seed in range(1)]
        cloud = np.concatenate([c[:CLOUD] for c in np.split(draws[0], how.world.clusters)])
        wide = self.spread_out(how)
        nearest = [_nearest(wide, self.base, seed) for seed in range(self.seeds)]
        return data.assign(
            cloud=(
                ("point", "axis"),
                cloud,
                {"long_name": "training points of the first seed", "units": "1"},
            ),
            nearest_wide=("seed", nearest, {"long_name": "the same with wide clusters", "units": "1"}),
        )

    def claims(self, record: xarray.Dataset, law: None) -> Iterator[Claim]:
        radius = min(self.mu) / 2
        for i, name in enumerate(record.network.values):
            data = record.isel(network=i)
            yield claim.above(
                f"none-near-{('low', 'high')[i]}",
                f"{name}: the nearest training point of all runs is at least {radius:g} from x̂.",
                stats.least(data.nearest.values),
                radius,
                control=(f"clusters of spread {self.wide_sigma:g}", stats.least(data.nearest_wide.values)),
            )

    def draw(self, record: xarray.Dataset, law: None) -> Figure:
        from matplotlib.patches import Circle

        from saltus.papers.sim.studies._swing_pictures import paths, plane_of_outputs
        from saltus.report import figure

        fig, axes = figure.sheet(1, 2, width=3.6, height=3.9, sharey=True)
        for ax, i, colour in zip(axes[0], (0, 1), (figure.COLOURS[1], figure.COLOURS[0]), strict=True):
            data = record.isel(network=i)
            ax.plot(*data.cloud.values.T, ".", color="#C9A227", markersize=1.5, zorder=2.5,
                    label="training points")  # fmt: skip
            plane_of_outputs(ax, self.mu)
            paths(ax, data.output.values, data.s_rev.sel(theta_rev=0.05).values, colour)
            radius = float(np.median(data.nearest))
            ax.add_patch(Circle((self.mu[0], self.mu[1]), radius, fill=False, linestyle=":", linewidth=0.9))
            ax.set_title(f"{record.network.values[i]}: nearest point {radius:.2f} from x̂", fontsize=8.5)
            # As wide as high, so that the circle is one.
            middle, half = self.mu[0] / 2, 0.725 * self.mu[1]
            ax.set_aspect("equal")
            ax.set_xlim(middle - half, middle + half)
            ax.legend(loc="upper left", bbox_to_anchor=(-0.12, -0.14), ncols=2, columnspacing=1.2)
        least = stats.least(record.nearest.values)
        figure.finding(
            fig,
            f"Of all training sets, no point comes closer to x̂ than {least.value:.2f}",
            self.note(record.isel(network=0)) + "; dotted: the median distance of the nearest point",
        )
        return fig


def _key(base: int, seed: int) -> jax.Array:
    return jax.random.fold_in(jax.random.key(np.uint32(base)), seed)


def _draw(how: Protocol, base: int, seed: int) -> np.ndarray:
    """The training set of one seed, as `training.train` draws it."""
    return np.asarray(how.world.draw(_key(base, seed)).y)


def _nearest(how: Protocol, base: int, seed: int) -> float:
    return float(how.world.draw(_key(base, seed)).nearest)


@study(
    "sim/fig16",
    cites=CITES,
    figure="16",
    cost="10 s on two cores",
    checks=(
        "truncation discards almost nothing (control: wider clusters)",
        "with nothing discarded the runs are the same to rounding (control: wider clusters)",
        "with something discarded the paths differ by little (control: another seed's paths)",
    ),
)
@dataclass(frozen=True)
class Truncated(Pair):
    """Taking every training point near x̂ away changes nothing, mostly because there is none.

    At the paper's settings the truncated training set is the same set: the published pair of figures shows
    one run twice. A wider spread, where some points are really discarded, tests the statement.
    """

    wider: float = setting(0.22360679774997896, "standard deviation at which some points are near x̂", above=0)

    def run(self, lab: Lab) -> xarray.Dataset:
        cases = [(name, how) for name, how in self.ends()]
        low = self.protocol(self.dims[0], self.widths[0])
        # mu is taken as (1, 2) here under either reading: at (2, 4) nothing is ever discarded.
        wider = replace(low, world=replace(low.world, sigma=(self.wider,) * 2, mu=(1.0, 2.0), origin=False))
        cases.append(("wider clusters", wider))
        parts = lab.keep_all({name: partial(self._both, how) for name, how in cases}, "training")
        data = xr.concat(parts, "network", join="inner")
        return data.assign_coords(network=[name for name, _ in cases])

    def _both(self, how: Protocol) -> xarray.Dataset:
        whole = swing(how, self.seeds, self.base)
        cut = swing(replace(how, world=replace(how.world, truncate=True)), self.seeds, self.base)
        mu = np.asarray(how.world.mu)
        gap = np.abs((cut.output - whole.output) / mu).max(("step", "axis"))
        other = np.abs((whole.output.values - np.roll(whole.output.values, 1, axis=0)) / mu).max((1, 2))
        share = cut.discarded / how.world.size
        names = {"long_name": "largest distance of the two paths, in units of the target", "units": "1"}
        return whole[["output", "s_rev", "diverged_at"]].assign(
            truncated=cut.output,
            gap=gap.assign_attrs(names),
            other=("seed", other, {"long_name": "the same between two seeds", "units": "1"}),
            discarded=share.assign_attrs(long_name="share of training points drawn again", units="1"),
        )

    def claims(self, record: xarray.Dataset, law: None) -> Iterator[Claim]:
        wider = record.isel(network=2)
        for i, name in enumerate(record.network.values[:2]):
            data = record.isel(network=i)
            short = ("low", "high")[i]
            yield claim.below(
                f"few-discarded-{short}",
                f"{name}: truncation discards at most one training point in a thousand.",
                stats.worst(data.discarded.values),
                1e-3,
                control=("wider clusters", stats.worst(wider.discarded.values)),
            )
            yield claim.below(
                f"unchanged-{short}",
                f"{name}: the paths with and without truncation are equal to rounding.",
                stats.median(data.gap.values),
                1e-9,
                control=("wider clusters", stats.median(wider.gap.values)),
            )
        yield claim.below(
            "little-change-when-discarding",
            "Where points are discarded, the paths with and without truncation differ by at most 5% of the "
            "target.",
            stats.median(wider.gap.values),
            0.05,
            control=("paths of two different seeds", stats.median(wider.other.values)),
        )

    def draw(self, record: xarray.Dataset, law: None) -> Figure:
        from saltus.papers.sim.studies._swing_pictures import plane_of_outputs
        from saltus.report import figure

        fig, axes = figure.sheet(1, 3, width=3.1, height=3.3)
        for ax, i in zip(axes[0], range(3), strict=True):
            data = record.isel(network=i)
            plane_of_outputs(ax, (1.0, 2.0) if i == 2 else self.mu)
            for k in range(min(8, record.sizes["seed"])):
                ax.plot(*data.output.values[k].T, color=figure.COLOURS[0], linewidth=1.4, alpha=0.5,
                        label="all points" if k == 0 else "")  # fmt: skip
                ax.plot(*data.truncated.values[k].T, color="black", linewidth=0.7, linestyle=(0, (4, 2)),
                        label="truncated" if k == 0 else "")  # fmt: skip
            discarded, gap = float(data.discarded.mean()), stats.median(data.gap.values).value
            apart = f"paths differ by {gap:.1%}" if gap > 1e-9 else "paths the same"
            name = record.network.values[i]
            ax.set_title(f"{name}\ndiscarded {discarded:.2%}, {apart}", fontsize=8.5)
        axes[0, 0].legend(loc="upper left", bbox_to_anchor=(0, -0.18), ncols=2)
        count = float(record.discarded.values[:2].mean())
        some = "no point" if count == 0 else f"{count:.1e} of the points"
        figure.finding(
            fig,
            f"Truncation discards {some} at the paper's settings; where it does, the paths stay",
            self.note(record.isel(network=0)) + f"; right: standard deviation {self.wider:.3g}, mu (1, 2)",
        )
        return fig
