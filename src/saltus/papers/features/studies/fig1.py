"""Figure 1: the ratio of signal to noise learning against n SNR^2, for both tasks."""

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
from saltus.papers.features.studies._phase import Size, crossing, steepness
from saltus.papers.features.studies._phase_claims import over_seeds

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab

GRID = (
    0.1, 0.14, 0.2, 0.27, 0.37, 0.5, 0.7, 1.0, 1.4, 2.0, 2.6, 3.0, 3.5, 4.5, 6.0, 8.0, 11.0, 15.0, 20.0, 30.0,
)  # fmt: skip
AROUND = 1.5  # a crossing's surroundings: so many times more and less


@study(
    "features/fig1",
    cites="han2025feature",
    figure="1",
    version=2,
    cost="3 min on two cores",
    checks=(
        "near n SNR^2 = 3 the classifier's ratio is steep and the denoiser's is not",
        "the classifier's step gets steeper as the start gets smaller, and does not as d grows",
        "far below it the classifier learns noise, far above it signal; the denoiser both",
    ),
)
@dataclass(frozen=True)
class Figure1:
    """The classifier's ratio takes a step at the boundary, the denoiser's rises gently.

    The paper's illustration, measured: the ratio of the largest products with signal and noise after 0.1 of
    the classifier's loss is left, and of the mean products of the denoiser at rest, over n SNR² by the length
    of the signal.
    """

    n: int = setting(30, "training points", low=2)
    d: int = setting(1000, "dimension of a patch", low=10)
    m: int = setting(20, "neurons", low=1)
    sigma0: float = setting(0.001, "standard deviation of the start", above=0)
    small: float = setting(0.00001, "the smaller start", above=0)
    large: int = setting(16000, "the larger dimension", low=10)
    chi: tuple[float, ...] = setting(GRID, "values of n SNR^2, ascending", above=0)
    seeds: int = setting(32, "draws of each classifier", low=1)
    seeds_denoiser: int = setting(8, "draws of each denoiser", low=1)
    base: int = setting(0, "key that all draws share", low=0, high=2**32 - 1)

    def check(self) -> None:
        if len(self.chi) < 4 or list(self.chi) != sorted(set(self.chi)):
            raise BadInput("chi needs four values or more in ascending order")
        if self.small >= self.sigma0:
            raise BadInput("small must be below sigma0")
        if self.large <= self.d:
            raise BadInput("large must be above d")
        if not self.chi[0] <= 1.5 < 6 <= self.chi[-1]:
            raise BadInput("chi must reach from 1.5 or less to 6 or more")

    def sizes(self) -> list[Size]:
        """The base, with a smaller start, with a larger dimension."""
        return [
            Size(self.n, self.d, self.m, self.sigma0),
            Size(self.n, self.d, self.m, self.small),
            Size(self.n, self.large, self.m, self.sigma0),
        ]

    def run(self, lab: Lab) -> xarray.Dataset:
        base, *others = self.sizes()
        near = tuple(x for x in self.chi if 1 <= x <= 8)
        make = {
            "classifier": partial(_phase.classifier, base, self.chi, self.seeds, self.base),
            "denoiser": partial(_phase.denoiser, base, self.chi, self.seeds_denoiser, self.base),
            "small": partial(_phase.classifier, others[0], near, self.seeds, self.base),
            "large": partial(_phase.classifier, others[1], near, self.seeds, self.base),
        }
        found = dict(zip(make, lab.keep_all(make, "sweeps"), strict=True))
        data = xr.Dataset(coords={"chi": list(self.chi), "near": list(near)})
        data["classifier"] = (("chi", "seed"), found["classifier"].ratio.values)
        for name, words in (("end", "at the end of training"), ("early", "before saturation")):
            data[name] = (("chi", "seed_denoiser"), found["denoiser"][name].values)
            data[name].attrs.update(
                long_name=f"denoiser: mean product with signal over noise {words}", units="1"
            )
        for name, words in (("small", "from a smaller start"), ("large", "with a larger d")):
            data[name] = (("near", "seed"), found[name].ratio.values)
            data[name].attrs.update(long_name=f"classifier: signal over noise {words}", units="1")
        data.classifier.attrs.update(
            long_name="classifier: largest product with signal over noise when the loss is first below 0.1",
            units="1",
        )
        return data

    def law(self, record: xarray.Dataset) -> xarray.Dataset:
        from saltus.papers.features.law import ddpm, stationary

        chi = record.chi.values
        mu = np.asarray([self.sizes()[0].mu(x) for x in chi])
        point = stationary.symmetric(chi, self.m, *ddpm.ALPHA_BETA, mu=mu)
        data = xr.Dataset({"end": ("chi", point.a[:, 0] / point.a[:, 1])}, coords={"chi": chi})
        data.end.attrs.update(long_name="ratio at the stationary point, equal classes", units="1")
        return data

    def claims(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        chi, near = record.chi.values, record.near.values

        def power(ratio: xarray.DataArray, x: object) -> stats.Estimate:
            return over_seeds(ratio.values, lambda r: steepness(x, r, 3.0))

        of, den = power(record.classifier, chi), power(record.end, chi)
        yield claim.above(
            "classifier-steep",
            "Around n SNR² = 3 the classifier's ratio goes with its power 1.5 or more (bootstrap).",
            of,
            1.5,
            control=("the denoiser's", den),
        )
        yield claim.below(
            "denoiser-gentle",
            "There the denoiser's goes with the power 0.4 or less (bootstrap).",
            den,
            0.4,
            control=("the classifier's", of),
        )
        for name, words, how in (
            ("small", f"σ₀ = {self.small:g}", {}),
            (
                "large",
                f"d = {self.large}",
                dict(
                    expected=False,
                    because="at the same σ₀ more dimensions begin with larger products, σ₀√d, and leave them "
                    "less time to grow apart; it is the start's size that sharpens the step",
                ),
            ),
        ):
            yield claim.above(
                f"steeper-{name}",
                f"With {words} the classifier's power where its ratio crosses 1 is larger still (over that "
                "of "
                "the base, bootstrap).",
                _gain(record, name, near),
                1.0,
                control=("the base with two halves of its draws", _halves(record, near)),
                **how,
            )
        change = {name: _change(record[name].values) for name in ("classifier", "end")}
        solved = float(law.end[-1] / law.end[0])
        yield claim.above(
            "chooses",
            f"From n SNR² = {chi[0]:g} to {chi[-1]:g} the classifier's ratio changes by at least ten times "
            "as much as the denoiser's (factor over factor, bootstrap).",
            over_seeds(record.classifier.values, lambda r: _change(r) / change["end"]),
            10.0,
            control=("the denoiser's as it is solved for", stats.exact(solved / change["end"])),
        )

    def draw(self, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
        from saltus.report.figure import COLOURS, MUTED, band, finding, sheet, theory

        fig, axes = sheet(1, 1, width=4.8, height=3.4)
        ax, chi = axes[0, 0], record.chi.values
        band(ax, chi, record.classifier.values.T, label="classification", colour=COLOURS[1])
        band(ax, record.near.values, record.small.values.T, label=f"… σ₀ = {self.small:g}", colour=COLOURS[4])
        band(ax, record.near.values, record.large.values.T, label=f"… d = {self.large}", colour=COLOURS[3])
        band(ax, chi, record.end.values.T, label="diffusion model", colour=COLOURS[0])
        theory(ax, chi, law.end.values, label="theory: stationary point")
        ax.axhline(1, color=MUTED, linewidth=0.8)
        ax.set(xscale="log", yscale="log", xlabel="n SNR²", ylabel="signal learning / noise learning")
        ax.legend(loc="upper left", fontsize=7)
        note = f"n = {self.n}, d = {self.d}, m = {self.m}, σ₀ = {self.sigma0:g}; "
        note += f"bands hold 80% of {self.seeds} draws"
        finding(fig, "The classifier's ratio takes a step, the denoiser's does not", note)
        return fig


def _change(ratio: Any) -> float:
    """By what factor the median ratio [chi, seed] changes from the first to the last n SNR^2."""
    low, high = (stats.median(row).value for row in (ratio[0], ratio[-1]))
    return high / low


def _own(near: Any, ratio: Any) -> float:
    """The power around the ratio's own crossing of 1."""
    return steepness(near, ratio, crossing(near, ratio), AROUND)


def _gain(record: xarray.Dataset, name: str, near: Any) -> stats.Estimate:
    """How many times larger the power at its own crossing is than that of the base."""
    return _compared(record.classifier.sel(chi=near).values, record[name].values, near)


def _halves(record: xarray.Dataset, near: Any) -> stats.Estimate:
    """The same between two halves of the base's own draws."""
    runs = record.classifier.sel(chi=near).values
    half = runs.shape[1] // 2
    return _compared(runs[:, :half], runs[:, half : 2 * half], near)


def _compared(base: Any, other: Any, near: Any) -> stats.Estimate:
    pair = np.moveaxis(np.stack([base, other]), -1, 0)  # [seed, 2, chi]
    return stats.bootstrap(pair, lambda r: _own(near, r[:, 1].T) / _own(near, r[:, 0].T), draws=300)
