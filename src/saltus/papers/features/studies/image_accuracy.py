"""Figure 9: accuracy of the classifier on noisy images at low and at high SNR."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from saltus._lazy import xr
from saltus.core import claim, stats
from saltus.core.study import study
from saltus.papers.features.studies._both_snr import BothSnr

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab

__all__ = ["Accuracy"]


@study(
    "features/fig9",
    figure="9",
    cites="han2025feature",
    cost="1 s on two cores, beside the trainings of figures 4 and 8",
    checks=(
        "at low SNR the test accuracy is that of a coin (control: high SNR)",
        "at high SNR it is nearly 1 (control: low SNR)",
        "all training points are on the right side at both (control: before training)",
    ),
)
@dataclass(frozen=True)
class Accuracy(BothSnr):
    """The classifier that learnt the noise is no better than a coin; the one that learnt the signal is right.

    Training and test accuracy over the steps: views of the trainings of figures 4 and 8.
    """

    def run(self, lab: Lab) -> xarray.Dataset:
        made = [record for _, record in self.trainings(lab)]
        parts = [
            one[["train_accuracy", "test_accuracy"]].assign_coords(snr=snr)
            for one, snr in zip(made, (self.snr, self.high), strict=True)
        ]
        return xr.concat(parts, "snr").assign_attrs(made[0].attrs)

    def claims(self, record: xarray.Dataset, law: None) -> Iterator[Claim]:
        low, high = (record.test_accuracy.sel(snr=s).values[:, -1] for s in (self.snr, self.high))
        chance = 1 / len(self.classes)
        yield claim.within(
            "chance-at-low",
            f"At SNR {self.snr:g} the test accuracy is within 0.05 of {chance:.2g} (median).",
            stats.median(low),
            (chance - 0.05, chance + 0.05),
            control=(f"at SNR {self.high:g}", stats.median(high)),
        )
        yield claim.above(
            "right-at-high",
            f"At SNR {self.high:g} the test accuracy is 0.98 or more (median).",
            stats.median(high),
            0.98,
            control=(f"at SNR {self.snr:g}", stats.median(low)),
        )
        yield claim.above(
            "fitted",
            "Both classifiers have all training points on the right side (least of all runs).",
            stats.least(record.train_accuracy.values[..., -1]),
            1.0,
            control=("before training", stats.least(record.train_accuracy.values[..., 0])),
        )

    def draw(self, record: xarray.Dataset, law: None) -> Figure:
        from saltus.papers.features.studies import _image_pictures

        return _image_pictures.accuracies(self, record)
