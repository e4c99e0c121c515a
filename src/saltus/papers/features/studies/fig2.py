"""Figure 2: products with signal and noise along both trainings, at low and at high SNR."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from saltus._lazy import np
from saltus.core.errors import BadInput
from saltus.core.settings import setting
from saltus.core.study import study
from saltus.papers.features.studies import _measures as measured
from saltus.papers.features.studies._runs import Synthetic

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab


@study(
    "features/fig2",
    cites="han2025feature",
    figure="2",
    cost="1.5 min on two cores",
    checks=(
        "low SNR: the classifier's noise is ten times its signal from step 20 on",
        "high SNR: its signal is twice its noise from step 20 on",
        "its first stage lasts about 20 steps, with the exact gradient (control: the printed update)",
        "it grows exponentially first and logarithmically later",
        "the denoiser grows linearly first, while its loss stays where it was, and faster later",
        "it ends on a plateau",
        "its ratio there is of the order of n SNR^2 at low SNR; at high SNR it is not",
    ),
)
@dataclass(frozen=True)
class Figure2(Synthetic):
    """The classifier chooses between signal and noise, the denoiser ends with both.

    The largest products of the weights with the signals and with the training noises, along gradient descent
    on both tasks, on the same axes as theory: the classifier's growth while |l'| = 1/2, the denoiser's first
    stage in closed form, the step at which it blows up, and the stationary point, solved for.
    """

    mu: tuple[float, ...] = setting((5.0, 15.0), "lengths of the signals, low SNR first", above=0)

    def check(self) -> None:
        super().check()
        if len(self.mu) != 2 or self.mu[0] >= self.mu[1]:
            raise BadInput("mu needs two lengths, the smaller one first, as in 5,15")
        if self.steps_classifier < 200:
            raise BadInput("steps-classifier must be at least 200, to tell a logarithm from another curve")

    def run(self, lab: Lab) -> xarray.Dataset:
        data = self.both(self.mu, lab)
        printed = [self.train_classifier(mu, eta=self.eta_classifier / 2) for mu in self.mu]
        for k in ("signal", "noise"):
            data[f"printed_{k}"] = (
                ("mu", "seed", "k"),
                np.stack([p[k] for p in printed]),
                {"long_name": f"largest product with the {k} by the printed update", "units": "1"},
            )
        return data

    def law(self, record: xarray.Dataset) -> xarray.Dataset:
        from saltus.papers.features.studies import _theory

        return _theory.of(self, self.mu, record.step.values, record.k.values)

    def claims(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        low, high = self.mu
        yield from measured.classifier_claims(self, record, low, high)
        yield from measured.denoiser_claims(self, record, law, low, high)

    def draw(self, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
        from saltus.papers.features.studies import _dynamics_pictures

        return _dynamics_pictures.dynamics(self, record, law)
