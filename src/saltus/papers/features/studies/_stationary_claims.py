"""What `features/stationary` claims."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.core import claim, stats
from saltus.papers.features.studies._early_claims import powers

if TYPE_CHECKING:
    import xarray

    from saltus.core.claim import Claim
    from saltus.papers.features.studies.stationary import Stationary

SATURATES = (
    "the ratio is (n SNR²/2) R(a_mu)/R(a_xi), and R, the pull less what restores, shrinks where a product "
    "is large: the theorem follows the ratio to saturation and leaves R(a_mu)/R(a_xi) as a constant"
)


def claims(study: Stationary, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
    r = record
    yield claim.below(
        "solver-is-training",
        "Trained twice as long as in the paper, every product of every neuron is the one solved for "
        "(distance over the largest product, largest).",
        stats.worst(r.gap.values),
        1e-6,
        control=("an eighth of the training: spread over neurons", stats.least(r.spread_half.values)),
    )
    yield claim.below(
        "still",
        f"At the paper's {study.steps} steps the gradient has norm below 2e-2 (median).",
        stats.median(r.paper_slope.values),
        2e-2,
        control=("where the products grow the fastest", stats.median(r.top_slope.values)),
    )
    yield claim.below(
        "identity",
        "There a goes with gram · ω R(a), patch by patch, so that a_mu/a_xi = (n SNR²/2) R(a_mu)/R(a_xi) "
        "with equal classes (largest relative distance over patches and runs).",
        stats.worst(r.identity.values),
        1e-6,
        control=("at an eighth of the training", stats.least(r.identity_half.values)),
    )
    yield claim.below(
        "all-neurons-agree",
        "All neurons have the same product with each patch (largest coefficient of variation).",
        stats.worst(r.spread.values),
        1e-3,
        control=("at an eighth of the training", stats.least(r.spread_half.values)),
    )
    yield claim.above(
        "minimum",
        "No curvature by all the weights is negative there (least eigenvalue over the largest, least).",
        stats.least(r.least_curvature.values[np.isfinite(r.least_curvature.values)]),
        -1e-9,
        control=(
            "where the products grow the fastest",
            stats.least(r.origin_curvature.values[np.isfinite(r.origin_curvature.values)]),
        ),
    )
    said = np.interp(np.log(r.chi.values), np.log(law.chi_law.values), law.line.values)
    off = r.ratio.values / said[:, None]
    yield claim.within(
        "three-numbers",
        "Equal classes and orthogonal noises give the trained ratio to 5% (over it, median of all runs).",
        stats.median(off),
        (0.95, 1.05),
        control=("n SNR²/2", stats.median(r.ratio.values / (r.chi.values[:, None] / 2))),
    )
    chi = r.chi.values
    slopes = powers(chi, r.ratio.values)
    yield claim.within(
        "theta-paper",
        f"In the paper's setting the stationary ratio goes with n SNR² to the power 1 from {chi[0]:.3g} to "
        f"{chi[-1]:.3g}, as Θ(n SNR²) would (power, median).",
        stats.median(slopes),
        (0.9, 1.1),
        control=("solved for", stats.median(powers(chi, r.solved_ratio.values))),
        expected=False,
        because=SATURATES,
    )
    yield from _unit(study, record, law)
    last = r.cosine.isel(step=-1).values
    peak = r.cosine.max("step").values
    yield claim.above(
        "aligned",
        "At the stationary point the neurons are aligned, <w_r, w_r'> = Θ(|w|²) (Lemma D.8; mean cosine of "
        "pairs, median, at least 0.1).",
        stats.median(last),
        0.1,
        control=("before training", stats.median(r.cosine.isel(step=0).values)),
        expected=False,
        because=f"they align to {np.median(peak):.2g} at the blow-up and come apart again: "
        f"{np.median(r.outside.values):.0%} of |W|² ends outside the span of the patches, as a simplex",
    )


def _unit(study: Stationary, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
    """The setting with |mu| = 1, and the one inside Condition 3.1."""
    r = record
    same = (r.theory_spread < 1e-3).values & (r.theory_slope < 1e-4).values
    agree = np.abs(r.theory_ratio / r.theory_solved - 1).values
    yield claim.below(
        "unit-solver",
        f"With |mu| = 1, m = {', '.join(map(str, study.neurons))}, trained networks whose neurons agree "
        "have the ratio solved for (relative distance, median).",
        stats.median(agree[same]),
        0.01,
        control=(
            "n SNR²/2",
            stats.median(np.abs(r.theory_ratio.values / (r.chi_theory.values[:, None] / 2) - 1)),
        ),
    )
    yield claim.above(
        "unit-branch",
        "Runs there whose neurons all agree at the end (share).",
        stats.share(same),
        0.5,
        control=("before saturation", stats.share(r.theory_spread_early.values < 1e-3)),
    )
    chi, power = law.chi_law.values, law.unit_power
    far, near = chi >= 1000, chi <= 0.003
    above = power.values[:, far].ravel()
    yield claim.within(
        "theta-far-above",
        "From n SNR² = 1000 on the solved ratio goes with its power 1, for every m (power, farthest from 1).",
        stats.exact(float(above[np.argmax(np.abs(above - 1))]), above.size),
        (0.9, 1.1),
        control=("at n SNR² = 1, m = 20", stats.exact(float(np.interp(0, np.log(chi), power.sel(width=20))))),
    )
    yield claim.within(
        "theta-far-below",
        "Below n SNR² = 0.003 it does so too, for every m (power, the largest).",
        stats.exact(float(power.values[:, near].max()), int(near.sum()) * len(law.width)),
        (0.9, 1.1),
        control=("at n SNR² = 1, m = 20", stats.exact(float(np.interp(0, np.log(chi), power.sel(width=20))))),
        expected=False,
        because="for n SNR² → 0 the minimum keeps a_mu/a_xi at a constant (0.83 for m = 1): the noise "
        "saturates first, and the signal then grows until its own restoring force stops it; for m = 20 the "
        f"power there is {float(power.sel(width=20).values[near].mean()):.2g}",
    )
    one = r.theory_size.sel(chi_theory=1.0, method="nearest")
    spread = (one.max("m") / one.min("m")).values
    yield claim.below(
        "size-m",
        "At n SNR² = 1 products are of size m^(-1/6): m^(1/6) a changes by less than 15% over m (largest "
        "over least, median).",
        stats.median(spread),
        1.15,
        control=("a itself", stats.median(_plain(one, study.neurons))),
    )
    found = powers(r.chi_inside.values, r.inside_ratio.values)
    yield claim.within(
        "theta-inside",
        "Inside Condition 3.1 (n = 3, m = 1, d = 10^12) the ratio at the end goes with n SNR² to the power 1 "
        f"from {r.chi_inside.values[0]:g} to {r.chi_inside.values[-1]:g} (power, median; least margin of the "
        f"condition {float(r.inside_margin.min()):.2g}).",
        stats.median(found),
        (0.9, 1.1),
        control=("solved for", stats.median(powers(r.chi_inside.values, r.inside_solved.values))),
        expected=False,
        because="training ends at the minimum, where the ratio is 0.83 whatever n SNR² is; before "
        "saturation it is of the order of n SNR²",
    )
    yield claim.within(
        "early-inside",
        "There, before saturation, it does (power, median).",
        stats.median(powers(r.chi_inside.values, r.inside_early.values)),
        (0.9, 1.1),
        control=("at the end", stats.median(found)),
    )


def _plain(one: Any, neurons: Any) -> Any:
    sizes = one.values / np.asarray(neurons, float)[:, None] ** (1 / 6)
    return sizes.max(0) / sizes.min(0)
