"""What `features/phase` claims."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.core import claim, stats
from saltus.papers.features.studies._early_claims import powers
from saltus.papers.features.studies._phase import crossing, steepness

if TYPE_CHECKING:
    import xarray

    from saltus.core.claim import Claim
    from saltus.papers.features.studies.phase import Phase


def over_seeds(ratio: Any, statistic: Any) -> stats.Estimate:
    """A statistic of [chi, seed] with its bootstrap interval over seeds."""
    return stats.bootstrap(np.asarray(ratio).T, lambda runs: statistic(runs.T), draws=300)


def claims(study: Phase, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
    chi = record.chi.values
    kinds = [kind for kind, _ in study.sizes("classifier")]
    ratios, star = record.ratio.values, law.boundary.values
    base = over_seeds(ratios[0], lambda r: crossing(chi, r) / star[0])
    even = over_seeds(ratios[0], lambda r: crossing(chi, r) / 5.0)
    yield claim.within(
        "boundary",
        f"The classifier's signal and noise are equal at n SNR² = {star[0]:.3g}, where both would reach "
        f"size 1 at the same step (measured {base.value * star[0]:.3g}; over it, bootstrap).",
        base,
        (0.8, 1.2),
        control=("the sufficient 2.5/C of Theorem 3.2 with C = 1/2, that is 5", even),
    )
    every = [over_seeds(r, lambda x, s=s: crossing(chi, x) / s) for r, s in zip(ratios, star, strict=True)]
    far = max(every, key=lambda e: max(abs(np.log(max(e.low, 1e-9))), abs(np.log(max(e.high, 1e-9)))))
    where = record["size"].values[every.index(far)]
    yield claim.within(
        "boundary-every-size",
        f"So it is to 25% at every size (over the formula, at the size where it is farthest off, {where}).",
        far,
        (0.75, 1.25),
        control=("5 for the formula, at the base", even),
        expected=False,
        because="the formula lets both begin at their typical size; the largest noise product is one of n m "
        "and "
        "begins ahead, so that the boundary lies above it at every size, and with few dimensions by more",
    )
    small = [i for i, kind in enumerate(kinds) if kind in ("base", "σ₀")]
    if len(small) > 1:
        first, last = ratios[small[0]], ratios[small[-1]]

        def fall(pair: Any) -> float:
            return crossing(chi, pair[0]) / crossing(chi, pair[1])

        both = np.stack([first, last])  # [2, chi, seed]
        drop = stats.bootstrap(np.moveaxis(both, -1, 0), lambda r: fall(np.moveaxis(r, 0, -1)), draws=300)
        same = stats.bootstrap(
            np.moveaxis(np.stack([first, first]), -1, 0), lambda r: fall(np.moveaxis(r, 0, -1)), draws=300
        )
        yield claim.above(
            "boundary-falls",
            f"It falls as the start does: from σ₀ = {study.sigma0[0]:g} to {study.sigma0[-1]:g} by a factor "
            f"of at least 1.1 (formula: {star[small[0]] / star[small[-1]]:.3g}; bootstrap).",
            drop,
            1.1,
            control=("between two equal starts", same),
        )

        def sharper(pair: Any) -> float:
            steep = [steepness(chi, p, star[i]) for p, i in zip(pair, (small[0], small[-1]), strict=True)]
            return steep[1] / steep[0]

        gain = stats.bootstrap(np.moveaxis(both, -1, 0), lambda r: sharper(np.moveaxis(r, 0, -1)), draws=300)
        yield claim.above(
            "transition-sharpens",
            "Around the boundary the power of n SNR² that the ratio goes with is larger for the smallest "
            f"start than for the largest, by 1.2 times or more (powers "
            f"{steepness(chi, first, star[small[0]]):.2g} and {steepness(chi, last, star[small[-1]]):.2g}; "
            "bootstrap).",
            gain,
            1.2,
            control=("between two equal starts", stats.exact(1.0)),
        )
    yield from denoiser_claims(record, law)


def denoiser_claims(record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
    x = record.chi_denoiser.values

    def power(ratio: Any) -> stats.Estimate:
        """Over the draws in which every training stayed finite and came to rest."""
        return stats.median(powers(x, ratio[:, np.isfinite(ratio).all(0)]))

    early = [power(e) for e in record.early.values]
    worst = max(early, key=lambda e: max(abs(e.low - 1), abs(e.high - 1)))
    end = [power(e) for e in record.end.values]
    yield claim.within(
        "early-power",
        f"The denoiser's early ratio goes with n SNR² to the power 1 at every size, from {x[0]:g} to "
        f"{x[-1]:g} (power, median over draws, at the size where it is farthest off).",
        worst,
        (0.9, 1.1),
        control=("at the end of training, base", end[0]),
    )
    settled = np.isfinite(record.end.values) & (record.spread.values < 1e-2)
    off = np.abs(record.end.values / record.solved.values - 1)[settled]
    yield claim.below(
        "solved-every-size",
        f"Where all neurons agree at the end, {settled.mean():.0%} of the runs, the last ratio is the one "
        "solved for (relative distance, median over all sizes).",
        stats.median(off),
        0.01,
        control=("before saturation", stats.median(np.abs(record.early.values / record.solved.values - 1))),
    )
    nearest = min(end, key=lambda e: abs(e.value - 1))
    yield claim.within(
        "end-power",
        "The last ratio goes with n SNR² to the power 1 at some size, as Θ(n SNR²) says of all (power, "
        f"median over draws, at the size where it is nearest; {end[0].value:.2g} at the base).",
        nearest,
        (0.9, 1.1),
        control=("solved for, base", stats.median(powers(x, record.solved.values[0]))),
        expected=False,
        because="restoring forces undo most of what the pulls' ratio n SNR²/2 gives: see features/stationary",
    )
