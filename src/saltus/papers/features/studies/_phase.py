"""Many short trainings of both tasks, at any size: what `features/phase` and `features/fig1` are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from saltus._lazy import np, xr

if TYPE_CHECKING:
    import xarray

    from saltus.papers.features.world import Sample

__all__ = ["Size", "classifier", "crossing", "denoiser", "steepness"]

PACE = 0.15  # growth of the noise products in a classifier's step, |l'| being 1/2
REST = 12.0  # time after the blow-up, in units of step times steps, in which a denoiser comes to rest


@dataclass(frozen=True)
class Size:
    """The numbers that a training depends on besides n SNR^2; sigma_xi is 1."""

    n: int
    d: int
    m: int
    sigma0: float

    @property
    def name(self) -> str:
        return f"n = {self.n}, d = {self.d}, m = {self.m}, σ₀ = {self.sigma0:g}"

    def mu(self, chi: float) -> float:
        return float((chi * self.d / self.n) ** 0.5)

    def draws(self, chi: float, seeds: int, base: int, heads: int) -> tuple[Sample, Any]:
        from saltus.papers.features import world

        it = world.TwoPatch(self.n, self.d, self.mu(chi), 1.0)
        made = [
            it.draw_in_span(np.random.default_rng([base, s, heads]), heads * self.m, self.sigma0)
            for s in range(seeds)
        ]
        start = np.stack([w for _, w in made])
        if heads == 2:
            start = start.reshape(seeds, 2, self.m, -1)
        return world.stack([s for s, _ in made]), start


def classifier(size: Size, chis: Any, seeds: int, base: int) -> xarray.Dataset:
    """Signal over noise, largest products, when the loss is first below 0.1 [chi, seed].

    The step is such that noise grows by `PACE` a step at every size; only ratios are of interest.
    """
    from saltus.papers.features import training

    eta = PACE * size.n * size.m / size.d
    last = int(1.5 * np.log(8 / (size.sigma0 * min(size.d**0.5, size.mu(min(chis))))) / PACE) + 60
    found = []
    for chi in chis:
        sample, start = size.draws(chi, seeds, base, 2)
        seen = training.train_classifier(
            sample, start, eta=eta, at=np.arange(last + 1), look=training.watch.classifier
        )
        fitted = seen["loss"] < 0.1
        first = np.argmax(fitted, axis=1)
        rows = np.arange(seeds)
        ratio = seen["signal"][rows, first] / seen["noise"][rows, first]
        found.append(np.where(fitted.any(1), ratio, np.nan))
    return xr.Dataset({"ratio": (("chi", "seed"), np.asarray(found))}, coords={"chi": list(chis)})


def denoiser(size: Size, chis: Any, seeds: int, base: int, t: float = 0.2) -> xarray.Dataset:
    """Signal over noise, mean products: before saturation, at the end, and where solved for [chi, seed].

    The step is an eighth of what the stationary point's curvature allows at rest: on the way there runs in
    which a few neurons carry nearly everything are several times as stiff, and some leave the numbers at a
    quarter.
    """
    from saltus.papers.features import training
    from saltus.papers.features.law import ddpm, newton, stage_one, stationary

    alpha, beta = ddpm.diffusion(t)
    kappa = 4 * alpha * beta * size.m**-0.5
    found: dict[str, list[Any]] = {name: [] for name in ("early", "end", "solved", "spread", "slope")}
    for chi in chis:
        sample, start = size.draws(chi, seeds, base, 1)
        points = []
        for X, omega in zip(sample.X, sample.omega, strict=True):
            here = omega > 0
            points.append(
                (stationary.solve(omega[here], X[here] @ X[here].T, size.m, alpha, beta), int(here[:2].sum()))
            )
        X, omega = sample.X[0], sample.omega[0]
        here = omega > 0
        at_rest = stationary.weights(points[0][0], X[here], size.m)
        eta = 0.25 / newton.stiffness(at_rest, X[here], omega[here], alpha, beta)
        ends = stage_one.blow_up(start, stage_one.mean_patch(sample.X, sample.omega), kappa)
        steps = int((float(ends.max()) + REST) / eta)
        at = np.unique(np.concatenate([np.linspace(0, 1.2 * ends.max() / eta, 400), [steps]]).astype(int))
        seen = training.train_denoiser(
            sample.X,
            sample.omega,
            start,
            eta=eta,
            at=at,
            alpha=alpha,
            beta=beta,
            look=training.watch.denoiser,
        )
        signal, noise = seen["signal_mean"], seen["noise_mean"]
        first = np.argmax(np.maximum(signal, noise) > 0.15, axis=1)
        rows = np.arange(seeds)
        found["early"].append(signal[rows, first] / noise[rows, first])
        found["end"].append(signal[:, -1] / noise[:, -1])
        found["solved"].append([p.a[:k].mean() / p.a[k:].mean() for p, k in points])
        found["spread"].append(seen["spread"][:, -1])
        found["slope"].append(seen["slope"][:, -1])
    data = {name: (("chi", "seed"), np.asarray(v)) for name, v in found.items()}
    return xr.Dataset(data, coords={"chi": list(chis)})


def crossing(chi: Any, ratio: Any) -> float:
    """The n SNR^2 at which the median over seeds of log ratio [chi, seed] crosses 0, by interpolation.

    Infinite or 0 where it does not within the range; where it does more than once, the middle of them.
    """
    log = np.nanmedian(np.log(np.asarray(ratio, float)), axis=1)
    x = np.log(np.asarray(chi, float))
    up = np.flatnonzero((log[:-1] < 0) & (log[1:] >= 0))
    if not len(up):
        return 0.0 if log[0] >= 0 else float("inf")
    places = [x[i] - log[i] * (x[i + 1] - x[i]) / (log[i + 1] - log[i]) for i in up]
    return float(np.exp(np.median(places)))


def steepness(chi: Any, ratio: Any, near: float, width: float = 2.0) -> float:
    """The power of n SNR^2 that the median ratio goes with around `near`."""
    from saltus.papers.features.studies._theory import linear_fit

    x = np.log(np.asarray(chi, float))
    log = np.nanmedian(np.log(np.asarray(ratio, float)), axis=1)
    here = np.abs(x - np.log(near)) <= np.log(width)
    return linear_fit(x[here], log[here])[0] if here.sum() >= 2 else float("nan")
