"""Both networks trained on noisy images: what is said of their losses and of what they learn."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.core import claim, stats
from saltus.papers.features.studies._image_runs import train_classifier, train_denoiser
from saltus.papers.features.studies._images import NoisyPictures

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab

__all__ = ["SAME_ORDER", "Dynamics", "log_ratio"]

SAME_ORDER = math.log(10) / 2  # within a factor of the square root of ten


def log_ratio(signal: Any, noise: Any) -> Any:
    """ln(signal / noise): 0 is balance, 1 nat a factor of e."""
    return np.log(np.asarray(signal) / np.asarray(noise))


@dataclass(frozen=True)
class Dynamics(NoisyPictures):
    """Both networks over training; each figure is a setting of it."""

    def run(self, lab: Lab) -> xarray.Dataset:
        data = train_denoiser(self, lab).merge(train_classifier(self, lab))
        return self.named(data)

    def named(self, data: xarray.Dataset) -> xarray.Dataset:
        return data.assign_attrs(data=self.world.data, d=self.d, n=self.n, snr=self.snr, t=self.t)

    # The numbers that claims are about, one a run.

    def classifier_log_ratio(self, record: xarray.Dataset, when: int = -1) -> Any:
        return log_ratio(record.learnt_signal.values[:, when], record.learnt_noise.values[:, when])

    def denoiser_log_ratio(self, record: xarray.Dataset, when: int = -1) -> Any:
        return log_ratio(record.signal.values[:, when], record.noise.values[:, when])

    def end_log_ratio(self, record: xarray.Dataset) -> Any:
        return log_ratio(record.end_signal.values, record.end_noise.values)

    def drift(self, record: xarray.Dataset, late: bool = True) -> Any:
        """How much of all that the loss falls it falls in the last twentieth of training, or up to the
        middle of the fall."""
        loss = record.loss.values
        last = loss[:, -1 - (loss.shape[1] - 1) // 20]
        fall = loss[:, 0] - loss[:, -1]
        if late:
            return (last - loss[:, -1]) / fall
        middle = [np.argmax(x <= x[0] - f / 2) for x, f in zip(loss, fall, strict=True)]
        return np.asarray([x[i] - x[-1] for x, i in zip(loss, middle, strict=True)]) / fall

    def classifier_converges(self, record: xarray.Dataset) -> Claim:
        loss = record.class_loss.values
        return claim.below(
            "classifier-converges",
            f"The classifier's training loss ends below 0.1 within {self.class_steps} steps (median).",
            stats.median(loss[:, -1]),
            0.1,
            control=("before training", stats.median(loss[:, 0])),
        )

    def denoiser_converges(self, record: xarray.Dataset) -> Claim:
        return claim.below(
            "denoiser-converges",
            "The denoiser's loss is flat: the last twentieth of training lowers it by less than 1% of all "
            "that it falls (median).",
            stats.median(self.drift(record)),
            0.01,
            control=("from half of the fall on", stats.median(self.drift(record, late=False))),
        )

    def stationary(self, record: xarray.Dataset, **how: Any) -> Claim:
        top = record.slope.values.max(1)
        return claim.below(
            "stationary",
            "There is a stationary point ahead: the gradient's norm falls below 1e-4 of its largest "
            "(median).",
            stats.median(record.end_slope.values / top),
            1e-4,
            control=("where the steps end", stats.median(record.slope.values[:, -1] / top)),
            **how,
        )

    def not_zero(self, record: xarray.Dataset) -> Claim:
        floor = 1 - self.neurons / self.d
        return claim.above(
            "loss-not-zero",
            f"The denoiser's loss stays above 1 - m/d = {floor:.3f} of that of no network: its output lies "
            "in m dimensions of d (least of all runs).",
            stats.least(record.end_loss.values),
            floor,
            control=("the classifier's loss, as a share of its first",
                     stats.least(record.class_loss.values[:, -1] / record.class_loss.values[:, 0])),
        )  # fmt: skip

    def closer_to_balance(self, record: xarray.Dataset, **how: Any) -> Iterator[Claim]:
        """Fig. (c): by how much less the denoiser's products are apart than the classifier's."""
        classifier = abs(self.classifier_log_ratio(record))
        start = abs(self.classifier_log_ratio(record, 0)) - abs(self.denoiser_log_ratio(record, 0))
        for name, when, ratio in (
            ("closer-to-balance", "when its steps end", self.denoiser_log_ratio(record)),
            ("closer-at-stationary-point", "at its stationary point", self.end_log_ratio(record)),
        ):
            yield claim.above(
                name,
                f"The denoiser's signal and noise are nearer to each other than the classifier's, {when}: "
                "|ln ratio| is smaller by a nat or more (median).",
                stats.median(classifier - abs(ratio)),
                1.0,
                control=("before training", stats.median(start)),
                **how,
            )

    def same_order(self, record: xarray.Dataset, **how: Any) -> Claim:
        return claim.below(
            "same-order",
            "The denoiser's signal and noise are of the same order: within a factor of the square root of "
            "ten (|ln ratio|, median).",
            stats.median(abs(self.denoiser_log_ratio(record))),
            SAME_ORDER,
            control=("the classifier", stats.median(abs(self.classifier_log_ratio(record)))),
            **how,
        )

    def noise_dominates(self, record: xarray.Dataset) -> Iterator[Claim]:
        yield claim.below(
            "noise-dominates",
            "The classifier's noise is ten times its signal or more (ln of signal over noise, median).",
            stats.median(self.classifier_log_ratio(record)),
            -float(np.log(10)),
            control=("the denoiser", stats.median(self.denoiser_log_ratio(record))),
        )
        grown = self.classifier_log_ratio(record) - self.classifier_log_ratio(record, 0)
        other = self.denoiser_log_ratio(record) - self.denoiser_log_ratio(record, 0)
        yield claim.below(
            "noise-grows-more",
            "Training makes it so: of the classifier's products the noise grows by a larger factor than the "
            f"signal (ln of the factors' ratio, median; the first weights alone put it at "
            f"{np.exp(np.median(-self.classifier_log_ratio(record, 0))):.1f}).",
            stats.median(grown),
            0.0,
            control=("the denoiser, where the signal grows more", stats.median(other)),
        )

    def draw(self, record: xarray.Dataset, law: None) -> Figure:
        from saltus.papers.features.studies import _image_pictures

        return _image_pictures.dynamics(self, record)
