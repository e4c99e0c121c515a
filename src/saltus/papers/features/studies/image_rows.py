"""Figures 3, 7, 10, 12 and 14: test pictures, input gradients and denoised pictures, and their numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from saltus.core import claim, stats
from saltus.core.settings import setting
from saltus.core.study import study
from saltus.papers.features.studies import image_dynamics as dynamics
from saltus.papers.features.studies._image_rows import TWICE, Rows

if TYPE_CHECKING:
    import xarray

    from saltus.core.claim import Claim

__all__ = ["HighRows", "LateHighRows", "LateLowRows", "LowRows", "TenRows"]

COST = "3 s on two cores, beside the trainings of figure "

_DENOISES = (
    "the denoiser takes a part of the error of training pictures away (control: their pixels in another "
    "order)",
    "and of training noise (control: new noise)",
    "and of test pictures (control: their pixels in another order)",
    "on new noise it does harm: it knows the training set's (control: training noise)",
    "what it takes away is little: at most m/d (control: what is left)",
)
_ON_NOISE = (
    "the classifier's input gradient lies in the noise patch (control: in the picture)",
    "training put it there (control: another untrained network)",
    "training puts it there on training pictures (control: on test pictures)",
)


@study("features/fig3", figure="3", cites="han2025feature", cost=COST + "4", checks=(*_ON_NOISE, *_DENOISES))
@dataclass(frozen=True)
class LowRows(Rows):
    """Test pictures at low SNR, the classifier's input gradients, and what the denoiser makes of them.

    Views of the trainings of figure 4. Beside each denoised picture stands x_t/α, which is what no network
    makes of it, and what the network took away. For each patch the part of the error that the denoiser
    takes away, in closed form; for each picture the energy of the input gradient in both patches, of the
    trained and of the untrained network.
    """

    trained = dynamics.LowNoise

    def claims(self, record: xarray.Dataset, law: None) -> Iterator[Claim]:
        yield from self.on_noise(record)
        yield from self.denoises(record)


@study(
    "features/fig7",
    figure="7",
    cites="han2025feature",
    cost=COST + "8",
    checks=(
        "the classifier's input gradient lies in the picture (control: the untrained network's)",
        "training put it there (control: another untrained network)",
        *_DENOISES,
    ),
)
@dataclass(frozen=True)
class HighRows(Rows):
    """Test pictures at high SNR, the classifier's input gradients, and what the denoiser makes of them.

    As figure 3, with pictures scaled by 0.5: views of the trainings of figure 8.
    """

    snr: float = setting(0.5, "factor on the pictures, the paper's SNR with a tilde", above=0)
    trained = dynamics.HighNoise

    def claims(self, record: xarray.Dataset, law: None) -> Iterator[Claim]:
        yield claim.below(
            "gradient-on-signal",
            "On test pictures less than half of the energy of the classifier's input gradient lies in the "
            "noise patch (median of the runs' medians).",
            stats.median(self.share(record)),
            0.5,
            control=("untrained", stats.median(self.share(record, "odds_test_start"))),
        )
        yield claim.below(
            "from-training",
            "Training put it there: it halves the odds of noise against picture or better (ln, median).",
            stats.median(self.moved(record)),
            -TWICE,
            control=("another untrained network", stats.median(self.untrained(record))),
        )
        yield from self.denoises(record)


@dataclass(frozen=True)
class LateRows(Rows):
    """Denoised pictures at a larger diffusion time; the classifier has no part in them."""

    t: float = setting(0.8, "diffusion time", above=0, high=10)
    gradients: ClassVar[bool] = False


@study("features/fig10", figure="10", cites="han2025feature", cost=COST + "11", checks=_DENOISES)
@dataclass(frozen=True)
class LateLowRows(LateRows):
    """Test pictures at low SNR, denoised at diffusion time 0.8.

    Views of the trainings of figure 11.
    """

    trained = dynamics.LateLow

    def claims(self, record: xarray.Dataset, law: None) -> Iterator[Claim]:
        yield from self.denoises(record)


@study("features/fig12", figure="12", cites="han2025feature", cost=COST + "13", checks=_DENOISES)
@dataclass(frozen=True)
class LateHighRows(LateRows):
    """Test pictures at high SNR, denoised at diffusion time 0.8.

    Views of the trainings of figure 13.
    """

    snr: float = setting(0.5, "factor on the pictures, the paper's SNR with a tilde", above=0)
    trained = dynamics.LateHigh

    def claims(self, record: xarray.Dataset, law: None) -> Iterator[Claim]:
        yield from self.denoises(
            record,
            noise=dict(
                expected=False,
                because="at this time and SNR nearly all of the network goes into the pictures (figure 13): "
                "on training noise it gains nothing",
            ),
        )


@study(
    "features/fig14", figure="14", cites="han2025feature", cost=COST + "15", checks=(*_ON_NOISE, *_DENOISES)
)
@dataclass(frozen=True)
class TenRows(Rows):
    """All ten digits at low SNR: input gradients of the true class, and what the denoiser makes of them.

    Views of the trainings of figure 15.
    """

    classes: tuple[int, ...] = setting(tuple(range(10)), "classes taken", low=0, high=9)
    per_class: int = setting(10, "training pictures of each class", low=2, high=2000)
    test: int = setting(200, "test pictures of each class at most", low=3)
    trained = dynamics.TenClasses

    def claims(self, record: xarray.Dataset, law: None) -> Iterator[Claim]:
        yield from self.on_noise(record)
        yield from self.denoises(record)
