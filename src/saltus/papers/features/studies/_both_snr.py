"""What the views of both trainings on noisy images share: the low SNR, and the high one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from saltus.core.errors import BadInput
from saltus.core.settings import setting
from saltus.papers.features.studies import image_dynamics as dynamics
from saltus.papers.features.studies._images import NoisyPictures

if TYPE_CHECKING:
    import xarray

    from saltus.core.lab import Lab

__all__ = ["BothSnr"]


@dataclass(frozen=True)
class BothSnr(NoisyPictures):
    """Settings of a view of the trainings of figures 4 and 8."""

    snr: float = setting(0.1, "the low SNR (with a tilde)", above=0)
    high: float = setting(0.5, "the high one", above=0)

    def check(self) -> None:
        super().check()
        if not self.high > self.snr:
            raise BadInput("high must be above snr")

    def trainings(self, lab: Lab) -> list[tuple[Any, xarray.Dataset]]:
        """Both studies with these settings and their records, low SNR first."""
        kinds = ((self.snr, dynamics.LowNoise), (self.high, dynamics.HighNoise))
        both = [self.shared(kind, snr=snr) for snr, kind in kinds]
        return [(one, lab.record_of(one)) for one in both]
