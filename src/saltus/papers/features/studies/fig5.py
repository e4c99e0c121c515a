"""Figure 5: losses of both trainings, and the classifier's accuracy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from saltus._lazy import np, xr
from saltus.core import claim, stats
from saltus.core.errors import BadInput
from saltus.core.settings import setting
from saltus.core.study import study
from saltus.papers.features.studies._runs import Synthetic

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab

ANCHORS = {5.0: 1983.6, 15.0: 1978.7}  # the denoiser's last loss at the paper's settings, mean of classes


@study(
    "features/fig5",
    cites="han2025feature",
    figure="5",
    cost="1.5 min on two cores",
    checks=(
        "all training points are classified at both SNR",
        "at low SNR new points are not, at high SNR they are",
        "the classifier's loss goes to zero, the denoiser's to a stationary value",
        "that value is the one solved for, and above the bound of a network of m neurons",
    ),
)
@dataclass(frozen=True)
class Figure5(Synthetic):
    """Both losses converge; at low SNR the classifier knows its training points only.

    Training loss of both tasks along the runs of figure 2, accuracy of the classifier on the training points
    and on new ones, beside the loss of the solved stationary point and the lower bound 2d - 2m: a patch's
    output lies in the m-dimensional span of the weights, so at most m of d coordinates of its noise can be
    predicted.
    """

    mu: tuple[float, ...] = setting((5.0, 15.0), "lengths of the signals, low SNR first", above=0)
    points: int = setting(3000, "new points in the test", low=10)

    def check(self) -> None:
        super().check()
        if len(self.mu) != 2 or self.mu[0] >= self.mu[1]:
            raise BadInput("mu needs two lengths, the smaller one first, as in 5,15")

    def run(self, lab: Lab) -> xarray.Dataset:
        data = self.both(self.mu, lab)
        tests = [lab.keep(f"test at mu = {mu:g}", partial(self.tested, mu)) for mu in self.mu]
        data = data.merge(xr.concat(tests, "mu").assign_coords(mu=list(self.mu)))
        data.test.attrs.update(long_name="accuracy on new points", units="1")
        data["denoiser_loss"] = (2 * self.d + data.denoiser_change).assign_attrs(
            long_name="DDPM loss, summed over coordinates", units="1"
        )
        return data

    def tested(self, mu: float) -> xarray.Dataset:
        """Accuracy on new points at forty steps [seed, at]."""
        from saltus.papers.features import model, training

        at = np.unique(np.round(np.geomspace(1, self.steps_classifier + 1, 40)).astype(int)) - 1
        sample, start = self.draws(mu, "classifier")
        path = training.train_classifier(sample, start, eta=self.eta_classifier, at=at)["W"]
        found = []
        for seed, of_run in enumerate(path):
            x, y = self.world(mu).fresh(
                np.random.default_rng([self.base, seed, 2]), self.points, path.shape[-1]
            )
            found.append([float(model.accuracy(W, x, y)) for W in of_run])
        return xr.Dataset({"test": (("seed", "at"), np.asarray(found))}, coords={"at": at})

    def law(self, record: xarray.Dataset) -> xarray.Dataset:
        from saltus.papers.features.studies import _theory

        found = _theory.of(self, self.mu, record.step.values, record.k.values)
        found["loss"] = (2 * self.d + found.point_change).assign_attrs(
            long_name="DDPM loss of the solved stationary point", units="1"
        )
        found["bound"] = ((), 2.0 * self.d - 2 * self.m, {"long_name": "no network has less", "units": "1"})
        return found

    def claims(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        low, high = self.mu
        name = {mu: f"n SNR² = {self.chi(mu):.3g}" for mu in self.mu}
        fitted = record.classifier_accuracy == 1
        yield claim.above(
            "all-trained",
            "Runs in which every training point is classified at the end, at both SNR (share).",
            stats.share(fitted.isel(k=-1).all("mu").values),
            0.85,
            control=("before training", stats.share(fitted.isel(k=0).all("mu").values)),
        )
        test = {mu: record.test.sel(mu=mu).isel(at=-1).values for mu in self.mu}
        yield claim.within(
            "low-fails",
            f"At {name[low]} about half of the new points are classified (accuracy, mean over runs).",
            stats.mean(test[low]),
            (0.45, 0.6),
            control=(name[high], stats.mean(test[high])),
        )
        yield claim.above(
            "high-generalises",
            f"At {name[high]} nearly all new points are (accuracy, mean over runs).",
            stats.mean(test[high]),
            0.99,
            control=(name[low], stats.mean(test[low])),
        )
        losses = record.classifier_loss
        yield claim.below(
            "classifier-to-zero",
            "The classifier's loss ends below 0.01 at both SNR (larger of both, median).",
            stats.median(losses.isel(k=-1).max("mu").values),
            0.01,
            control=("after 20 steps", stats.median(losses.sel(k=20).max("mu").values)),
        )
        last = record.denoiser_loss.isel(step=-1)
        yield claim.above(
            "denoiser-bound",
            f"The denoiser's loss never falls below 2d - 2m = {float(law.bound):g} (least over all runs).",
            stats.least(record.denoiser_loss.values),
            float(law.bound),
            control=("the loss less 2m", stats.least(record.denoiser_loss.values - 2 * self.m)),
        )
        off = abs(last - law.loss).max("mu").values
        early = (
            abs(record.denoiser_loss.sel(step=self.steps / 2, method="nearest") - law.loss).max("mu").values
        )
        yield claim.below(
            "denoiser-solved",
            "It ends at the loss of the stationary point solved for with the run's own patches (distance, "
            "larger of both SNR, median).",
            stats.median(off),
            1e-6,
            control=("halfway through training", stats.median(early)),
        )
        for mu, other in ((low, high), (high, low)):
            if self.is_paper() and mu in ANCHORS:
                yield claim.within(
                    f"denoiser-loss-{mu:g}",
                    f"At {name[mu]} the denoiser's loss ends at {ANCHORS[mu]:g} ± 0.5 (mean).",
                    stats.mean(last.sel(mu=mu).values),
                    (ANCHORS[mu] - 0.5, ANCHORS[mu] + 0.5),
                    control=(name[other], stats.mean(last.sel(mu=other).values)),
                )

    def is_paper(self) -> bool:
        """Whether everything that moves the last loss is as in the paper."""
        own: tuple[Any, ...] = (
            self.n,
            self.d,
            self.m,
            self.sigma_xi,
            self.sigma0,
            self.time,
            self.eta,
            self.steps,
        )
        return own == (30, 1000, 20, 1.0, 0.001, 0.2, 0.5, 40000) and (self.reduction, self.prefactor) == (
            "mean_d", "sqrt_m",
        )  # fmt: skip

    def draw(self, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
        from saltus.papers.features.studies import _loss_pictures

        return _loss_pictures.losses(self, record, law)
