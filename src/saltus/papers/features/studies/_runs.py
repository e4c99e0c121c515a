"""What the synthetic studies share: the paper's settings, the draws, and the trainings of both tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from saltus._lazy import np, xr
from saltus.core.errors import BadInput
from saltus.core.settings import setting

if TYPE_CHECKING:
    import xarray

    from saltus.core.lab import Lab
    from saltus.papers.features.world import Sample, TwoPatch

__all__ = ["DENOISER", "Synthetic", "looks", "note_lost"]

CLASSIFIER = {
    "signal": "largest |<w_jr, mu_j>| of the classifier",
    "noise": "largest |<w_(y_i)r, xi_i>| of the classifier",
    "signal_mean": "mean |<w_jr, mu_j>| of the classifier",
    "noise_mean": "mean |<w_(y_i)r, xi_i>| of the classifier",
    "weak_signal": "least over j of the largest |<w_jr, mu_j>|",
    "weak_noise": "least over i of the largest |<w_(y_i)r, xi_i>|",
    "loss": "training loss of the classifier",
    "accuracy": "training accuracy of the classifier",
}
DENOISER = {
    "signal": "largest |<w_r, mu_j>| of the denoiser",
    "noise": "largest |<w_r, xi_i>| of the denoiser",
    "signal_mean": "mean <w_r, mu_j> of the denoiser",
    "noise_mean": "mean <w_r, xi_i> of the denoiser",
    "signal_size": "mean |<w_r, mu_j>| of the denoiser",
    "noise_size": "mean |<w_r, xi_i>| of the denoiser",
    "negative": "share of the denoiser's products below 0",
    "change": "DDPM loss less its value at W = 0",
    "slope": "norm of the gradient of the DDPM loss summed over coordinates",
    "size": "mean |w_r|^2",
    "cosine": "mean cosine of two neurons",
    "spread": "largest coefficient of variation of a product over neurons",
}


def looks(steps: int, count: int) -> Any:
    """Steps to look at: `count` of them evenly, and closer together at the beginning."""
    even = np.round(np.linspace(0, steps, count)).astype(int)
    early = np.round(np.geomspace(1, max(steps, 1), 40)).astype(int)
    return np.unique(np.concatenate([even, early]))


def note_lost(record: xarray.Dataset) -> str:
    lost = int((record.diverged_at >= 0).sum())
    return f"; {lost} of {record.diverged_at.size} runs diverged" if lost else ""


@dataclass(frozen=True)
class Synthetic:
    """Settings of the synthetic experiment, those of the paper as defaults (Section 5.1)."""

    n: int = setting(30, "training points", low=2)
    d: int = setting(1000, "dimension of a patch", low=3)
    m: int = setting(20, "neurons", low=1)
    sigma_xi: float = setting(1.0, "standard deviation of the noise patch", above=0)
    sigma0: float = setting(0.001, "standard deviation of the start", above=0)
    project_noise: bool = setting(False, "take the signals' directions out of the noise, as the theory does")
    labels: str = setting(
        "random", "labels drawn independently, or as many of each", choices=("random", "balanced")
    )
    time: float = setting(0.2, "diffusion time t", above=0)
    reduction: str = setting(
        "mean_d", "what the denoiser's loss is over coordinates", choices=("sum", "mean_d", "mean_2d")
    )
    prefactor: str = setting("sqrt_m", "the denoiser's factor, 1/sqrt(m) or 1/m", choices=("sqrt_m", "m"))
    eta: float = setting(0.5, "learning rate of the denoiser", above=0)
    steps: int = setting(40000, "steps of the denoiser", low=200)
    eta_classifier: float = setting(0.1, "learning rate of the classifier", above=0)
    steps_classifier: int = setting(500, "steps of the classifier", low=100)
    seeds: int = setting(32, "draws of data and start", low=1)
    base: int = setting(0, "key that all draws share", low=0, high=2**32 - 1)
    looks: int = setting(800, "steps of the denoiser recorded", low=20, high=20000)

    def check(self) -> None:
        if self.d < 3:
            raise BadInput("d must be at least 3")

    # What is drawn.

    def world(self, mu: float) -> TwoPatch:
        from saltus.papers.features.world import TwoPatch

        return TwoPatch(self.n, self.d, mu, self.sigma_xi, self.project_noise, self.labels)

    def chi(self, mu: float) -> float:
        return self.n * mu**2 / (self.sigma_xi**2 * self.d)

    def mu_of(self, chi: float) -> float:
        return float((chi * self.sigma_xi**2 * self.d / self.n) ** 0.5)

    @property
    def step(self) -> float:
        """The denoiser's step on the loss summed over coordinates."""
        from saltus.papers.features.law.ddpm import effective

        return effective(self.eta, self.reduction, self.d)

    def noise(self) -> tuple[float, float]:
        from saltus.papers.features.law.ddpm import diffusion

        return diffusion(self.time)

    def factor(self) -> float:
        from saltus.papers.features.model import prefactor

        return prefactor(self.m, self.prefactor)

    def draws(self, mu: float, task: str) -> tuple[Sample, Any]:
        """Data and starts of all seeds: the same for every study with these settings and this mu."""
        from saltus.papers.features import world

        heads = 1 if task == "denoiser" else 2
        drawn = [
            self.world(mu).draw_in_span(self.rng(seed, task), heads * self.m, self.sigma0)
            for seed in range(self.seeds)
        ]
        start = np.stack([w for _, w in drawn])
        if heads == 2:
            start = start.reshape(self.seeds, 2, self.m, -1)
        return world.stack([s for s, _ in drawn]), start

    def rng(self, seed: int, task: str) -> Any:
        # A draw is the same at every mu, so that settings are compared on the same noises and starts.
        return np.random.default_rng([self.base, seed, 0 if task == "denoiser" else 1])

    # What is trained.

    def train_denoiser(
        self, mu: float, at: Any = None, progress: Any = None, **changes: Any
    ) -> dict[str, Any]:
        from saltus.papers.features import training

        sample, start = self.draws(mu, "denoiser")
        alpha, beta = self.noise()
        given: dict[str, Any] = dict(
            eta=self.step, at=looks(self.steps, self.looks) if at is None else at, alpha=alpha, beta=beta,
            prefactor=self.prefactor, look=training.watch.denoiser, progress=progress,
        )  # fmt: skip
        return training.train_denoiser(sample.X, sample.omega, start, **{**given, **changes})

    def train_classifier(
        self, mu: float, at: Any = None, progress: Any = None, **changes: Any
    ) -> dict[str, Any]:
        from saltus.papers.features import training

        sample, start = self.draws(mu, "classifier")
        given: dict[str, Any] = dict(
            eta=self.eta_classifier, at=np.arange(self.steps_classifier + 1) if at is None else at,
            look=training.watch.classifier, progress=progress,
        )  # fmt: skip
        return training.train_classifier(sample, start, **{**given, **changes})

    # What is recorded.

    def both(self, mus: Sequence[float], lab: Lab, tasks: Sequence[str] = ("classifier", "denoiser")) -> Any:
        """The trainings at every mu: `classifier_*` [mu, seed, k] and `denoiser_*` [mu, seed, step]."""
        parts: dict[str, list[Any]] = {task: [] for task in tasks}
        with lab.progress("runs") as tick:
            done, total = 0, len(mus) * len(tasks)
            for mu in mus:
                for task in tasks:
                    make = partial(getattr(self, f"{task}_part"), mu)
                    parts[task].append(lab.keep(f"{task} at mu = {mu:g}", make))
                    done += 1
                    tick(done, total)
        data = xr.merge([xr.concat(found, "mu") for found in parts.values()])
        data = data.assign_coords(mu=list(mus), seed=np.arange(self.seeds))
        data["chi"] = ("mu", [self.chi(mu) for mu in mus], {"long_name": "n SNR^2", "units": "1"})
        lost = [(~np.isfinite(data[f"{task}_signal"])).any(data[f"{task}_signal"].dims[-1]) for task in tasks]
        gone = xr.concat(lost, "task").any("task")
        data["diverged_at"] = xr.where(gone, 0, -1).assign_attrs(
            long_name="0 where a training left the finite numbers, -1 elsewhere", units="1"
        )
        return data

    def denoiser_part(self, mu: float) -> xarray.Dataset:
        found = self.train_denoiser(mu)
        data = {
            f"denoiser_{k}": (("seed", "step"), found[k], {"long_name": words, "units": "1"})
            for k, words in DENOISER.items()
        }
        return xr.Dataset(data, coords={"step": found["step"]})

    def classifier_part(self, mu: float) -> xarray.Dataset:
        found = self.train_classifier(mu)
        data = {
            f"classifier_{k}": (("seed", "k"), found[k], {"long_name": words, "units": "1"})
            for k, words in CLASSIFIER.items()
        }
        return xr.Dataset(data, coords={"k": found["step"]})

    def note(self, record: xarray.Dataset | None = None) -> str:
        """The small print under a figure."""
        lost = note_lost(record) if record is not None and "diverged_at" in record else ""
        return (
            f"n = {self.n}, d = {self.d}, m = {self.m}, σ₀ = {self.sigma0:g}, t = {self.time:g}; "
            f"{self.seeds} draws, bands hold 80% of them{lost}"
        )
