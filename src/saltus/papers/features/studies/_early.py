"""The runs and the claims of `features/early`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from saltus._lazy import np, xr
from saltus.core import claim, stats
from saltus.papers.features.studies._theory import linear_fit

if TYPE_CHECKING:
    import xarray

    from saltus.core.claim import Claim
    from saltus.papers.features.studies.early import Early

SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.98)  # of the earliest blow-up, where whole weights are looked at
PACE = 5000  # steps to the blow-up in the runs over starts and dimensions, at least
LONGEST = 0.01  # step on the summed loss: a third of what is stable at rest there
WORDS = {
    "ratio": "mean <w, mu_j> over mean <w, xi_i> when the first of them reaches the level",
    "sized_ratio": "the same of the means of absolute values",
    "early_law": "<x̄, mu_j> over <x̄, xi_i>, means, of the draw",
    "point": "ratio of means at the draw's solved stationary point",
    "onset": "step at which 1% of the whole fall of the loss is reached",
    "blow_up": "step at which the first neuron's closed form is infinite",
    "kept": "largest relative change of |w| sin^3",
    "kept_once": "the same of |w| sin",
    "closed_gap": "largest distance of a weight from the closed form over the largest weight",
    "linear_gap": "the same from w0 + kappa |w0|^2 x̄ t",
    "negative": "share of products below 0 when 1% of the fall is reached",
    "turned_signal": "first step from which on all products with signals are positive, or -1",
    "turned_noise": "the same of products with noises",
    "rest_leads": "first step at which the residual gradient leads in most products (Lemma D.8), or -1",
    "negative_start": "share of products below 0 before training",
    "rate": "growth of mean <w, mu> in the first tenth over 4 alpha beta c |S_j|/n |w0|^2 |mu|^2",
    "onset_sigma0": "step at which 1% of the fall is reached",
    "blow_up_sigma0": "step of the blow-up",
    "onset_dim": "step at which 1% of the fall is reached",
    "blow_up_dim": "step of the blow-up",
}


def _look(W: Any, p: Any) -> Any:
    """What is watched of a denoiser, and the least product with a signal and with a noise."""
    from saltus._jax import jnp
    from saltus.papers.features.training import watch

    A = p["X"] @ W.T
    held = jnp.where((p["omega"] > 0)[:, None], A, jnp.inf)  # a class may be empty
    return {**watch.denoiser(W, p), "least_signal": held[:2].min(), "least_noise": held[2:].min()}


def _settled(steps: Any, least: Any) -> int:
    """The first step from which on the least product is above 0, or -1."""
    below = np.flatnonzero(least <= 0)
    first = below[-1] + 1 if len(below) else 0
    return int(steps[first]) if first < len(steps) else -1


def sweep(study: Early, chi: float) -> xarray.Dataset:
    """One n SNR^2: trainings to the end of the first stage and a little beyond, all seeds."""
    from saltus.papers.features import training
    from saltus.papers.features.law import parts, stage_one, stationary

    mu = study.mu_of(chi)
    alpha, beta = study.noise()
    c = study.factor()
    kappa = 4 * alpha * beta * c
    sample, start = study.draws(mu, "denoiser")
    xbar = stage_one.mean_patch(sample.X, sample.omega)
    ends = stage_one.blow_up(start, xbar, kappa) / study.step  # [seed, m]
    first, last = float(ends.min()), float(ends.max())
    seen = study.train_denoiser(mu, at=np.unique(np.linspace(0, 1.2 * last, 600).astype(int)), look=_look)
    shares = (np.asarray(SHARES) * first).astype(int)
    even = np.linspace(0, 1.2 * last, 60).astype(int)
    at = np.unique(np.concatenate([shares, even]))
    marked = np.searchsorted(at, shares)
    paths = study.train_denoiser(mu, at=at, look=training.engine.whole)["W"]
    found: dict[str, list[Any]] = {name: [] for name in WORDS if not name.endswith(("sigma0", "dim"))}
    for s in range(study.seeds):
        X, omega, W0 = sample.X[s], sample.omega[s], start[s]
        here = omega > 0
        classes = int(here[:2].sum())
        point = stationary.solve(omega[here], X[here] @ X[here].T, study.m, alpha, beta, c=c)
        when = int(np.argmax(np.maximum(seen["signal_mean"][s], seen["noise_mean"][s]) > study.level))
        found["ratio"].append(seen["signal_mean"][s, when] / seen["noise_mean"][s, when])
        found["sized_ratio"].append(seen["signal_size"][s, when] / seen["noise_size"][s, when])
        toward = X @ xbar[s]
        found["early_law"].append(toward[:2][here[:2]].mean() / toward[2:].mean())
        found["point"].append(point.a[:classes].mean() / point.a[classes:].mean())
        fallen = int(np.argmax(seen["change"][s] < 0.01 * point.change))
        found["onset"].append(seen["step"][fallen])
        found["blow_up"].append(ends[s].min())
        found["negative"].append(seen["negative"][s, fallen])
        found["negative_start"].append(seen["negative"][s, 0])
        found["turned_signal"].append(_settled(seen["step"], seen["least_signal"][s]))
        found["turned_noise"].append(_settled(seen["step"], seen["least_noise"][s]))
        found["rest_leads"].append(parts.second_stage_end(at, paths[s], W0, X, omega, alpha, beta, c).first)
        _path(found, paths[s][marked], W0, xbar[s], X, omega, kappa, shares * study.step)
    dims = {name: ("seed", "share") for name in ("kept", "kept_once", "closed_gap", "linear_gap")}
    data = {name: (dims.get(name, ("seed",)), np.asarray(v)) for name, v in found.items()}
    return xr.Dataset(data, coords={"share": list(SHARES)})


def _path(found: Any, path: Any, W0: Any, xbar: Any, X: Any, omega: Any, kappa: float, times: Any) -> None:
    """How far the weights [t, m, D] of one run are from the closed form, and what they keep."""
    from saltus.papers.features.law import stage_one

    before = stage_one.invariant(W0, xbar)
    ahead = xbar / np.linalg.norm(xbar)

    def across(W: Any) -> Any:
        return np.linalg.norm(W - (W @ ahead)[..., None] * ahead, axis=-1)

    found["kept"].append([np.abs(stage_one.invariant(W, xbar) / before - 1).max() for W in path])
    found["kept_once"].append([np.abs(across(W) / across(W0) - 1).max() for W in path])
    said = stage_one.solve(W0, xbar, kappa, times)
    line = W0 + kappa * (W0**2).sum(1, keepdims=True) * xbar * times[:, None, None]
    size = np.abs(path).max((1, 2))
    found["closed_gap"].append(np.abs(path - said).max((1, 2)) / size)
    found["linear_gap"].append(np.abs(path - line).max((1, 2)) / size)
    # Products with the signals after the first share, against the sharp linear rate.
    held = omega[:2] > 0
    rise = ((path[0] - W0) @ X[:2][held].T).mean()
    rate = kappa * (omega[:2][held] * (X[:2][held] ** 2).sum(1)).mean() * (W0**2).sum(1).mean() * times[0]
    found["rate"].append(rise / rate)


def onset(study: Early, name: str, value: float) -> xarray.Dataset:
    """When the loss has fallen by 1% of what it will, at n SNR^2 = 0.75 with another start or dimension."""
    from saltus.papers.features.law import stage_one, stationary

    if name == "sigma0":
        own = replace(study, sigma0=value)
    else:
        # |x̄| and |xi| stay the same: only sqrt(d) sigma0, the size of the start, changes.
        sigma = study.sigma_xi * (study.d / value) ** 0.5
        own = replace(study, d=int(value), sigma_xi=sigma, sigma0=study.starts[0])
    mu = study.mu_of(0.75)
    alpha, beta = own.noise()
    c = own.factor()
    kappa = 4 * alpha * beta * c
    sample, start = own.draws(mu, "denoiser")
    ends = stage_one.blow_up(start, stage_one.mean_patch(sample.X, sample.omega), kappa).min(1)
    eta = min(float(np.median(ends)) / PACE, LONGEST)
    seen = own.train_denoiser(mu, eta=eta, at=np.linspace(0, 1.3 * np.median(ends) / eta, 600).astype(int))
    when = []
    for s in range(own.seeds):
        here = sample.omega[s] > 0
        X = sample.X[s][here]
        point = stationary.solve(sample.omega[s][here], X @ X.T, own.m, alpha, beta, c=c)
        when.append(seen["step"][np.argmax(seen["change"][s] < 0.01 * point.change)] * eta / study.step)
    return xr.Dataset({"onset": ("seed", when), "blow_up": ("seed", ends / study.step)})


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
    chi, turned = record.chi.values[early], record.turned_signal.values[early]
    if early.sum() >= 2:
        yield claim.within(
            "T-mu",
            "The step from which on all products with signals are positive goes with n SNR² to the power -1/2, as "
            f"T_mu of Lemma D.5, from {chi[0]:g} on (power, median).",
            stats.median(powers(chi, np.where(turned > 0, turned, np.nan))),
            (-0.6, -0.4),
            control=("that of the fall of the loss", stats.median(powers(chi, record.onset.values[early]))),
        )

        def by(share: float) -> Any:
            return (turned >= 0) & (turned <= share * law.T_mu.values[early, None])

        yield claim.above(
            "T-mu-sign",
            "There they are by T_mu, its order taken without a constant (share of the runs).",
            stats.share(by(1.0)),
            0.9,
            control=("by a tenth of it", stats.share(by(0.1))),
        )
    yield claim.above(
        "T-1-first",
        "T_1 = max(T_mu, T_xi) comes before the loss falls (step of the fall over T_1, median).",
        stats.median(record.onset.values / law.T_1.values[:, None]),
        1.0,
        control=("over T_2", stats.median(record.onset.values / law.T_2.values[:, None])),
        expected=False,
        because="T_xi as printed takes the largest start and no constant, and at these sizes that is "
        f"{float((law.T_xi / record.onset.median('seed')).median()):.2g} times too long: products with noises "
        "are all positive, where they ever are, at "
        f"{float((record.turned_noise.where(record.turned_noise >= 0) / law.T_xi).median()):.2g} T_xi",
    )
    ends = np.where(record.rest_leads.values > 0, record.rest_leads.values, np.nan)
    over = (ends / record.blow_up.values)[np.isfinite(ends)]
    yield claim.within(
        "T-2-defined",
        "T_2 as Lemma D.8 defines it, where the residual gradient has reached the dominant one (in most products "
        "with a kind of direction), comes at the blow-up of the first stage (over it, median of the runs that "
        "reach it).",
        stats.median(over),
        (0.8, 1.25),
        control=(
            "over T_2's printed order",
            stats.median((ends / law.T_2.values[:, None])[np.isfinite(ends)]),
        ),
    )
