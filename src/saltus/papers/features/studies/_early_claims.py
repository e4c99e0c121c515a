"""What `features/early` claims."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.core import claim, stats
from saltus.papers.features.studies._theory import linear_fit

if TYPE_CHECKING:
    import xarray

    from saltus.core.claim import Claim
    from saltus.papers.features.studies.early import Early


def powers(x: Any, y: Any) -> Any:
    """The power of x that y [x, seed] goes with, for each seed."""
    with np.errstate(invalid="ignore", divide="ignore"):  # a product below 0 has no power
        return np.asarray([linear_fit(np.log(x), np.log(col))[0] for col in np.asarray(y).T])


def claims(study: Early, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
    chi = record.chi.values
    off = record.ratio.values / law.early.values[:, None]
    worst = int(np.argmax(np.abs(np.log(np.median(off, axis=1)))))
    point = record.point.values / law.early.values[:, None]
    yield claim.within(
        "half-chi",
        "Before saturation the ratio of mean products is n SNR²/2 (over it, median, at the n SNR² where it "
        f"is farthest off, {chi[worst]:g}).",
        stats.median(off[worst]),
        (0.8, 1.2),
        control=(
            "the ratio at the stationary point, where that is farthest off",
            stats.median(point[int(np.argmax(np.abs(np.log(np.median(point, axis=1)))))]),
        ),
    )
    yield claim.within(
        "slope-one",
        f"It goes with n SNR² to the power 1 from {chi[0]:g} to {chi[-1]:g} (power, median).",
        stats.median(powers(chi, record.ratio.values)),
        (0.9, 1.1),
        control=("at the stationary point", stats.median(powers(chi, record.point.values))),
    )
    drawn = (record.ratio / record.early_law).values
    yield claim.within(
        "mean-patch",
        "With the draw's own class sizes and noises the mean patch gives it to 10% (ratio over <x̄, "
        "mu>/<x̄, xi>, median over all runs).",
        stats.median(drawn),
        (0.9, 1.1),
        control=("n SNR² for n SNR²/2", stats.median(drawn / 2)),
    )
    half = record.sel(share=0.5)
    low = half.sel(chi=0.75, method="nearest")
    yield claim.below(
        "invariant",
        "Halfway to the blow-up every neuron has kept |w| sin³ of its angle to the mean patch "
        f"(n SNR² = {float(low.chi):g}, largest relative change over runs and neurons).",
        stats.worst(low.kept.values),
        1e-4,
        control=("|w| sin of it", stats.worst(low.kept_once.values)),
    )
    yield claim.below(
        "closed-form",
        "Halfway there the weights are those of the closed form (distance over the largest weight, largest).",
        stats.worst(half.closed_gap.values),
        1e-3,
        control=("linear growth alone", stats.least(half.linear_gap.values)),
    )
    rate = stats.median(record.rate.values)
    yield claim.within(
        "linear-rate",
        "Over the first tenth the signals' mean product grows by 4αβ(|S_j|/n)|w0|²|mu|²/√m a unit of step "
        "(measured over predicted, median).",
        rate,
        (0.8, 1.25),
        control=("with 2 for 4", stats.median(2 * record.rate.values)),
    )
    when = (record.onset / record.blow_up).values
    yield claim.within(
        "onset",
        "The loss has fallen by 1% of its whole fall when the first neuron's closed form blows up (step over "
        "step, median).",
        stats.median(when),
        (0.85, 1.15),
        control=("over T_2 of Lemma 4.2", stats.median(record.onset.values / law.T_2.values[:, None])),
    )
    for name, says, power, paper, words in (
        ("sigma0", "the start σ₀", -1.0, -2.0, "start"),
        ("dim", "d, with |ξ| held,", -0.5, -1.0, "dimension"),
    ):
        found = powers(record[name].values, record[f"onset_{name}"].values)
        yield claim.within(
            f"onset-{words}",
            f"That step goes with {says} to the power {power:g}; T_2 goes with the power {paper:g} (power, "
            "median).",
            stats.median(found),
            (power - 0.1, power + 0.1),
            control=("of T_2", stats.exact(paper)),
        )
    yield from _stage_times(record, law)
    positive = record.negative == 0
    before = ("before training", stats.share(record.negative_start.values == 0))
    yield claim.above(
        "all-positive",
        "Runs in which all products are positive when the loss has fallen by 1%, as Lemma 4.1 says of T_1 "
        "(share).",
        stats.share(positive.values),
        0.9,
        control=before,
        expected=False,
        because="a noise's pull is |ξ|²/n beside |mu|²/2: the larger n SNR² is, the sooner the loss falls; "
        "above 1 it falls before the last of the noises' products has turned",
    )
    few = positive.sel(chi=[x for x in chi if x <= 1] or [chi[0]])
    yield claim.above(
        "all-positive-low",
        "For n SNR² up to 1 they are (share).",
        stats.share(few.values),
        0.9,
        control=(f"for n SNR² = {chi[-1]:g}", stats.share(positive.isel(chi=-1).values)),
    )


def _stage_times(record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
    """T_mu, T_xi, T_1 and T_2 as their lemmas define them, beside their printed orders."""
    # Where T_mu lies beyond the fall of the loss the signals' products need not have turned by then.
    early = law.T_mu.values < np.median(record.onset.values, axis=1)
    turned, t_mu = record.turned_signal.values[early], law.T_mu.values[early, None]
    yield claim.above(
        "t-mu-sign",
        "By T_mu of Lemma D.5, its order taken without a constant, all products with signals are positive "
        "(share of the runs in which T_mu comes before the fall of the loss).",
        stats.share((turned >= 0) & (turned <= t_mu)),
        0.9,
        control=("by a tenth of it", stats.share((turned >= 0) & (turned <= t_mu / 10))),
    )
    chi, when = record.chi.values, record.turned_signal.values
    known = (when > 0).all(1) & early
    yield claim.within(
        "t-mu-power",
        "The step at which they are goes with n SNR² to the power -1/2, as T_mu does (power, median).",
        stats.median(powers(chi[known], when[known])),
        (-0.6, -0.4),
        control=(
            "that of the fall of the loss",
            stats.median(powers(chi[known], record.onset.values[known])),
        ),
    )
    yield claim.above(
        "t-1-first",
        "T_1 = max(T_mu, T_xi) comes before the loss falls (step of the fall over T_1, median).",
        stats.median(record.onset.values / law.T_1.values[:, None]),
        1.0,
        control=("over T_2", stats.median(record.onset.values / law.T_2.values[:, None])),
        expected=False,
        because="T_xi as printed takes the largest start and no constant: the products with noises, where "
        "they all become positive, are so at "
        f"{float((record.turned_noise.where(record.turned_noise >= 0) / law.T_xi).median()):.2g} of it",
    )
    ends = np.where(record.rest_leads.values > 0, record.rest_leads.values, np.nan)
    over = (ends / record.blow_up.values)[np.isfinite(ends)]
    yield claim.within(
        "t-2-defined",
        "T_2 as Lemma D.8 defines it, where the residual gradient has reached the dominant one (in most "
        "products with signals, noises or starts), comes at the blow-up of the first stage (over it, median "
        "of the runs that reach it).",
        stats.median(over),
        (0.8, 1.25),
        control=(
            "over T_2's printed order",
            stats.median((ends / law.T_2.values[:, None])[np.isfinite(ends)]),
        ),
    )
