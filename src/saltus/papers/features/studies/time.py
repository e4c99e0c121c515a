"""How balance depends on the diffusion time."""

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
from saltus.papers.features.studies import _phase
from saltus.papers.features.studies._phase import Size

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab


@study(
    "features/time",
    cites="han2025feature",
    figure="App. A.4",
    version=2,
    cost="2 min on two cores",
    checks=(
        "the early ratio is n SNR^2 / 2 at every diffusion time",
        "the last ratio is the one solved for at every diffusion time",
        "at low and at high SNR it moves away from 1 as the time grows",
    ),
)
@dataclass(frozen=True)
class DiffusionTime:
    """More diffusion noise makes the features less balanced; the early ratio does not depend on it.

    Denoisers at several times t, α = exp(-t) and β = sqrt(1 - exp(-2t)), at low and at high SNR: the ratio of
    mean products before saturation and at rest, and the stationary point solved for over a range of times.
    """

    n: int = setting(30, "training points", low=2)
    d: int = setting(1000, "dimension of a patch", low=10)
    m: int = setting(20, "neurons", low=1)
    sigma0: float = setting(0.001, "standard deviation of the start", above=0)
    chi: tuple[float, ...] = setting((0.75, 6.75), "values of n SNR^2, low and high", above=0)
    times: tuple[float, ...] = setting(
        (0.05, 0.2, 0.5, 0.8, 1.5), "diffusion times, ascending", above=0, high=5
    )
    seeds: int = setting(12, "draws of each setting", low=1)
    base: int = setting(0, "key that all draws share", low=0, high=2**32 - 1)

    def check(self) -> None:
        if len(self.chi) != 2 or self.chi[0] >= self.chi[1]:
            raise BadInput("chi needs two values in ascending order, as in 0.75,6.75")
        if len(self.times) < 2 or list(self.times) != sorted(set(self.times)):
            raise BadInput("times needs two values or more in ascending order")

    def size(self) -> Size:
        return Size(self.n, self.d, self.m, self.sigma0)

    def run(self, lab: Lab) -> xarray.Dataset:
        make = {
            f"t = {t:g}": partial(_phase.denoiser, self.size(), self.chi, self.seeds, self.base, t)
            for t in self.times
        }
        data = xr.concat(lab.keep_all(make, "times"), "t").assign_coords(t=list(self.times))
        for name, words in (
            ("early", "mean product with signal over noise before saturation"),
            ("end", "the same at the end of training"),
            ("solved", "the same at the solved stationary point"),
            ("spread", "largest coefficient of variation over neurons at the end"),
            ("slope", "norm of the gradient at the end"),
        ):
            data[name].attrs.update(long_name=words, units="1")
        return data

    def law(self, record: xarray.Dataset) -> xarray.Dataset:
        """The ratio with equal classes over a range of times."""
        from saltus.papers.features.law import ddpm, stationary

        fine = np.geomspace(min(self.times) / 1.5, max(self.times) * 1.3, 60)
        found: list[Any] = []
        for chi in self.chi:
            mu = self.size().mu(chi)
            row = [
                stationary.symmetric(np.asarray([chi]), self.m, *ddpm.diffusion(t), mu=mu).a[0] for t in fine
            ]
            found.append([a[0] / a[1] for a in row])
        data = xr.Dataset({"ratio": (("chi", "fine"), found)}, coords={"chi": list(self.chi), "fine": fine})
        data.ratio.attrs.update(long_name="ratio at the stationary point, equal classes", units="1")
        return data

    def claims(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        early = (record.early / (record.chi / 2)).values
        worst = max((stats.median(e) for row in early for e in row), key=lambda e: abs(np.log(e.value)))
        end = (record.end / (record.chi / 2)).values
        far = max((stats.median(e) for row in end for e in row), key=lambda e: abs(np.log(e.value)))
        yield claim.within(
            "early-same",
            "Before saturation the ratio is n SNR²/2 at every time (over it, median, where it is farthest "
            "off).",
            worst,
            (0.8, 1.2),
            control=("at the end of training", far),
        )
        agree = record.spread.values < 1e-2
        yield claim.below(
            "solved",
            f"Where all neurons agree at the end, {agree.mean():.0%} of the runs, the last ratio is the one "
            "solved for (relative distance, median).",
            stats.median(np.abs(record.end / record.solved - 1).values[agree]),
            0.01,
            control=("before saturation", stats.median(np.abs(record.early / record.solved - 1).values)),
        )
        away = np.abs(np.log(record.end)).isel(t=-1) - np.abs(np.log(record.end)).isel(t=0)
        yield claim.above(
            "less-balanced",
            f"From t = {self.times[0]:g} to {self.times[-1]:g} the last ratio moves away from 1, at low and "
            "at high SNR (distance in logarithms gained, lesser of both, median).",
            stats.median(away.min("chi").values),
            0.2,
            control=("between two draws at the same time", _between(record)),
        )

    def draw(self, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
        from saltus.report.figure import COLOURS, MUTED, band, finding, sheet, theory

        fig, axes = sheet(1, 1, width=4.6, height=3.2)
        ax, t = axes[0, 0], record.t.values
        for k, chi in enumerate(self.chi):
            runs = record.sel(chi=chi)
            told = f"n SNR² = {chi:g}"
            band(
                ax,
                t,
                runs.end.values.T,
                label=f"{told}: at rest",
                colour=COLOURS[k],
                marker="o",
                markersize=3,
            )
            band(ax, t, runs.early.values.T, label=f"{told}: early", colour=COLOURS[k], linestyle=":")
            theory(
                ax,
                law.fine.values,
                law.ratio.sel(chi=chi).values,
                label="theory: stationary point" if k else "_",
            )
        ax.axhline(1, color=MUTED, linewidth=0.8)
        ax.set(xscale="log", yscale="log", xlabel="diffusion time t", ylabel="signal / noise, mean products")
        ax.legend(fontsize=7, ncols=2, loc="upper left")
        ax.set_ylim(0.2, 12)
        note = f"n = {self.n}, d = {self.d}, m = {self.m}, σ₀ = {self.sigma0:g}; "
        note += f"bands hold 80% of {self.seeds} draws"
        finding(fig, "More diffusion noise, less balance", note)
        return fig


def _between(record: xarray.Dataset) -> stats.Estimate:
    """The same gain between a draw and the next one, both at the first time."""
    first = np.abs(np.log(record.end)).isel(t=0)
    return stats.median((first - first.roll(seed=1)).min("chi").values)
