"""Figure 6: the same comparison at three SNR in between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from saltus._lazy import np
from saltus.core import claim, stats
from saltus.core.errors import BadInput
from saltus.core.settings import setting
from saltus.core.study import study
from saltus.papers.features.studies._measures import ratio
from saltus.papers.features.studies._runs import Synthetic

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab


@study(
    "features/fig6",
    cites="han2025feature",
    figure="6",
    cost="2 min on two cores",
    checks=(
        "the classifier learns more noise at the lowest SNR, more signal at the highest",
        "in the middle, n SNR^2 = 3, it learns both about equally",
        "the denoiser is balanced at all of them",
        "the classifier's ratio is steep in n SNR^2, the denoiser's is not",
    ),
)
@dataclass(frozen=True)
class Figure6(Synthetic):
    """Near the boundary the classifier tips from noise to signal; the denoiser stays balanced.

    The trainings of figure 2 at n SNR² = 1.92, 3 and 4.32.
    """

    mu: tuple[float, ...] = setting((8.0, 10.0, 12.0), "lengths of the signals, ascending", above=0)

    def check(self) -> None:
        super().check()
        if len(self.mu) != 3 or list(self.mu) != sorted(set(self.mu)):
            raise BadInput("mu needs three lengths in ascending order, as in 8,10,12")

    def run(self, lab: Lab) -> xarray.Dataset:
        return self.both(self.mu, lab)

    def law(self, record: xarray.Dataset) -> xarray.Dataset:
        from saltus.papers.features.studies import _theory

        return _theory.of(self, self.mu, record.step.values, record.k.values)

    def claims(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        low, middle, high = self.mu
        of = {mu: ratio(record, "classifier", mu)[:, -1] for mu in self.mu}
        balanced = {mu: ratio(record, "denoiser", mu)[:, -1] for mu in self.mu}
        chi = {mu: f"n SNR² = {self.chi(mu):.3g}" for mu in self.mu}
        yield claim.below(
            "noise-below",
            f"At {chi[low]} the classifier's signal is at most half of its noise (ratio, median).",
            stats.median(of[low]),
            0.5,
            control=(chi[high], stats.median(of[high])),
        )
        above = stats.median(of[high])
        yield claim.above(
            "signal-above",
            f"At {chi[high]} the classifier's signal is at least its noise (ratio, median).",
            above,
            1.0,
            control=(chi[low], stats.median(of[low])),
        )
        yield claim.within(
            "equal-between",
            f"At {chi[middle]} it learns both to the same size, up to a factor of 1.5 (ratio, median).",
            stats.median(of[middle]),
            (1 / 1.5, 1.5),
            control=(chi[low], stats.median(of[low])),
        )
        spread = np.max([np.maximum(b, 1 / b) for b in balanced.values()], axis=0)
        other = np.max([np.maximum(b, 1 / b) for b in of.values()], axis=0)
        yield claim.below(
            "denoiser-balanced",
            "The denoiser's signal and noise are of the same size up to a factor of 1.5 at all three (worst "
            "ratio, median).",
            stats.median(spread),
            1.5,
            control=("the classifier's", stats.median(other)),
        )
        grown = np.log(self.chi(high) / self.chi(low))
        steep = {k: np.log(v[high] / v[low]) / grown for k, v in (("cls", of), ("den", balanced))}
        yield claim.above(
            "steeper",
            f"Between {chi[low]} and {chi[high]} the classifier's ratio goes with n SNR² to the power 1.5 "
            "or more (power, median).",
            stats.median(steep["cls"]),
            1.5,
            control=("the denoiser's", stats.median(steep["den"])),
        )

    def draw(self, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
        from saltus.papers.features.studies import _dynamics_pictures

        return _dynamics_pictures.dynamics(
            self,
            record,
            law,
            "Between 2 and 4 the classifier tips from noise to signal; the denoiser does not",
        )
