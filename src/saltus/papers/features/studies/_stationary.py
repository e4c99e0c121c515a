"""The runs and the law of `features/stationary`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from saltus._lazy import np, xr
from saltus.papers.features.studies._runs import looks

if TYPE_CHECKING:
    import xarray

    from saltus.papers.features.studies.stationary import Stationary

WORDS = {
    "ratio": "mean <w, mu> over mean <w, xi> at the end of training",
    "solved_ratio": "the same at the point solved for with the run's own patches",
    "gap": "largest distance of a product from that point, over the largest product",
    "paper_gap": "the same at the paper's number of steps",
    "slope": "norm of the gradient at the end",
    "paper_slope": "norm of the gradient at the paper's number of steps",
    "top_slope": "the same where products grow the fastest",
    "spread": "largest coefficient of variation of a product over neurons at the end",
    "spread_half": "the same at an eighth of the training",
    "identity": "largest distance from 1 in the ratio identity, patch by patch",
    "identity_half": "the same at an eighth of the training",
    "rank": "rank of the multiplier dL/dG",
    "outside": "share of |W|^2 outside the span of the patches",
    "least_curvature": "least eigenvalue of the second derivative by all weights, over the largest",
    "origin_curvature": "the same on the way, at the blow-up",
    "cosine": "mean cosine of two neurons",
    "theory_ratio": "ratio at the end, |mu| = 1",
    "theory_solved": "ratio at the point solved for with the run's own patches, |mu| = 1",
    "theory_size": "m^(1/6) times the larger mean product, |mu| = 1",
    "theory_cosine": "<w_r, w_r'> over |w_r|^2, mean over pairs, |mu| = 1",
    "theory_spread": "largest coefficient of variation over neurons, |mu| = 1",
    "theory_spread_early": "the same before saturation",
    "theory_slope": "norm of the gradient at the end over that at the fastest, |mu| = 1",
    "inside_ratio": "ratio at the end, inside Condition 3.1",
    "inside_solved": "ratio at the point solved for, inside Condition 3.1",
    "inside_early": "ratio before saturation, inside Condition 3.1",
    "inside_margin": "least margin of an item of Condition 3.1 but those of the step",
}


def _mean_ratio(a: Any, classes: int) -> float:
    return float(a[:classes].mean() / a[classes:].mean())


def paper(study: Stationary, mu: float) -> xarray.Dataset:
    """One length of the signal in the paper's setting, trained twice as long as there."""
    from saltus.papers.features import training
    from saltus.papers.features.law import newton, stationary

    alpha, beta = study.noise()
    c = study.factor()
    at = np.unique(np.append(looks(2 * study.steps, study.looks), study.steps))
    sample, _ = study.draws(mu, "denoiser")
    path = study.train_denoiser(mu, at=at, look=training.engine.whole)["W"]
    half, eighth = (int(np.searchsorted(at, x)) for x in (study.steps, study.steps // 8))
    found: dict[str, list[Any]] = {}
    for s in range(study.seeds):
        here = sample.omega[s] > 0
        X, omega, W = sample.X[s][here], sample.omega[s][here], path[s]
        classes, gram = int(here[:2].sum()), X @ X.T
        point = stationary.solve(omega, gram, study.m, alpha, beta, c=c)
        A = np.einsum("tmd,pd->tpm", W, X)
        kkts = {when: stationary.kkt(W[when], X, omega, alpha, beta, c) for when in (eighth, half, -1)}
        size = np.abs(point.a).max()

        curves = (
            [newton.curvatures(W[t], X, omega, alpha, beta, c) for t in (-1, _fastest(A))] if s == 0 else None
        )
        row = {
            "ratio": _mean_ratio(A[-1].mean(1), classes),
            "solved_ratio": _mean_ratio(point.a, classes),
            "gap": np.abs(A[-1] - point.a[:, None]).max() / size,
            "paper_gap": np.abs(A[half] - point.a[:, None]).max() / size,
            "slope": kkts[-1].slope,
            "paper_slope": kkts[half].slope,
            "top_slope": max(
                kkts[eighth].slope, stationary.kkt(W[_fastest(A)], X, omega, alpha, beta, c).slope
            ),
            "spread": kkts[-1].spread,
            "spread_half": kkts[eighth].spread,
            "identity": _broken(W[-1], X, omega, alpha, beta, c),
            "identity_half": _broken(W[eighth], X, omega, alpha, beta, c),
            "rank": float(kkts[-1].rank),
            "outside": kkts[-1].outside,
            "least_curvature": curves[0][0] / curves[0][-1] if curves else np.nan,
            "origin_curvature": curves[1][0] / curves[1][-1] if curves else np.nan,
            "cosine": [_cosine(w) for w in W],
        }
        for name, value in row.items():
            found.setdefault(name, []).append(value)
    dims = {"cosine": ("seed", "step")}
    data = {name: (dims.get(name, ("seed",)), np.asarray(v)) for name, v in found.items()}
    return xr.Dataset(data, coords={"step": at})


def _broken(W: Any, X: Any, omega: Any, alpha: float, beta: float, c: float) -> float:
    """How far the ratio identity is from holding for the means over neurons."""
    from saltus.papers.features.law import stationary

    G, m = W @ W.T, len(W)
    s, q = np.trace(G) / m, (G.sum() - np.trace(G)) / max(m * (m - 1), 1)
    zero = np.zeros(())
    point = stationary.Point((X @ W.T).mean(1), zero, np.asarray(q), np.asarray(s), zero, zero, zero)
    return float(np.abs(stationary.identity(point, omega, X @ X.T, m, alpha, beta, c) - 1).max())


def _fastest(A: Any) -> int:
    """The look at which products grow the most."""
    return int(np.argmax(np.abs(np.diff(A.mean((1, 2)))))) + 1


def _cosine(W: Any) -> float:
    units = W / np.linalg.norm(W, axis=1, keepdims=True)
    m = len(W)
    return float(((units @ units.T).sum() - m) / (m * (m - 1))) if m > 1 else 1.0


def theory(study: Stationary, m: int) -> xarray.Dataset:
    """|mu| = 1 and many dimensions, for every n SNR^2; steps short enough for every noise."""
    found: dict[str, list[Any]] = {}
    for chi in study.chis:
        sigma = float((study.points / (chi * study.wide)) ** 0.5)
        # The start's |w| is 0.1, so that the plateau is short; the step is stable for noises of size n/chi.
        own = replace(
            study, n=study.points, d=study.wide, m=m, sigma_xi=sigma, sigma0=0.1 * study.wide**-0.5,
            project_noise=True, labels="balanced",
        )  # fmt: skip
        ends = _ends(own, 1.0, eta=min(0.005, 0.01 * chi), steps=study.steps)
        for name in ("ratio", "solved", "size", "cosine", "spread", "spread_early", "slope"):
            found.setdefault(f"theory_{name}", []).append(ends[name])
    data = {name: (("chi_theory", "seed"), np.asarray(v)) for name, v in found.items()}
    return xr.Dataset(data, coords={"chi_theory": list(study.chis)})


def _ends(own: Stationary, mu: float, eta: float, steps: int) -> dict[str, Any]:
    """Where training ends and what is solved for, for every seed."""
    from saltus.papers.features.law import stationary

    alpha, beta = own.noise()
    c = own.factor()
    at = np.unique(np.concatenate([np.linspace(0, steps, 200), np.geomspace(1, steps, 200)]).astype(int))
    seen = own.train_denoiser(mu, eta=eta, at=at)
    sample, _ = own.draws(mu, "denoiser")
    solved = []
    for X, omega in zip(sample.X, sample.omega, strict=True):
        point = stationary.solve(omega, X @ X.T, own.m, alpha, beta, c=c)
        solved.append(_mean_ratio(point.a, 2))
    last = {name: v[:, -1] for name, v in seen.items() if name != "step"}
    larger = np.maximum(last["signal_mean"], last["noise_mean"])
    top = np.maximum(seen["signal_mean"], seen["noise_mean"])
    early = np.argmax(top > 0.15 * larger[:, None], axis=1)
    rows = np.arange(own.seeds)
    return {
        "ratio": last["signal_mean"] / last["noise_mean"],
        "solved": np.asarray(solved),
        "size": own.m ** (1 / 6) * larger,
        "cosine": last["cosine"],
        "spread": last["spread"],
        "spread_early": seen["spread"][rows, early],
        "slope": last["slope"] / seen["slope"].max(1),
        "early": seen["signal_mean"][rows, early] / seen["noise_mean"][rows, early],
    }


def _followed(own: Stationary, mu: float) -> dict[str, Any]:
    """The same ratios where noises are so long that fixed steps would be tiny: descent whose step follows the
    curvature to beyond the blow-up, and from there to rest."""
    from saltus.papers.features.law import stage_one, stationary
    from saltus.papers.features.training import paced, rest

    alpha, beta = own.noise()
    c = own.factor()
    sample, start = own.draws(mu, "denoiser")
    xbar = stage_one.mean_patch(sample.X, sample.omega)
    last = float(stage_one.blow_up(start, xbar, 4 * alpha * beta * c).max())
    how: dict[str, Any] = dict(alpha=alpha, beta=beta, prefactor=own.prefactor)
    path = paced.descend_paced(
        sample.X, sample.omega, start, times=np.linspace(0, 1.2 * last, 600), eta=1e-3 * last, **how
    )["W"]
    end = rest.come_to_rest(sample.X, sample.omega, path[:, -1], slope=1e-9, **how)["W"]
    mean = np.einsum("std,spd->stp", path.mean(2), sample.X)
    at_rest = np.einsum("sd,spd->sp", end.mean(1), sample.X)
    solved = [
        stationary.solve(omega, X @ X.T, own.m, alpha, beta, c=c).a
        for X, omega in zip(sample.X, sample.omega, strict=True)
    ]
    top = np.maximum(mean[..., :2].mean(-1), mean[..., 2:].mean(-1))
    when = np.argmax(top > 0.15 * np.abs(at_rest).max(-1)[:, None], axis=1)
    early = mean[np.arange(own.seeds), when]
    return {
        name: np.asarray([_mean_ratio(a, 2) for a in values])
        for name, values in (("ratio", at_rest), ("solved", solved), ("early", early))
    }


INSIDE = {"n": 3, "d": 10**12}


def inside(study: Stationary, chi: float) -> xarray.Dataset:
    """Condition 3.1 met in every item but the step's, which only asks for gradient flow: n = 3, m = 1."""
    from saltus.papers.features.law import conditions

    n, d = INSIDE["n"], INSIDE["d"]
    sigma = float((n / (chi * d)) ** 0.5)
    sigma0 = 1.5 * n**2 / (sigma * d)  # just above the least it allows
    items = conditions.check("both", n=n, d=d, m=1, mu=1.0, sigma_xi=sigma, sigma0=sigma0, eta=1e-12)
    margin = min(i.margin for i in items if not i.name.startswith("η"))
    own = replace(study, n=n, d=d, m=1, sigma_xi=sigma, sigma0=sigma0, project_noise=True, labels="balanced")
    ends = _followed(own, 1.0)
    data = {f"inside_{k}": ("seed", v) for k, v in ends.items()}
    return xr.Dataset({**data, "inside_margin": ((), margin)})


def _followed_down(chi: Any, m: int, alpha: float, beta: float, c: float) -> Any:
    """The symmetric points of one branch: each solved for from its neighbour at the next larger n SNR^2."""
    from saltus.papers.features.law import stationary

    first = stationary.symmetric(chi, m, alpha, beta, c=c)
    found = np.column_stack([first.a, first.phi])
    return stationary.symmetric(chi, m, alpha, beta, c=c, start=np.concatenate([found[1:], found[-1:]]))


def law(study: Stationary) -> xarray.Dataset:
    """The symmetric stationary point: along the paper's line, and with |mu| = 1 for many m."""
    from saltus.papers.features.studies import _theory

    alpha, beta = study.noise()
    chi = np.geomspace(1e-3, 1e4, 141)
    line = _theory.symmetric(study, chi, np.asarray([study.mu_of(x) for x in chi]))
    widths = sorted({1, 2, 4, 20, 100} | set(study.neurons))
    points = [_followed_down(chi, m, alpha, beta, replace(study, m=m).factor()) for m in widths]
    curves = {"line": line.a[:, 0] / line.a[:, 1], "unit": np.stack([p.a[:, 0] / p.a[:, 1] for p in points])}
    data = xr.Dataset(
        {
            "line": ("chi_law", curves["line"]),
            "unit": (("width", "chi_law"), curves["unit"]),
            "line_power": ("chi_law", np.gradient(np.log(curves["line"]), np.log(chi))),
            "unit_power": (("width", "chi_law"), np.gradient(np.log(curves["unit"]), np.log(chi), axis=1)),
            "unit_curvature": (("width", "chi_law"), np.stack([p.curvature for p in points])),
        },
        coords={"chi_law": chi, "width": widths},
    )
    for name, words in (
        ("line", "ratio at the stationary point, the paper's d, sigma_xi and m"),
        ("unit", "ratio at the stationary point, |mu| = 1"),
        ("line_power", "power of n SNR^2 it goes with, the paper's setting"),
        ("unit_power", "power of n SNR^2 it goes with, |mu| = 1"),
        ("unit_curvature", "least curvature of the reduced loss there"),
    ):
        data[name].attrs.update(long_name=words, units="1")
    return data
