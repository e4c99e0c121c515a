"""Figures 4, 8, 11, 13 and 15: losses and learnt products on noisy images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from saltus.core import claim, stats
from saltus.core.settings import setting
from saltus.core.study import study
from saltus.papers.features.studies._image_dynamics import SAME_ORDER, Dynamics, log_ratio
from saltus.papers.features.studies._image_runs import train_denoiser

if TYPE_CHECKING:
    import xarray

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab

__all__ = ["HighNoise", "LateHigh", "LateLow", "LowNoise", "TenClasses"]

COST = "40 s on two cores"
OF_CLASSIFIER = ("class_loss", "train_accuracy", "test_accuracy", "learnt_signal", "learnt_noise")

_LOW = (
    "the classifier's training loss vanishes (control: before training)",
    "the denoiser's loss is flat at the end (control: from half of the fall on)",
    "its gradient vanishes at a point ahead (control: where the steps end)",
    "its loss cannot vanish (control: the classifier's)",
    "the classifier's noise is ten times its signal (control: the denoiser)",
    "training makes it so, not the first weights alone (control: the denoiser)",
    "the denoiser is nearer to balance by a nat (control: before training)",
    "so it is at its stationary point (control: before training)",
    "the denoiser's signal and noise are of the same order (control: the classifier)",
)


@study("features/fig4", figure="4", cites="han2025feature", cost=COST, checks=_LOW)
@dataclass(frozen=True)
class LowNoise(Dynamics):
    """Noisy images at low SNR: the classifier learns the noise, the denoiser both.

    Zeros and ones of MNIST in one patch, scaled by 0.1, and noise N(0, I) in the other, 50 of each digit.
    Losses of both networks and the mean over points of the largest inner product with picture and noise.
    The denoiser descends on the expected loss with steps that follow its curvature, for as long as the
    synthetic experiment's 40000 steps of 0.5 take, and from there L-BFGS finds the stationary point.
    """

    def claims(self, record: xarray.Dataset, law: None) -> Iterator[Claim]:
        yield self.classifier_converges(record)
        yield self.denoiser_converges(record)
        yield self.stationary(record)
        yield self.not_zero(record)
        yield from self.noise_dominates(record)
        yield from self.closer_to_balance(record)
        yield self.same_order(record)


@study(
    "features/fig8",
    figure="8",
    cites="han2025feature",
    cost=COST,
    checks=(
        *_LOW[:4],
        "the classifier's signal is above its noise (control: the denoiser)",
        "training makes it so (control: before training)",
        *_LOW[6:],
    ),
)
@dataclass(frozen=True)
class HighNoise(Dynamics):
    """Noisy images at high SNR: the classifier learns the signal, the denoiser both.

    As figure 4 with pictures scaled by 0.5.
    """

    snr: float = setting(0.5, "factor on the pictures, the paper's SNR with a tilde", above=0)

    def claims(self, record: xarray.Dataset, law: None) -> Iterator[Claim]:
        yield self.classifier_converges(record)
        yield self.denoiser_converges(record)
        yield self.stationary(
            record,
            expected=False,
            because="in some runs a single neuron takes over; there the loss is stiff and the descent is "
            "cut off before it rests",
        )
        yield self.not_zero(record)
        ratio = self.classifier_log_ratio(record)
        yield claim.above(
            "signal-dominates",
            "The classifier's signal is above its noise (ln ratio, median).",
            stats.median(ratio),
            0.0,
            control=("the denoiser", stats.median(self.denoiser_log_ratio(record))),
        )
        yield claim.above(
            "signal-grows-more",
            "Training makes it so: the signal grows by at least e times the factor that the noise does (ln, "
            "median).",
            stats.median(ratio - self.classifier_log_ratio(record, 0)),
            1.0,
            control=("in the first step", stats.median(self.classifier_log_ratio(record, 1)
                                                       - self.classifier_log_ratio(record, 0))),
        )  # fmt: skip
        yield from self.closer_to_balance(
            record,
            expected=False,
            because="the classifier's own ratio is within a factor of four of balance here, so that a nat "
            "nearer "
            "is nearly all there is to gain; with eight runs the interval reaches past it",
        )
        yield self.same_order(record)


_LATE = (*_LOW[1:3], *_LOW[6:])


@dataclass(frozen=True)
class Late(Dynamics):
    """The denoiser at a larger diffusion time, beside the classifier of the figure before, which has no
    time."""

    t: float = setting(0.8, "diffusion time", above=0, high=10)

    def run(self, lab: Lab) -> xarray.Dataset:
        other = self.shared(LowNoise if isinstance(self, LateLow) else HighNoise, t=0.2)
        classifier = lab.record_of(other)[list(OF_CLASSIFIER)]
        return self.named(train_denoiser(self, lab).merge(classifier))

    def claims(self, record: xarray.Dataset, law: None) -> Iterator[Claim]:
        yield self.denoiser_converges(record)
        yield self.stationary(record)
        yield from self.closer_to_balance(record)
        yield self.same_order(record)


@study("features/fig11", figure="11", cites="han2025feature", cost=COST, checks=_LATE)
@dataclass(frozen=True)
class LateLow(Late):
    """At diffusion time 0.8 and low SNR the denoiser still learns both.

    As figure 4 at t = 0.8; the classifier is figure 4's own.
    """


@study("features/fig13", figure="13", cites="han2025feature", cost=COST, checks=_LATE)
@dataclass(frozen=True)
class LateHigh(Late):
    """At diffusion time 0.8 and high SNR the denoiser learns mostly the signal.

    As figure 8 at t = 0.8; the classifier is figure 8's own.
    """

    snr: float = setting(0.5, "factor on the pictures, the paper's SNR with a tilde", above=0)

    def claims(self, record: xarray.Dataset, law: None) -> Iterator[Claim]:
        how: Any = dict(
            expected=False,
            because="more diffusion noise makes the features less balanced, as features/time finds in the "
            "synthetic setting: at high SNR the picture is ahead, and by more than in the classifier",
        )
        yield self.denoiser_converges(record)
        yield self.stationary(record)
        yield from self.closer_to_balance(record, **how)
        yield self.same_order(record, **how)


@study(
    "features/fig15",
    figure="15",
    cites="han2025feature",
    cost=COST,
    checks=(*_LOW, "so it is in every class (control: the classifier)"),
)
@dataclass(frozen=True)
class TenClasses(Dynamics):
    """All ten digits at low SNR: the classifier learns the noise, the denoiser both, in every class.

    Ten pictures of each digit; the classifier has one first layer, a fixed second one of random signs, and
    the cross-entropy of a softmax.
    """

    classes: tuple[int, ...] = setting(tuple(range(10)), "classes taken", low=0, high=9)
    per_class: int = setting(10, "training pictures of each class", low=2, high=2000)
    test: int = setting(200, "test pictures of each class at most", low=3)

    def claims(self, record: xarray.Dataset, law: None) -> Iterator[Claim]:
        yield from LowNoise.claims(self, record, law)  # type: ignore[arg-type]
        each = log_ratio(record.class_signal.values, record.class_noise.values).mean(0)
        worst = int(abs(each).argmax())
        yield claim.below(
            "every-class",
            "At the stationary point signal and noise are of the same order in every class "
            f"(largest |ln ratio| of a class, its mean over runs; digit {self.classes[worst]}).",
            stats.mean(abs(log_ratio(record.class_signal.values, record.class_noise.values))[:, worst]),
            SAME_ORDER,
            control=("the classifier", stats.mean(abs(self.classifier_log_ratio(record)))),
            expected=False,
            because="a picture's pull is its product with the mean picture, which is the least for ones",
        )
