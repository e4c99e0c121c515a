"""The claims about growth that figures 2 and 6 make of the two trainings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.core import claim, stats
from saltus.papers.features.studies._theory import linear_fit

if TYPE_CHECKING:
    import xarray

    from saltus.core.claim import Claim
    from saltus.papers.features.studies._runs import Synthetic

STAGE = 20  # the paper: "around 20 iterations"
FIRST = 0.3  # of the blow-up time: well inside the first stage


def ratio(record: xarray.Dataset, task: str, mu: float, over: str = "noise") -> Any:
    """Largest product with the signal over the one with the noise [seed, step], or the other way round."""
    signal, noise = (record[f"{task}_{k}"].sel(mu=mu).values for k in ("signal", "noise"))
    return signal / noise if over == "noise" else noise / signal


def stage_end(signal: Any, noise: Any, k: Any) -> Any:
    """The first step at which a product is over 2, the end of the first stage in App. C.3, C.4 [seed]."""
    over = np.maximum(signal, noise) >= 2
    return np.where(over.any(1), k[np.argmax(over, axis=1)], np.inf).astype(float)


def worst_fit(x: Any, *curves: Any) -> Any:
    """The smallest R^2 of a straight line through any of the curves [seed, x], for each seed."""
    return np.asarray([min(linear_fit(x, c[s])[1] for c in curves) for s in range(len(curves[0]))])


def classifier_claims(study: Synthetic, record: xarray.Dataset, low: float, high: float) -> Iterator[Claim]:
    k = record.k.values
    late = k >= STAGE
    for mu, name, over, times, other in ((low, "low", "signal", 10, high), (high, "high", "noise", 2, low)):
        leads, trails = ("noise", "signal") if over == "signal" else ("signal", "noise")
        yield claim.above(
            f"classifier-{name}",
            f"At n SNR² = {study.chi(mu):.3g} the classifier's {leads} is at least {times} times its "
            f"{trails} from step {STAGE} on (least ratio, median).",
            stats.median(ratio(record, "classifier", mu, over)[:, late].min(1)),
            float(times),
            control=(
                f"n SNR² = {study.chi(other):.3g}",
                stats.median(ratio(record, "classifier", other, over)[:, late].min(1)),
            ),
        )
    low_run = record.sel(mu=low)
    yield claim.within(
        "classifier-stage",
        "The classifier's first stage ends, with a product of 2, at about step 20 (low SNR, median).",
        stats.median(stage_end(low_run.classifier_signal.values, low_run.classifier_noise.values, k)),
        (14.0, 26.0),
        control=(
            "by the printed update, half of the exact gradient",
            stats.median(stage_end(low_run.printed_signal.values, low_run.printed_noise.values, k)),
        ),
    )
    grown = k >= 100
    products = [record.sel(mu=mu)[f"classifier_{v}"].values for mu, v in ((low, "noise"), (high, "signal"))]

    def growth(least: float, most: float) -> Any:
        """R^2 of a line through the logarithm while the product is between these, the worst of both SNR."""
        found = []
        for s in range(len(products[0])):
            within = [(p[s] >= least * p[s, 0]) & (p[s] <= most) for p in products]
            found.append(
                min(linear_fit(k[w], np.log(p[s, w]))[1] for p, w in zip(products, within, strict=True))
            )
        return np.asarray(found)

    yield claim.above(
        "classifier-exponential",
        "The classifier's leading product grows exponentially from twice its start to 1 (R² of its logarithm "
        "against the step, worse of both SNR, median).",
        stats.median(growth(2.0, 1.0)),
        0.99,
        control=("to the end of training", stats.median(growth(2.0, np.inf))),
    )
    yield claim.above(
        "classifier-logarithmic",
        f"From step 100 to {int(k[-1])} it grows as the logarithm of the step (R², worse of both SNR, "
        "median).",
        stats.median(worst_fit(np.log(k[grown]), *(p[:, grown] for p in products))),
        0.99,
        control=(
            "from step 1 to 20",
            stats.median(worst_fit(np.log(k[1:21]), *(p[:, 1:21] for p in products))),
        ),
    )


def denoiser_claims(
    study: Synthetic, record: xarray.Dataset, law: xarray.Dataset, low: float, high: float
) -> Iterator[Claim]:
    step = record.step.values
    until = {mu: law.blow_up.sel(mu=mu).values for mu in (low, high)}

    def fits(share: float, kind: str) -> Any:
        """R^2 [seed] of a line through the first `share` of the time to blow-up, worst of four curves."""
        curves = []
        for mu in (low, high):
            for v in (f"denoiser_signal{kind}", f"denoiser_noise{kind}"):
                values, found = record[v].sel(mu=mu).values, []
                for s in range(record.sizes["seed"]):
                    first = step <= share * until[mu][s]
                    found.append(linear_fit(step[first], values[s, first])[1])
                curves.append(found)
        return min(curves, key=np.median)

    def at(name: str, mu: float, share: float) -> Any:
        """The value at that share of the blow-up time [seed]."""
        values = record[name].sel(mu=mu).values
        return np.asarray([np.interp(share * until[mu][s], step, values[s]) for s in range(len(values))])

    for name, kind, words in (("denoiser-linear", "_mean", "mean"), ("denoiser-linear-max", "", "largest")):
        yield claim.above(
            name,
            f"The denoiser's {words} products grow linearly over the first {FIRST:.0%} of the time to the "
            "blow-up of its first stage (R², the worst of signal and noise at both SNR, median).",
            stats.median(fits(FIRST, kind)),
            0.95,
            control=("over 98% of it", stats.median(fits(0.98, kind))),
        )
    yield claim.below(
        "denoiser-flat",
        f"Meanwhile its loss falls by less than 2e-3 of {2 * study.d} (worse of both SNR, largest).",
        stats.worst([-at("denoiser_change", mu, FIRST) for mu in (low, high)]),
        2e-3,
        control=("at 99% of it", stats.worst([-at("denoiser_change", mu, 0.99) for mu in (low, high)])),
    )

    def bend(early: float, late: float) -> Any:
        """How many times steeper both products are around `late` than around `early`, the lesser of them."""
        found = []
        for mu in (low, high):
            for v in ("denoiser_signal_mean", "denoiser_noise_mean"):
                rise = [at(v, mu, x + 0.05) - at(v, mu, x - 0.05) for x in (early, late)]
                found.append(rise[1] / rise[0])
        return np.min(found, axis=0)

    yield claim.above(
        "denoiser-super-linear",
        "Later the means grow faster: at 90% of that time at least three times as fast as at 20% (lesser of "
        "both products and both SNR, median).",
        stats.median(bend(0.2, 0.9)),
        3.0,
        control=("at 30%", stats.median(bend(0.2, 0.3))),
    )

    def drift(since: Any) -> Any:
        """The largest relative change of a product in a twentieth of the training from `since` on [seed]."""
        length, found = step[-1] / 20, []
        for mu in (low, high):
            for v in ("denoiser_signal", "denoiser_noise"):
                values = record[v].sel(mu=mu).values
                ends = [
                    np.interp([since(mu)[s], since(mu)[s] + length], step, values[s])
                    for s in range(len(values))
                ]
                found.append([abs(b / a - 1) for a, b in ends])
        return np.max(found, axis=0)

    end = {mu: np.full(record.sizes["seed"], step[-1] * 0.95) for mu in (low, high)}
    yield claim.below(
        "denoiser-plateau",
        f"Over the last {step[-1] / 20:g} steps its products change by less than 1% (median).",
        stats.median(drift(end.__getitem__)),
        0.01,
        control=("from the blow-up on", stats.median(drift(until.__getitem__))),
    )
    last = {mu: record.sel(mu=mu).isel(step=-1) for mu in (low, high)}
    over = {mu: (r.denoiser_signal_mean / r.denoiser_noise_mean).values for mu, r in last.items()}
    grown = study.chi(high) / study.chi(low)
    task = "classifier"
    other = {mu: ratio(record, task, mu)[:, -1] for mu in (low, high)}
    yield claim.within(
        "denoiser-ratio-low",
        f"At n SNR² = {study.chi(low):.3g} the ratio of mean products on the plateau is n SNR² up to a "
        "factor of 2 (over n SNR², median).",
        stats.median(over[low] / study.chi(low)),
        (0.5, 2.0),
        control=("the classifier's ratio of largest products", stats.median(other[low] / study.chi(low))),
    )
    yield claim.within(
        "denoiser-ratio-theta",
        f"From low to high SNR, n SNR² growing {grown:.3g} times, the ratio on the plateau does so too, up "
        "to a factor of 2 (growth over growth, median).",
        stats.median(over[high] / over[low] / grown),
        (0.5, 2.0),
        control=("the classifier's ratio", stats.median(other[high] / other[low] / grown)),
        expected=False,
        because="the ratio is (n SNR²/2) R(a_mu)/R(a_xi), and at these sizes the restoring forces R undo "
        "most of the growth: see features/stationary",
    )
