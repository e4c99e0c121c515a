"""Training on drawn noises, as published, against the expectation in closed form."""

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
from saltus.papers.features.studies._runs import Synthetic

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab

KEPT = ("signal_mean", "noise_mean")
PAPER = 2000  # noises of a point, in the published program


@study(
    "features/sampled",
    cites="han2025feature",
    figure="Section 5.1",
    cost="4 min on two cores; --noises 2000: hours",
    checks=(
        "the more noises a step draws, the nearer training is to the closed form, as their square root",
        "at the paper's number of noises both are the same training (control: another draw of the data)",
    ),
)
@dataclass(frozen=True)
class Sampled(Synthetic):
    """Training on drawn noises nears the closed form as their square root; at 2000 they are one.

    The denoiser at high SNR, trained on new noises at every step as the paper does, beside gradient descent
    on the expected loss from the same start: the largest distance of their mean products with signals and
    noises over the whole training. `--noises` says how many are drawn for each patch of each point.
    """

    mu: float = setting(15.0, "length of the signals", above=0)
    noises: tuple[int, ...] = setting((1, 4, 16, 64), "noises of a patch and step, ascending", low=1)
    seeds: int = setting(6, "draws of data and start", low=1)
    steps: int = setting(16000, "steps of the denoiser", low=200)
    looks: int = setting(200, "steps of the denoiser recorded", low=20, high=20000)

    def check(self) -> None:
        super().check()
        if len(self.noises) < 2 or list(self.noises) != sorted(set(self.noises)):
            raise BadInput("noises needs two numbers or more in ascending order, as in 4,64")
        if self.n * self.noises[-1] > 10**7:
            raise BadInput("noises times n must be at most 10^7, to fit in memory")

    def run(self, lab: Lab) -> xarray.Dataset:
        exact = lab.keep("closed form", self.exact)
        parts = {f"draw {seed}": partial(self.drawn, seed, exact.step.values) for seed in range(self.seeds)}
        data = xr.concat(lab.keep_all(parts, "draws"), "seed").merge(exact)
        data = data.assign_coords(seed=np.arange(self.seeds), noises=list(self.noises))
        data["diverged_at"] = xr.where(
            (~np.isfinite(data.sampled)).any(("noises", "product", "step")), 0, -1
        ).assign_attrs(long_name="0 where a training left the finite numbers, -1 elsewhere", units="1")
        return data

    def exact(self) -> xarray.Dataset:
        found = self.train_denoiser(self.mu)
        words = {"long_name": "mean product of the weights, closed form", "units": "1"}
        return xr.Dataset(
            {"exact": (("product", "seed", "step"), np.stack([found[k] for k in KEPT]), words)},
            coords={"product": list(KEPT), "step": found["step"]},
        )

    def drawn(self, seed: int, at: Any) -> xarray.Dataset:
        """One draw of data and start, by every number of noises."""
        from saltus.papers.features import training

        sample, start = self.draws(self.mu, "denoiser")
        alpha, beta = self.noise()
        rows = []
        for noises in self.noises:
            found = training.train_sampled(
                sample.X[seed], sample.members[seed], start[seed], eta=self.step, at=at, alpha=alpha,
                beta=beta, noises=noises, seed=self.base + seed, prefactor=self.prefactor,
                look=training.watch.denoiser,
            )  # fmt: skip
            rows.append(np.stack([found[k] for k in KEPT]))
        words = {"long_name": "mean product of the weights, drawn noises", "units": "1"}
        return xr.Dataset({"sampled": (("noises", "product", "step"), np.stack(rows), words)})

    def law(self, record: xarray.Dataset) -> xarray.Dataset:
        """The distance of both trainings, and what its square-root law says of any number of noises."""
        data = xr.Dataset({"distance": self.distance(record.sampled, record.exact)})
        power, at_paper = self.fits(data.distance)
        data["power"], data["at_paper"] = ("seed", power), ("seed", at_paper)
        data.power.attrs.update(long_name="power of the number of noises", units="1")
        data.at_paper.attrs.update(long_name=f"distance extrapolated to {PAPER} noises", units="1")
        return data

    @staticmethod
    def distance(one: xarray.DataArray, other: xarray.DataArray) -> xarray.DataArray:
        """Largest over training, in units of the largest product there is in it."""
        apart = abs(one - other).max(("product", "step"))
        return (apart / abs(other).max(("product", "step"))).assign_attrs(
            long_name="largest distance of mean products from the closed form", units="1"
        )

    def fits(self, distance: xarray.DataArray) -> tuple[Any, Any]:
        """Of every draw the power of a straight line in logarithms, and its value at the paper's number."""
        x, y = np.log(self.noises), np.log(distance.transpose("seed", "noises").values)
        lines = np.asarray([np.polyfit(x, row, 1) for row in y])
        return lines[:, 0], np.exp(np.asarray([np.polyval(line, np.log(PAPER)) for line in lines]))

    def claims(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        other = self.distance(record.exact.roll(seed=1), record.exact)
        flat = np.log((other / other.roll(seed=1)).values) / np.log(self.noises[-1] / self.noises[0])
        yield claim.within(
            "square-root",
            "The distance from the closed form goes with the number of noises to this power (mean over "
            "draws of the data).",
            stats.mean(law.power.values),
            (-0.7, -0.3),
            control=("distances between draws of the data", stats.mean(flat)),
        )
        yield claim.below(
            "same-training",
            f"At {PAPER} noises the largest distance over the training, extrapolated along each draw's own "
            "line, is this share of the largest product (median).",
            stats.median(law.at_paper.values),
            0.02,
            control=("another draw of the data", stats.median(other.values)),
        )

    def draw(self, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
        from saltus.report import figure

        fig, axes = figure.sheet(1, 2, width=3.4, height=2.9)
        steps = record.step.values / 1000
        for k, (product, name) in enumerate(zip(KEPT, ("signal", "noise"), strict=True)):
            one = record.isel(seed=0).sel(product=product)
            for row, noises in enumerate(self.noises[:: max(1, len(self.noises) - 1)]):
                style = (":", "-")[row]
                values = one.sampled.sel(noises=noises).values
                label = f"{name}, {noises} noise{'s' if noises > 1 else ''}"
                axes[0, 0].plot(steps, values, style, color=figure.COLOURS[k], label=label)
            figure.theory(axes[0, 0], steps, one.exact.values, label="closed form" if k else "_")
        axes[0, 0].set(xlabel="step, thousands", ylabel="mean product", title="one draw of the data")
        axes[0, 0].legend(fontsize=7)
        ax, x = axes[0, 1], np.asarray([*self.noises, PAPER], float)
        apart = law.distance.transpose("seed", "noises").values
        figure.band(ax, x[:-1], apart, label="trained", colour=figure.COLOURS[2], marker="o", markersize=3)
        middle = np.exp(np.median(np.log(apart[:, -1])))
        figure.theory(ax, x, middle * np.sqrt(x[-2] / x), label="as one over the square root")
        ax.axvline(PAPER, color=figure.MUTED, linewidth=0.8)
        ax.set(xscale="log", yscale="log", xlabel="noises of a patch and step",
               ylabel="largest distance", title="distance from the closed form")  # fmt: skip
        ax.legend(fontsize=7)
        found = float(np.median(law.at_paper))
        figure.finding(
            fig,
            f"At the paper's {PAPER} noises training is the closed form's, to {found:.2%} of its products",
            self.note(record) + f"; n SNR² = {self.chi(self.mu):g}; grey: the paper's number",
        )
        return fig
