"""The theory of the synthetic trainings, from the same draws: first stage, blow-up, stationary point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from saltus._lazy import np, xr

if TYPE_CHECKING:
    import xarray

    from saltus.papers.features.studies._runs import Synthetic

__all__ = ["linear_fit", "of", "symmetric"]


def of(study: Synthetic, mus: Sequence[float], steps: Any, k: Any) -> xarray.Dataset:
    """Theory of every draw: [mu, seed, step] as the records have it.

    `stage_signal`, `stage_noise`: largest products of the denoiser's first stage in closed form; `blow_up`:
    the step at which its first neuron would be infinite; `point_*`: the solved stationary point with the
    draw's own patches; `early_signal`, `early_noise`: the classifier's largest products while |l'| = 1/2.
    """
    parts = [_at(study, mu, np.asarray(steps), np.asarray(k)) for mu in mus]
    data = xr.concat(parts, "mu").assign_coords(mu=list(mus), step=steps, k=k)
    for name, words in (
        ("stage_signal", "largest |<w_r, mu_j>| in the first stage"),
        ("stage_noise", "largest |<w_r, xi_i>| in the first stage"),
        ("blow_up", "step at which the first stage would be infinite"),
        ("point_signal", "mean <w, mu_j> at the solved stationary point"),
        ("point_noise", "mean <w, xi_i> at the solved stationary point"),
        ("point_top_signal", "largest <w, mu_j> there"),
        ("point_top_noise", "largest <w, xi_i> there"),
        ("point_change", "DDPM loss less its value at W = 0, there"),
        ("early_signal", "largest |<w_jr, mu_j>| of the classifier with |l'| = 1/2"),
        ("early_noise", "largest |<w_(y_i)r, xi_i>| of the classifier with |l'| = 1/2"),
    ):
        data[name].attrs.update(long_name=words, units="1")
    return data


def _at(study: Synthetic, mu: float, steps: Any, k: Any) -> xarray.Dataset:
    from saltus.papers.features.law import stage_one, stationary

    alpha, beta = study.noise()
    c = study.factor()
    kappa = 4 * alpha * beta * c
    found: dict[str, list[Any]] = {}

    def keep(**values: Any) -> None:
        for name, value in values.items():
            found.setdefault(name, []).append(value)

    sample, start = study.draws(mu, "denoiser")
    for X, omega, W0 in zip(sample.X, sample.omega, start, strict=True):
        held = omega[:2] > 0
        xbar = stage_one.mean_patch(X, omega)
        A = np.abs(stage_one.solve(W0, xbar, kappa, steps * study.step) @ X.T)  # [t, m, P]
        here = omega > 0
        point = stationary.solve(omega[here], X[here] @ X[here].T, study.m, alpha, beta, c=c)
        classes = int(held.sum())
        keep(
            stage_signal=A[:, :, :2][:, :, held].max((1, 2)),
            stage_noise=A[:, :, 2:].max((1, 2)),
            blow_up=stage_one.blow_up(W0, xbar, kappa).min() / study.step,
            point_signal=point.a[:classes].mean(),
            point_noise=point.a[classes:].mean(),
            point_top_signal=np.abs(point.a[:classes]).max(),
            point_top_noise=np.abs(point.a[classes:]).max(),
            point_change=float(point.change),
        )
    sample, start = study.draws(mu, "classifier")
    for X, members, y, W0 in zip(sample.X, sample.members, sample.labels, start, strict=True):
        signal, noise = _early(study, X, members, y, W0, len(k))
        keep(early_signal=signal, early_noise=noise)
    dims = {"stage_signal": ("seed", "step"), "stage_noise": ("seed", "step"),
            "early_signal": ("seed", "k"), "early_noise": ("seed", "k")}  # fmt: skip
    return xr.Dataset({n: (dims.get(n, ("seed",)), np.asarray(v)) for n, v in found.items()})


def _early(study: Synthetic, X: Any, members: Any, y: Any, W0: Any, count: int) -> tuple[Any, Any]:
    """The linear law of the classifier's beginning, step by step, until it has outgrown the plot."""
    from saltus.papers.features.law import classifier

    A = np.abs(classifier.early(W0, X, members, y, study.eta_classifier, min(count, 400) - 1))
    signal, noise = np.full(count, np.nan), np.full(count, np.nan)
    own = np.where((y > 0)[:, None], A[:, 0, 2:], A[:, 1, 2:])
    signal[: len(A)] = np.maximum(A[:, 0, 0].max(-1), A[:, 1, 1].max(-1))
    noise[: len(A)] = own.max((1, 2))
    return signal, noise


def symmetric(study: Synthetic, chi: Any, mu: Any) -> Any:
    """The stationary point with equal classes and orthogonal noises, for every chi."""
    from saltus.papers.features.law import stationary

    alpha, beta = study.noise()
    return stationary.symmetric(chi, study.m, alpha, beta, mu=mu, c=study.factor())


def linear_fit(x: Any, y: Any) -> tuple[float, float]:
    """Slope and R^2 of the least-squares line through y(x); NaN with fewer than two points."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    if len(x) < 2:
        return float("nan"), float("nan")
    dx, dy = x - x.mean(), y - y.mean()
    slope = float(dx @ dy / (dx @ dx))
    left = dy - slope * dx
    return slope, float(1 - left @ left / max(dy @ dy, 1e-300))
