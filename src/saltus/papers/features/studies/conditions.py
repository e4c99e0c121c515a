"""The conditions of the theorems, the concentration they rest on, and the classifier's bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from saltus._lazy import xr
from saltus.core.errors import BadInput
from saltus.core.settings import setting
from saltus.core.study import study
from saltus.papers.features.studies import _conditions, _conditions_claims
from saltus.papers.features.studies._runs import Synthetic

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab


@study(
    "features/conditions",
    cites="han2025feature",
    figure="Conditions 3.1, C.1, D.1",
    cost="1 min on two cores",
    version=2,
    checks=(
        "the paper's experiment meets none of its conditions; the least d that does is computed",
        "every concentration lemma fails as rarely as it says",
        "the bounds of Proposition C.1 hold along the classifier's training",
        "no product with a signal changes sign (Lemma C.6); those with a point's own noise (Lemma C.15)",
        "at T_1 of Appendix C the leading products are over 2, of every class or point",
        "from there on every step nears the reference point of the second stage (Lemmas C.12, C.19)",
        "the conclusions of Theorem 3.2 at low and at high SNR",
    ),
)
@dataclass(frozen=True)
class Conditions(Synthetic):
    """No published experiment meets the theorems' conditions; most conclusions hold all the same.

    Every inequality of Conditions 3.1, C.1 and D.1 at the settings of figures 2 and 6, with the factor by
    which it holds or is missed; the frequency with which each concentration lemma fails over draws; and the
    classifier's bounds, signs and final case along trainings with noise off the signals, as the theory has
    it.
    """

    mu: tuple[float, ...] = setting(
        (5.0, 8.0, 10.0, 12.0, 15.0), "lengths of the signals, ascending", above=0
    )
    delta: float = setting(0.1, "probability with which a lemma may fail", above=0, high=0.5)
    draws_checked: int = setting(400, "draws over which lemmas are counted", low=20)
    project_noise: bool = setting(True, "take the signals' directions out of the noise, as the theory does")
    seeds: int = setting(32, "draws trained at the lowest and the highest SNR", low=1)

    def check(self) -> None:
        super().check()
        if len(self.mu) < 2 or list(self.mu) != sorted(set(self.mu)):
            raise BadInput("mu needs two lengths or more in ascending order")

    def run(self, lab: Lab) -> xarray.Dataset:
        data = lab.keep("draws", partial(_conditions.counted, self))
        ends = (self.mu[0], self.mu[-1])
        runs = [lab.keep(f"classifier at mu = {mu:g}", partial(_conditions.bounded, self, mu)) for mu in ends]
        return data.merge(xr.concat(runs, "trained").assign_coords(trained=list(ends)))

    def law(self, record: xarray.Dataset) -> xarray.Dataset:
        """Margins of every inequality at every mu, and the least d that leaves room for n SNR^2 = 1."""
        return _conditions.margins(self)

    def claims(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        return _conditions_claims.claims(self, record, law)

    def draw(self, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
        return _conditions.picture(self, record, law)
