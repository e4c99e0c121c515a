"""The runs, the law and the picture of `features/conditions`."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from saltus._lazy import np, xr

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.papers.features.studies.conditions import Conditions


WORDS = {
    "bound_over": "left side over right side of the bounds of Appendix C",
    "bound_broken": "the same of weights a hundred times as large, largest",
    "turned_signals": "share of products with the signals whose sign changes",
    "turned_noises": "share of products with the noises whose sign changes",
    "turned_own": "share of products with noises of a neuron's own class whose sign changes",
    "near_zero": "left side over right side of Lemma C.14",
    "led": "least over classes (signal) or points (noise) of the largest product at T_1",
    "led_half": "the same at half of T_1",
    "led_mean": "least of the mean over neurons at T_1",
    "gain": "least of what |W - W*|^2 falls by, over eta, less 2 L - epsilon, from T_1 on",
    "gain_start": "the same at the first step",
    "lead": "least y <grad f, W*> over 2 log(4/epsilon), from T_1 on",
    "lead_start": "the same before training",
    "steepness": "largest |grad L|^2 over max(|mu|^2, |xi|^2) L",
    "case": "conclusions of Theorem 3.2 that hold at some step",
}


def counted(study: Conditions) -> xarray.Dataset:
    """Left side over right side of every concentration lemma [lemma, draw], at the highest SNR."""
    from saltus.papers.features.law import concentration

    rows = []
    for draw in range(study.draws_checked):
        rng = np.random.default_rng([study.base, draw, 3])
        sample, W0 = study.world(study.mu[-1]).draw_in_span(rng, study.m, study.sigma0)
        rows.append(
            concentration.report(
                sample.X, sample.labels, W0, study.sigma_xi, study.sigma0, study.d, study.delta
            )
        )
    names = list(rows[0])
    over = [[row[name] for row in rows] for name in names]
    data = xr.Dataset({"over": (("lemma", "draw"), over)}, coords={"lemma": names})
    data.over.attrs.update(long_name="left side of a lemma over its right side", units="1")
    return data


def bounded(study: Conditions, mu: float) -> xarray.Dataset:
    """Bounds, signs, the two stages and the case of Theorem 3.2 along the classifier's training [seed]."""
    from saltus.papers.features import model, training
    from saltus.papers.features.law import classifier, concentration, second_stage

    steps = study.steps_classifier
    at = np.arange(steps + 1)
    looks = np.unique(np.concatenate([at[: min(60, steps)], np.linspace(0, steps, 40).astype(int)]))
    case = "noise" if mu == study.mu[0] else "signal"
    first = first_stage(study, mu)
    sample, start = study.draws(mu, "classifier")
    paths = training.train_classifier(sample, start, eta=study.eta_classifier, at=at)["W"]
    found: dict[str, list[Any]] = {name: [] for name in WORDS}
    names: list[str] = []
    for s, path in enumerate(paths):
        X, members, y = sample.X[s], sample.members[s], sample.labels[s]
        bounds = [classifier.memory_bounds(W, start[s], X, members, y, steps=steps) for W in path[looks]]
        names = list(bounds[0])
        found["bound_over"].append([[b[name] for name in names] for b in bounds])
        wild = classifier.memory_bounds(100 * path[-1], start[s], X, members, y, steps=steps)
        found["bound_broken"].append(max(wild.values()))
        A = path @ X.T  # [t, 2, m, P]
        own = np.where(y > 0, 0, 1)
        turned = (np.sign(A) != np.sign(A[0])).any(0)
        found["turned_signals"].append(turned[..., :2].mean())
        found["turned_noises"].append(turned[..., 2:].mean())
        found["turned_own"].append(turned[own, :, np.arange(2, len(X))].mean())
        apart = concentration.apart(X, start[s], study.sigma_xi, study.sigma0, study.d, steps, study.delta)
        found["near_zero"].append(apart.conclusion)
        size = np.abs(A)
        signal = np.stack([size[:, 0, :, 0], size[:, 1, :, 1]], 1)  # [t, 2, m]
        noise = size[:, own, :, np.arange(2, len(X))].swapaxes(0, 1)  # [t, n, m]
        loss = [float(model.classifier_loss(W, X, members, y.astype(float))) for W in path]
        found["case"].append(classifier.theorem32(at, loss, signal.max(-1), noise.max(-1)).case)
        lead = noise if case == "noise" else signal[:, np.unique(own)]  # a class may be empty
        found["led"].append(lead[first].max(-1).min())
        found["led_half"].append(lead[first // 2].max(-1).min())
        found["led_mean"].append(lead[first].mean(-1).min())
        near = second_stage.approach(path, start[s], X, members, y, study.eta_classifier, case)
        found["gain"].append(near.gain[first:].min())
        found["gain_start"].append(near.gain[0])
        found["lead"].append(near.lead[first:].min())
        found["lead_start"].append(near.lead[0])
        found["steepness"].append(near.slope.max())
    dims = {"bound_over": ("seed", "k", "name")}
    data = {n: (dims.get(n, ("seed",)), np.asarray(v)) for n, v in found.items()}
    told = xr.Dataset(data, coords={"k": looks, "name": names})
    told["first_stage"] = ((), first)
    for name, words in {
        **WORDS,
        "first_stage": "T_1 of Appendix C with |l'| = 1/2, up to a whole step",
    }.items():
        told[name].attrs.update(long_name=words, units="step" if name == "first_stage" else "1")
    return told


def first_stage(study: Conditions, mu: float) -> int:
    """T_1 of the case that this mu, the lowest or the highest, is to show, within the training."""
    from saltus.papers.features.law import classifier

    ends = classifier.stages(
        study.n, study.d, study.m, mu, study.sigma_xi, study.sigma0, study.eta_classifier, delta=study.delta
    )
    end = ends.noise if mu == study.mu[0] else ends.signal
    return int(np.clip(np.ceil(end), 0, study.steps_classifier - 1))


def margins(study: Conditions) -> xarray.Dataset:
    from saltus.papers.features.law import conditions

    data: dict[str, Any] = {}
    coords: dict[str, Any] = {"mu": list(study.mu)}
    for kind in conditions.KINDS:
        eta = study.eta_classifier if kind == "classifier" else study.step
        rows = [
            conditions.check(
                kind, n=study.n, d=study.d, m=study.m, mu=mu, sigma_xi=study.sigma_xi, sigma0=study.sigma0,
                eta=eta, delta=study.delta,
            )
            for mu in study.mu
        ]  # fmt: skip
        data[kind] = (
            ("mu", f"item_{kind}"),
            [[i.margin for i in row] for row in rows],
            {"long_name": f"how many times over an inequality is met ({kind})", "units": "1"},
        )
        coords[f"item_{kind}"] = [i.name for i in rows[0]]
    data["least_d"] = ((), least_log_d(study.n, study.m), {"long_name": "log10 of the least d", "units": "1"})
    return xr.Dataset(data, coords=coords)


def least_log_d(n: int, m: int) -> float:
    """log10 of the least d for which n SNR^2 = 1 lies in the window of Condition 3.1, and d >= n^7 m^5."""
    window = 16 * math.log10(n) + 14 * math.log10(m)  # n^-4 m^(-7/2) d^(1/4) >= 1
    return max(window, 7 * math.log10(n) + 5 * math.log10(m), 2 * math.log10(n))


SMALL = {"⁻": "-", "ᐟ": "/", **dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789", strict=True))}


def _typeset(name: str) -> str:
    """An inequality with its exponents as a drawing sets them: characters for them are too small to read."""
    raised = f"[{''.join(SMALL)}]+"
    words = re.sub(raised, lambda m: "$^{" + "".join(SMALL[c] for c in m.group()) + "}$", str(name))
    return words.replace("σξ", "$σ_ξ$").replace("σ₀", "$σ_0$").replace("$$", "")


def picture(study: Conditions, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
    from saltus.report.figure import COLOURS, MUTED, finding, sheet

    fig, axes = sheet(1, 2, width=4.6, height=3.9)
    left, right = axes[0]
    both = law.both.isel(mu=0).values
    names = law.item_both.values
    order = np.argsort(both)
    colours = [COLOURS[2] if both[i] >= 1 else COLOURS[1] for i in order]
    left.barh(np.arange(len(order)), np.log10(both[order]), color=colours, height=0.7)
    left.set_yticks(np.arange(len(order)), [_typeset(names[i]) for i in order], fontsize=8)
    left.axvline(0, color=MUTED, linewidth=0.9)
    left.set(xlabel="powers of ten by which it is met (right) or missed (left)")
    left.set_title(f"Condition 3.1 at n SNR² = {study.chi(study.mu[0]):.3g}")

    lemmas = record.lemma.values
    runs = record.over.values
    low, middle, high = np.quantile(runs, [0.05, 0.5, 0.95], axis=1)
    place = np.arange(len(lemmas))
    right.errorbar(middle, place, xerr=[middle - low, high - middle], fmt="o", color=COLOURS[0], markersize=4)
    right.set_yticks(place, lemmas, fontsize=7)
    right.axvline(1, color=MUTED, linewidth=0.9)
    right.set(
        xlabel="left side over right side, 90% of the draws", xlim=(0, max(1.6, float(high.max()) * 1.05))
    )
    right.set_title("The concentration lemmas")
    note = f"n = {study.n}, d = {study.d}, m = {study.m}, σ₀ = {study.sigma0:g}, δ = {study.delta:g}"
    kept = int((high <= 1).sum())
    found = f"{kept} of {len(lemmas)} concentration lemmas hold in 95% of the draws"
    finding(fig, f"The experiment is far outside the theorems' conditions; {found}", note)
    return fig
