"""Where the stationary ratio is of the order of n SNR^2, and where it is not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from saltus._lazy import np, xr
from saltus.core.errors import BadInput
from saltus.core.settings import setting
from saltus.core.study import study
from saltus.papers.features.studies import _stationary
from saltus.papers.features.studies._runs import Synthetic

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab


@study(
    "features/stationary",
    cites="han2025feature",
    figure="Theorem 3.1",
    cost="4 min on two cores",
    checks=(
        "training ends at the stationary point solved for, product by product",
        "there the ratio identity holds, all neurons agree, and no curvature is negative",
        "in the paper's setting the ratio goes with n SNR^2 to the power 0.2, not 1",
        "with |mu| = 1 it saturates below n SNR^2 = 1 and has slope 1 far above",
        "inside Condition 3.1 itself it does not go with n SNR^2",
        "products are of size m^(-1/6) at n SNR^2 = 1",
        "in the paper's setting the neurons do not end aligned (Lemma D.8)",
    ),
)
@dataclass(frozen=True)
class Stationary(Synthetic):
    """The stationary ratio is of the order of n SNR² far above 1 only; below 1 it saturates.

    The stationary point is solved for three times: by gradient descent on the whole network, by Newton's
    method in the n + 3 numbers that it has for given patches, and in the three that are left with equal
    classes and orthogonal noises. They agree, so the last one can say where Theorem 3.1's ratio, of the order
    of n SNR², is true: in the paper's setting, in one with |mu| = 1, and in one that meets Condition 3.1.
    """

    mu: tuple[float, ...] = setting(
        (5.0, 8.0, 10.0, 12.0, 15.0), "lengths of the signals, ascending", above=0
    )
    seeds: int = setting(8, "draws of data and start", low=1)
    looks: int = setting(120, "steps of the denoiser recorded", low=20, high=2000)
    neurons: tuple[int, ...] = setting((1, 2, 4, 20), "neurons in the setting with |mu| = 1", low=1)
    chis: tuple[float, ...] = setting(
        (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0), "values of n SNR^2 trained there", above=0
    )
    points: int = setting(8, "training points there", low=2)
    wide: int = setting(20000, "dimension there", low=100)
    inside: tuple[float, ...] = setting(
        (0.001, 0.003, 0.01, 0.03), "values of n SNR^2 trained inside Condition 3.1, d = 10^12", above=0
    )

    def check(self) -> None:
        super().check()
        for name in ("mu", "neurons", "chis", "inside"):
            values = getattr(self, name)
            if len(values) < 2 or list(values) != sorted(set(values)):
                raise BadInput(f"{name} needs two values or more in ascending order")

    def run(self, lab: Lab) -> xarray.Dataset:
        with lab.progress("runs") as tick:
            total = len(self.mu) + len(self.neurons) + len(self.inside)
            paper, theory, inside = [], [], []
            for mu in self.mu:
                paper.append(lab.keep(f"mu = {mu:g}", partial(_stationary.paper, self, mu)))
                tick(len(paper), total)
            for m in self.neurons:
                theory.append(lab.keep(f"m = {m}", partial(_stationary.theory, self, m)))
                tick(len(paper) + len(theory), total)
            for chi in self.inside:
                inside.append(lab.keep(f"inside, {chi:g}", partial(_stationary.inside, self, chi)))
                tick(len(paper) + len(theory) + len(inside), total)
        data = xr.concat(paper, "mu").assign_coords(mu=list(self.mu), seed=np.arange(self.seeds))
        data = data.merge(xr.concat(theory, "m").assign_coords(m=list(self.neurons)))
        data = data.merge(xr.concat(inside, "chi_inside").assign_coords(chi_inside=list(self.inside)))
        data["chi"] = ("mu", [self.chi(mu) for mu in self.mu])
        data.chi.attrs.update(long_name="n SNR^2", units="1")
        for name, words in _stationary.WORDS.items():
            data[name].attrs.update(long_name=words, units="1")
        return data

    def law(self, record: xarray.Dataset) -> xarray.Dataset:
        return _stationary.law(self)

    def claims(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        from saltus.papers.features.studies import _stationary_claims

        return _stationary_claims.claims(self, record, law)

    def draw(self, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
        from saltus.papers.features.studies import _stationary_pictures

        return _stationary_pictures.stationary(self, record, law)
