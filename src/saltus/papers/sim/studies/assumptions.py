"""How large the region is that assumptions D.1-D.5 of the two-layer theory admit, and who lives in it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from saltus._lazy import np, xr
from saltus.core import claim, stats
from saltus.core.errors import BadInput
from saltus.core.settings import reading, setting
from saltus.core.study import study
from saltus.papers.sim.studies import _region

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab

FLOAT32_LEAST = 2.0**-149


@study(
    "sim/assumptions",
    cites="yang2025dynamics",
    figure="Assumptions D.1-D.5",
    cost="12 s on two cores",
    checks=(
        "starts exist that satisfy D.1-D.5",
        "the settings of the paper's own figures satisfy them",
        "random starts of the figures' size commonly satisfy them, given the best of signals",
        "the closed form of the largest start is what a search over all constants finds",
        "single precision cannot hold a start that satisfies them",
        "uneven starts cost decades of omega",
        "a kappa larger than the least costs decades of omega",
        "neighbouring signals need a ratio above 3, and any ratio above 3 will do",
        "they need the strongest signal last: in the main text's order none satisfies them",
        "they need d = s",
    ),
)
@dataclass(frozen=True)
class AdmissibleRegion:
    """The theory's assumptions can be met, and no figure of the paper comes near it.

    D.1-D.5 solved for the largest omega = min |W(0)| they admit: with two concepts and the best of signals
    10^-60.8, with three 10^-80.6, with four 10^-98.3, in exact agreement with a search over all constants.
    Starts drawn as for the figures are more than fifty decades larger. As drawn, the theory's figures use A
    squared, which puts most signals far enough apart; the starts remain as much too large.
    """

    reading: str = reading()
    concepts: tuple[int, ...] = setting((2, 3, 4), "numbers of concepts s", low=2, high=_region.MOST)
    eta: float = setting(0.01, "step of the theory's figures", above=0)
    lr: float = setting(0.1, "step of the networks' figures, as written", above=0)
    scale: float = setting(0.1, "U(0) of the figures is uniform on (0, scale)", low=1e-6, high=1e3)
    seeds: int = setting(1024, "random starts of each setting", low=1, high=10**6)
    looked: int = setting(48, "starts of each setting whose margins are worked out", low=1, high=10**5)
    base: int = setting(0, "key that all starts share", low=0, high=2**32 - 1)
    ratios: tuple[float, ...] = setting(
        (3.02, 3.1, 4.0, 5.0, 10.0, 20.0, 100.0),
        "signal ratios searched by brute force; closer ones need a finer search",
        low=3.02,
        high=1e6,
    )
    betas: tuple[float, ...] = setting(
        (2.0, 10.0), "max|W(0)|/min|W(0)| searched by brute force", above=1, high=1e6
    )
    kappas: tuple[float, ...] = setting((1.2, 1.5), "kappa searched by brute force", above=1.1, high=2.0)
    smallest: float = setting(-90.0, "log10 of the smallest scale of U tried", low=-120, high=-1)
    scales: int = setting(90, "scales of U tried, down to the smallest", low=2, high=1000)
    inside: float = setting(
        0.5, "decades below their own limit of the starts that must be admissible", above=0, high=50
    )
    above: float = setting(4.0, "decades over their own limit of those that must not", above=0, high=50)
    closeness: float = setting(
        -200.0, "log10 omega at which the smallest signal ratio is asked for", high=-90, low=-280
    )
    points: int = setting(200, "points of the curves", low=2, high=10**4, drawing=True)

    def check(self) -> None:
        if len(set(self.concepts)) < len(self.concepts) or list(self.concepts) != sorted(self.concepts):
            raise BadInput("concepts must increase, as in 2,3,4")
        if len(self.betas) < 2 or len(self.kappas) < 2:
            raise BadInput("betas and kappas need two values or more: the last is the control of the first")
        if self.looked > self.seeds:
            raise BadInput(f"looked ({self.looked}) are some of the {self.seeds} seeds; it cannot be more")

    def run(self, lab: Lab) -> xarray.Dataset:
        chosen = _region.settings(self.reading == "as-drawn", self.eta, self.lr, self.scale)
        decades = np.linspace(math.log10(self.scale), self.smallest, self.scales)
        with lab.progress("assumptions") as tick:
            parts = [lab.keep("figures", lambda: _region.figures(chosen, self.base, self.seeds, self.looked))]
            tick(1, 4)
            parts.append(
                lab.keep(
                    "search", lambda: _region.searches(self.concepts, self.ratios, self.betas, self.kappas)
                )
            )
            tick(2, 4)
            parts.append(
                lab.keep("shares", lambda: _region.shares(self.concepts, decades, self.base, self.seeds))
            )
            tick(3, 4)
            parts.append(
                lab.keep(
                    "margins",
                    lambda: _region.inside_and_above(
                        self.concepts, self.base, self.looked, self.inside, self.above
                    ),
                )
            )
            tick(4, 4)
        return xr.merge(parts)

    def law(self, record: xarray.Dataset) -> xarray.Dataset:
        """Closed forms of the largest omega: where it was searched (same names), and as curves."""
        from saltus.papers.sim.studies import _region_law

        return _region_law.law(self)

    def claims(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        yield claim.above(
            "satisfiable",
            f"random starts brought {self.inside:g} decades below the limit satisfy D.1-D.5 (share)",
            stats.share(record.inside_holds.values),
            0.9,
            control=(
                f"the same starts {self.above:g} decades above it",
                stats.share(record.above_holds.values),
            ),
        )
        yield from self.practice(record, law)
        yield from self.region(record, law)
        yield claim.below(
            "descending-order",
            "with the signals in the main text's descending order none of these starts is admissible (share)",
            stats.share(record.descending_holds.values),
            0.1,
            control=("ascending order", stats.share(record.inside_holds.values)),
        )
        yield claim.below(
            "only-d-is-s",
            "with a dimension that carries no signal (d > s) none of these starts is admissible (share)",
            stats.share(record.wide_holds.values),
            0.1,
            control=("d = s", stats.share(record.inside_holds.values)),
        )

    def practice(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        """Whether what the paper runs is what the paper assumes."""
        apart = record.figure.values[~record.fails.sel(failing=_region.FAILING[2]).all("look").values]
        least = float(record.omega_over.min())
        because = (
            f"omega is at least {least:.0f} decades above what any signals admit; "
            f"a_i > 3 a_j holds for {', '.join(apart) or 'none'} of {', '.join(record.figure.values)}"
        )
        yield claim.above(
            "figures-satisfy",
            "starts drawn for the paper's own figures satisfy D.1-D.5 (share, all figures)",
            stats.share(record.admissible.values),
            0.5,
            control=("the same with a dimension without signal", stats.share(record.admissible_wide.values)),
            expected=False,
            because=because,
        )
        usual = record.held.isel(log10_scale=0)
        yield claim.above(
            "common-in-practice",
            f"starts U ~ U(0, {self.scale:g}) satisfy D.1-D.5, with the best signals and step (share)",
            stats.share(usual.values),
            0.5,
            control=("the figures' own signals and steps", stats.share(record.admissible.values)),
            expected=False,
            because="the scale of U at which half of them do is " + self.halfway(record),
        )

    def halfway(self, record: xarray.Dataset) -> str:
        """The scale of U at which half of all starts are admissible, per number of concepts."""
        words = []
        for s in record.concepts.values:
            share = record.held.sel(concepts=s).mean("seed").values
            scale = record.log10_scale.values[share >= 0.5]
            words.append(
                f"10^{scale.max():.0f} (s={s})" if scale.size else f"below 10^{self.smallest:g} (s={s})"
            )
        return ", ".join(words)

    def region(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        """The size of the region: searched, and in closed form."""
        gap = np.abs(record.searched.values - law.searched.values)
        other = np.abs(record.searched.values - law.searched_other_kappa.values)
        yield claim.below(
            "closed-form",
            "closed form and search over all constants agree on the largest omega (worst gap, decades)",
            stats.worst(gap),
            0.01,
            control=(f"closed form at kappa = {self.kappas[0]:g}", stats.worst(other)),
        )
        yield claim.below(
            "not-in-float32",
            "the largest omega of all is below the smallest number of single precision (log10)",
            stats.worst(np.append(record.searched.values.ravel(), record.best_searched.values)),
            math.log10(FLOAT32_LEAST),
            control=("without D.5", stats.worst(law.without_D5.values)),
        )
        cost = float(record.best_searched) - record.beta_searched.values
        yield claim.within(
            "cost-of-beta",
            f"a start uneven by {self.betas[0]:g} instead of 1 must be smaller by about 5 decades",
            stats.exact(cost[0], 1),
            (4.5, 5.5),
            control=(f"uneven by {self.betas[-1]:g}", stats.exact(cost[-1], 1)),
        )
        cost = float(record.best_searched) - record.kappa_searched.values
        yield claim.within(
            "cost-of-kappa",
            f"kappa = {self.kappas[0]:g} instead of 1.1 costs about 6 decades",
            stats.exact(cost[0], 1),
            (5.5, 6.5),
            control=(f"kappa = {self.kappas[-1]:g}", stats.exact(cost[-1], 1)),
        )
        yield claim.within(
            "ratio-infimum",
            f"signals as close as a ratio of 3 are nearly admitted at omega = 10^{self.closeness:g} (ratio)",
            stats.exact(float(law.infimum[-1])),
            (3.0, 3.001),
            control=("alpha held at min a", stats.exact(float(law.infimum_alpha_min[-1]))),
        )

    def draw(self, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
        from saltus.papers.sim.studies import _region_pictures

        return _region_pictures.sheet(self, record, law)
