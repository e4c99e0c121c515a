"""Fig. 13 and 14: three linear layers of width 3 in three dimensions, where swing-by is strongest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from saltus._lazy import np, xr
from saltus.core import claim, stats
from saltus.core.errors import BadInput
from saltus.core.settings import Presets, reading, setting
from saltus.core.study import study
from saltus.papers import sim
from saltus.papers.sim.ranges import check_batch, check_signals
from saltus.papers.sim.studies._swing import difference, shallow, swing

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab
    from saltus.papers.sim.training import Protocol

CITES = "yang2025dynamics"
COST = "10 s on two cores"
SLOWER = 3


def slower(how: Protocol) -> Protocol:
    """The same training with smaller steps, and as many more of them."""
    return replace(how, lr=how.lr / SLOWER, epochs=how.epochs * SLOWER)


@dataclass(frozen=True)
class Small:
    """Small deep networks on two worlds, with a third of the learning rate and with one layer beside them."""

    reading: str = reading()
    mu: tuple[tuple[float, float], ...] = setting(
        ((1.0, 2.0), (2.0, 4.0)), "distances of the two clusters, one world a pair", above=0
    )
    sigma: tuple[float, ...] = setting((0.05, 0.05), "spread along each axis, in the reading's unit", low=0)
    depth: int = setting(3, "layers", low=2, high=32)
    dim: int = setting(3, "dimension of the inputs", low=2)
    width: int = setting(3, "hidden width", low=1)
    lr: float = setting(0.1, "learning rate", above=0)
    batch: int = setting(128, "points a step", low=1)
    epochs: int = setting(40, "passes over the data", low=1)
    points: int = setting(5000, "training points in each cluster", low=1)
    rotate: bool = setting(False, "whether the concept axes point in random directions")
    seeds: int = setting(256, "runs of each setting", low=1)
    base: int = setting(0, "key that all seeds share", low=0, high=2**32 - 1)

    presets: ClassVar[Presets] = {"reading": {"as-drawn": {"lr": 0.01}}}

    def check(self) -> None:
        if len(self.sigma) != 2:
            raise BadInput("these paths lie in a plane: give two values for sigma")
        check_signals(sum(self.mu, ()), self.sigma)
        check_batch(self.batch, self.points, self.reading)

    def protocol(self, mu: tuple[float, float], lr: float) -> Protocol:
        sizes: dict[str, Any] = dict(dim=self.dim, points=self.points, rotate=self.rotate)
        steps: dict[str, Any] = dict(
            depth=self.depth, width=self.width, lr=lr, batch=self.batch, epochs=self.epochs
        )
        return sim.training.protocol(self.reading, mu, self.sigma, **sizes, **steps)

    def run(self, lab: Lab) -> xarray.Dataset:
        """Every world with three variants: as given, slower, one layer [world, variant, seed, ...]."""
        parts = {}
        for mu in self.mu:
            how = self.protocol(mu, self.lr)
            for name, h in (("given", how), ("slower", slower(how)), ("one", shallow(how))):
                parts[f"mu {mu} {name}"] = partial(swing, h, self.seeds, self.base)
        found = lab.keep_all(parts, "training")
        # The slower variant runs longer: what one variant has no look at is not a number there.
        worlds = [xr.concat(found[i : i + 3], "variant", join="outer") for i in range(0, len(found), 3)]
        data = xr.concat(worlds, "world", join="outer")
        labels = [",".join(f"{m:g}" for m in mu) for mu in self.mu]
        data = data.assign_coords(world=labels, variant=["given", "slower", "one layer"])
        moments = [self.protocol(mu, self.lr).world.second_moment().max() for mu in self.mu]
        factor = 2 * self.protocol(self.mu[0], self.lr).loss_factor
        # The largest eigenvalue of the Hessian at the balanced solution, in the unit of the trained loss.
        data["sharpness"] = ("world", self.depth * factor * np.asarray(moments))
        data.sharpness.attrs.update(long_name="sharpness at the balanced solution, L a_max", units="1")
        return data

    def note(self, record: xarray.Dataset) -> str:
        lost = (record.diverged_at.sel(variant="given") >= 0).mean("seed").values
        words = f"{self.reading}: {self.depth} linear layers of width {self.width}, d = {self.dim}, "
        words += f"sigma {self.sigma}, lr {self.lr:g}; {record.sizes['seed']} seeds; "
        words += "sharpness at the solution " + ", ".join(f"{x:.3g}" for x in record.sharpness.values)
        words += f" against 2/lr = {2 / self.lr:.3g}"
        return words + (f"; diverged {', '.join(f'{x:.0%}' for x in lost)}" if lost.any() else "")

    def looked_at(self, record: xarray.Dataset, mu: str, variant: str) -> xarray.Dataset:
        """One network of one world, at its own looks."""
        one = record.sel(world=mu, variant=variant)
        return one.isel(step=one.loss.notnull().any("seed").values)

    def unstable(self, record: xarray.Dataset) -> xarray.DataArray:
        """Worlds in which the solution itself is beyond the edge of stability."""
        return record.sharpness > 2 / self.lr


@study(
    "sim/fig13",
    cites=CITES,
    figure="13",
    cost=COST,
    version=2,
    checks=(
        "in each world the weak axis turns back in a share of runs (control: one layer)",
        "at a third of the learning rate it does so as often (control: the same for one layer against three)",
    ),
)
@dataclass(frozen=True)
class SmallSwing(Small):
    """Small three-layer networks often swing by: a third to a half of the runs turn back.

    As written the solution for mu = (2,4) is sharper than 2/lr: there every run turns, by the instability
    of the step size and not by the swing-by of the flow, which a third of the learning rate shows.
    """

    theta: float = setting(0.05, "how far the weak axis must turn, in units of its target", drawing=True)

    def check(self) -> None:
        super().check()
        if self.theta not in (0.01, 0.05, 0.1):
            raise BadInput(f"theta is one of 0.01, 0.05, 0.1, not {self.theta:g}")

    def claims(self, record: xarray.Dataset, law: None) -> Iterator[Claim]:
        turned = record.s_rev.sel(theta_rev=self.theta)
        for mu in record.world.values:
            here = turned.sel(world=mu)
            given, slower = here.sel(variant="given").values, here.sel(variant="slower").values
            one = here.sel(variant="one layer").values
            name = mu.replace(",", "-").replace(".", "p")
            yield claim.above(
                f"turns-back-{name}",
                f"With mu = ({mu}) the weak axis turns back by more than {self.theta:.0%} in 20% of runs.",
                stats.share(given),
                0.2,
                control=("one layer in the same world", stats.share(one)),
            )
            sharp = bool(self.unstable(record).sel(world=mu))
            yield claim.within(
                f"flow-not-step-{name}",
                f"With mu = ({mu}) a third of the learning rate changes that share by at most 20 points.",
                difference(given, slower),
                (-0.2, 0.2),
                control=("three layers against one", difference(given, one)),
                expected=not sharp,
                because="the solution is sharper than 2/lr, so most of the turning is the step size's"
                if sharp
                else "",
            )

    def draw(self, record: xarray.Dataset, law: None) -> Figure:
        from saltus.papers.sim.studies._swing_pictures import paths, plane_of_outputs
        from saltus.report import figure

        n = record.sizes["world"]
        rows = (("given", f"lr {self.lr:g}"), ("slower", f"lr {self.lr / SLOWER:.2g}"))
        fig, axes = figure.sheet(2, n, width=3.5, height=3.1)
        found = []
        for column, (mu, pair) in enumerate(zip(record.world.values, self.mu, strict=True)):
            sharp = bool(self.unstable(record).sel(world=mu))
            for ax, (variant, name) in zip(axes[:, column], rows, strict=True):
                data = self.looked_at(record, mu, variant)
                turned = data.s_rev.sel(theta_rev=self.theta).values
                share = stats.share(turned).value
                wild = sharp and variant == "given"
                if variant == "given":
                    found.append(f"{share:.0%} at ({mu})" + (", by instability" if wild else ""))
                plane_of_outputs(ax, pair)
                paths(ax, data.output.values, turned, figure.COLOURS[1], shown=3 if wild else 16)
                beyond = ", past stability" if wild else ""
                ax.set_title(f"μ = ({mu}), {name}: {share:.0%} turn{beyond}", fontsize=8)
        axes[1, 0].legend(loc="upper left", bbox_to_anchor=(-0.12, -0.2), ncols=2, columnspacing=1.2)
        figure.finding(fig, f"Runs that turn back: {'; '.join(found)}", self.note(record))
        return fig


@study(
    "sim/fig14",
    cites=CITES,
    figure="14",
    cost=COST + ", less after sim/fig13 in one command",
    version=2,
    checks=(
        "in each world the test loss falls, rises and falls in a share of runs (control: one layer)",
        "it still does at a third of the learning rate (control: one layer)",
    ),
)
@dataclass(frozen=True)
class SmallLoss(Small):
    """The test loss of small three-layer networks is not monotone in about a third of the runs.

    As written the strong world turns in every run, by the instability of the step size (see sim/fig13); a
    third of the learning rate shows what the flow does, and is drawn below.
    """

    theta: float = setting(0.01, "how far the loss must turn, in units of its start", drawing=True)

    def check(self) -> None:
        super().check()
        if self.theta not in (0.001, 0.01, 0.05):
            raise BadInput(f"theta is one of 0.001, 0.01, 0.05, not {self.theta:g}")

    def claims(self, record: xarray.Dataset, law: None) -> Iterator[Claim]:
        for mu in record.world.values:
            here = record.sel(world=mu)
            turns = here.s_loss.sel(theta_loss=self.theta)
            name = mu.replace(",", "-").replace(".", "p")
            yield claim.above(
                f"double-descent-{name}",
                f"With mu = ({mu}) the loss falls, rises and falls by more than {self.theta:g} L(0) in 15% "
                "of runs.",
                stats.share(turns.sel(variant="given").values),
                0.15,
                control=("one layer in the same world", stats.share(turns.sel(variant="one layer").values)),
            )
            slow = turns.sel(variant="slower").values
            yield claim.above(
                f"at-any-step-size-{name}",
                f"With mu = ({mu}) it does so in 10% of runs at a third of the learning rate, too.",
                stats.share(slow),
                0.1,
                control=("one layer in the same world", stats.share(turns.sel(variant="one layer").values)),
            )

    def draw(self, record: xarray.Dataset, law: None) -> Figure:
        from saltus.report import figure

        rows = (("given", self.lr), ("slower", self.lr / SLOWER))
        fig, axes = figure.sheet(2, record.sizes["world"], width=4.0, height=2.4, sharey=True)
        found = []
        for column, mu in enumerate(record.world.values):
            sharp = bool(self.unstable(record).sel(world=mu))
            for ax, (variant, lr) in zip(axes[:, column], rows, strict=True):
                data = self.looked_at(record, mu, variant)
                turns = data.s_loss.sel(theta_loss=self.theta).values
                wild = sharp and variant == "given"
                share = stats.share(turns).value
                if variant == "given":
                    found.append(f"{share:.0%} at ({mu})" + (", by instability" if wild else ""))
                relative = (data.loss / data.loss.isel(step=0)).values
                # In units of the given learning rate, so that both rows share their axis.
                time = np.maximum(data.step.values, 0.7) * lr / self.lr
                figure.band(ax, time, relative, colour=figure.COLOURS[0], label="median and 80% of runs")
                for k, run in enumerate(relative[np.flatnonzero(turns)[: 1 if wild else 4]]):
                    ax.plot(time, run, color="black", linewidth=0.6, label="" if k else "runs that turn")
                beyond = ", past stability" if wild else ""
                ax.set_title(f"μ = ({mu}), lr {lr:.2g}: {share:.0%} turn{beyond}", fontsize=8)
                ax.set(xscale="log", xlim=(0.7 / SLOWER, None), ylim=(-0.03, 1.2))
        for ax in axes[-1]:
            ax.set_xlabel(f"steps × lr / {self.lr:g}")
        for ax in axes[:, 0]:
            ax.set_ylabel("loss at x̂ / its start")
        axes[1, 0].legend(loc="upper right")
        figure.finding(fig, f"Runs whose loss falls, rises and falls: {'; '.join(found)}", self.note(record))
        return fig
