"""What `features/patches` claims."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.core import claim, stats
from saltus.papers.features.studies._early_claims import powers

if TYPE_CHECKING:
    import xarray

    from saltus.core.claim import Claim
    from saltus.papers.features.studies.patches import Patches

AGREE = 1e-3  # coefficient of variation over neurons below which all of them agree
MIDDLE = 2  # the strength at which single numbers are given: rare and weak, and every run comes to rest


def over_common(values: xarray.DataArray, group: str) -> Any:
    """A feature's product over the common one's [strength, seed]."""
    return (values.sel(group=group) / values.sel(group="common")).transpose("strength", "seed").values


def farthest(off: Any) -> stats.Estimate:
    """The median over seeds where it is farthest from 1, of [..., seed]."""
    rows = [stats.median(row) for row in np.asarray(off).reshape(-1, np.shape(off)[-1])]
    return max(rows, key=lambda e: abs(np.log(e.value)) if e.value > 0 else np.inf)


def claims(study: Patches, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
    yield from _early(study, record, law)
    yield from _rest(study, record)
    yield from _learnt(record)
    yield from _classifier(record, law)
    yield from _many(record, law)


def _early(study: Patches, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
    s = record.strength.values
    both = ("rare", "weak")
    early = {g: over_common(record.early, g) for g in both}
    drawn = {g: over_common(record.pull, g) for g in both}
    rest = {g: over_common(record.end, g) for g in both}
    off = np.stack([early[g] / drawn[g] for g in both])
    lengths = np.stack([early["rare"], early["weak"] / s[:, None]])
    yield claim.within(
        "early-law",
        "Before saturation a feature's product over the common one's is <x̄, x_p> over <x̄, x_q>, frequency "
        "times squared length, for rare and for weak ones (measured over predicted, median where it is "
        "farthest "
        "off).",
        farthest(off[:, : MIDDLE + 1]),
        (0.8, 1.25),
        control=("squared length alone", farthest(lengths[:, : MIDDLE + 1])),
    )
    rarely: dict[str, Any] = dict(
        expected=False,
        because="a rare feature is long, and so are its first products, σ₀|mu|: at the smallest share they "
        "have "
        "not faded when the common feature saturates, and the interval reaches past it",
    )
    for g in both:
        yield claim.within(
            f"early-power-{g}",
            f"The {g} feature's goes with that to the power 1, down to {s[-1]:.2g} (power, median).",
            stats.median(powers(s, early[g])),
            (0.9, 1.1),
            control=("at rest", stats.median(powers(s, rest[g]))),
            **(rarely if g == "rare" else {}),
        )
    alike = (record.end.sel(group="rare") / record.end.sel(group="weak")).transpose("strength", "seed").values
    other = (record["last"].sel(group="rare") / record["last"].sel(group="weak")).transpose(
        "strength", "seed"
    )
    yield claim.within(
        "interchangeable",
        "Rare and weak features of the same frequency times squared length have the same product at rest "
        "(one "
        "over the other, median where it is farthest from 1).",
        farthest(alike),
        (0.8, 1.25),
        control=("the classifier's, at the end of its training", farthest(other.values)),
    )


def _rest(study: Patches, record: xarray.Dataset) -> Iterator[Claim]:
    gap = np.concatenate([record.gap.values.ravel(), record.many_gap.values.ravel()])
    agree = np.concatenate([record.spread.values.ravel(), record.many_spread.values.ravel()]) < AGREE
    pulled = (record.pull / record.pull.sel(group="common")) / (record.end / record.end.sel(group="common"))
    yield claim.below(
        "solved",
        f"Where all neurons agree at rest, {agree.mean():.0%} of the runs, every product is the one solved "
        "for "
        "with the run's own patches (distance over the largest product, largest of all runs).",
        stats.worst(gap[agree]),
        1e-4,
        control=(
            "products in proportion to <x̄, x_p>",
            stats.least(np.abs(pulled.isel(strength=-1).sel(group="noise").values - 1)),
        ),
    )


def _learnt(record: xarray.Dataset) -> Iterator[Claim]:
    ends = {g: (over_common(record.end, g), over_common(record["last"], g)) for g in ("rare", "weak")}
    tenth = np.log(10)
    for g, (own, other) in ends.items():
        apart = np.log(np.maximum(own / other, 1e-12))
        yield claim.above(
            f"learns-{g}",
            f"At every strength below {float(record.strength[1]):.2g} the denoiser's {g} feature has ten "
            "times or "
            "more of the share of the common one's product that it has in the classifier (ln of the shares' "
            "ratio, "
            "median where it is least).",
            min((stats.median(row) for row in apart[2:]), key=lambda e: e.low),
            tenth,
            control=("where all features are equal", stats.median(apart[0])),
        )
        yield claim.above(
            f"keeps-{g}",
            f"At the smallest strength, {float(record.strength[-1]):.2g}, the denoiser's {g} feature still "
            "has a "
            "fifth of the common one's product or more (median).",
            stats.median(own[-1]),
            0.2,
            control=("the classifier's", stats.median(other[-1])),
        )
    gain = record.gain.isel(strength=-1)
    unseen = record.gain_unseen.isel(strength=-1).values
    for g in ("rare", "weak"):
        yield claim.above(
            f"denoises-{g}",
            f"There it takes error away from patches with the {g} feature (share of the error, median; of "
            "the "
            f"common feature's {float(gain.sel(group='common').median()):.4f}, and its output cannot take "
            "more than "
            "m/d).",
            stats.median(gain.sel(group=g).values),
            0.001,
            control=("from an empty patch", stats.median(unseen)),
        )
    middle = record.isel(strength=MIDDLE)
    for g in ("rare", "common"):
        yield claim.above(
            f"readable-{g}",
            f"A linear probe on the denoiser's squared products, fitted to new points that hold the {g} "
            "feature "
            "alone, tells their class in nine cases of ten (accuracy, median; before training "
            f"{float(middle.probe_start.sel(group=g).median()):.2f}; strength {float(middle.strength):.2g}).",
            stats.median(middle.probe.sel(group=g).values),
            0.9,
            control=("labels in another order", stats.median(middle.probe_shuffled.sel(group=g).values)),
            expected=False,
            because="at rest all neurons have the same product with a patch, and nearly the same with both "
            "classes' patches of a feature: what denoises a feature does not tell its classes apart",
        )


def _classifier(record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
    reached = np.stack([over_common(record.reached, g) for g in ("rare", "weak")])
    said = np.stack([law.reached_rare.values, law.reached_weak.values])[..., None]
    linear = np.broadcast_to(record.strength.values[:, None], reached.shape)
    yield claim.within(
        "classifier-law",
        "When the classifier's common product reaches 1, the others are start^(1 - strength) of it, times "
        "the "
        "length's ratio: growth at rates in proportion to frequency times squared length (measured over "
        "predicted, "
        "median where it is farthest off).",
        farthest(reached / said),
        (0.5, 2.0),
        control=("in proportion to it, as the denoiser's", farthest(reached / linear)),
    )
    middle = record.isel(strength=MIDDLE)
    yield claim.within(
        "classifier-blind",
        f"Where the rare feature stands alone the classifier is a coin (accuracy at new points, strength "
        f"{float(middle.strength):.2g}, median).",
        stats.median(middle.alone.sel(group="rare").values),
        (0.4, 0.6),
        control=("where the common feature does", stats.median(middle.alone.sel(group="common").values)),
    )


def _many(record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
    count = record["count"].values
    half = float(law.many_early)
    end = record.many_end.values / half
    yield claim.within(
        "many-early",
        f"With {count[0]} to {count[-1]} equal features a point, feature over noise is n SNR²/2 before "
        "saturation, "
        "whatever their number (over it, median where it is farthest off).",
        farthest(record.many_early.values / half),
        (0.8, 1.25),
        control=("at rest", farthest(end)),
    )
    grown = record.many_end.values[-1] / record.many_end.values[0]
    same = record.many_early.values[-1] / record.many_early.values[0]
    yield claim.above(
        "many-rest",
        f"At rest it grows with their number: from {count[0]} to {count[-1]} by a tenth or more (factor, "
        "median; "
        f"solved for with equal classes {float(law.many_rest[-1] / law.many_rest[0]):.3g}).",
        stats.median(grown),
        1.1,
        control=("before saturation", stats.median(same)),
    )
