"""The runs of `features/early`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from saltus._lazy import np, xr

if TYPE_CHECKING:
    import xarray

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
    "turned_signal": "first step at which all products with signals are positive, or -1",
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


def _turned(steps: Any, least: Any) -> int:
    """The first step at which the least product is above 0, or -1."""
    return int(steps[np.argmax(least > 0)]) if (least > 0).any() else -1


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
        found["turned_signal"].append(_turned(seen["step"], seen["least_signal"][s]))
        found["turned_noise"].append(_turned(seen["step"], seen["least_noise"][s]))
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
