"""Spectra of what heads gain, against those they began with: figures 1, 5 and 14 (16 and 18 by --data)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from saltus._lazy import np
from saltus.core.study import study
from saltus.papers.rank.studies import _rank_claims as claims_
from saltus.papers.rank.studies import _training
from saltus.papers.rank.studies._vision import Vision

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab

COST = "2 minutes on two cores, shared with figures 1, 4, 5, 14 and 15"
CHECKS = (
    "spectra of what heads gained lie well below those of their first weights (control: random changes)",
    "what heads gained is of low rank (control: their first weights)",
    "random changes have the rank that free probability gives them (control: whole matrices)",
    "the networks did learn (control: untrained)",
)


@dataclass(frozen=True)
class Spectra(Vision):
    """What the three figures share: one training, and the claims on its last spectra."""

    verdicts: ClassVar[dict[str, str]] = {}  # why a claim is documented as not holding, by its id

    def run(self, lab: Lab) -> xarray.Dataset:
        return _training.trained(self, lab)

    def law(self, record: xarray.Dataset) -> None:
        """Random changes, which the record holds, are what there is to compare with."""

    def products(self) -> tuple[str, ...]:
        return ("KQ", "VO")

    def claims(self, record: xarray.Dataset, law: None) -> Iterator[Claim]:
        yield from claims_.well_below(record, self.products(), self.verdicts)
        yield from claims_.low_rank(record, self.products(), self.verdicts)
        yield from claims_.reference(record)
        yield from claims_.learns(record, self.least())

    def least(self) -> float:
        """What a network that learnt gets right of its test points."""
        return {"imagenet": 0.3, "cifar100": 0.3, "cifar10": 0.5}.get(self.data, 0.8)

    def heads_shown(self, record: xarray.Dataset) -> Any:
        """Which head of each layer is drawn: by a draw of its own, as the paper's are random."""
        rng = np.random.default_rng(self.base)
        return {int(k): int(rng.integers(record.sizes["head"])) for k in record.layer.values}


@study("rank/fig1", cites="boixadsera2023rank", figure="1", cost=COST, checks=CHECKS)
@dataclass(frozen=True)
class OneHead(Spectra):
    """What a head gains has a steeper spectrum than the weights it began with, at every step.

    Normalised singular values of W_K W_Q' in one head at the start, and of what it gained since at several
    steps; dotted, random changes of the same size. The paper calls them eigenvalues; the matrices are not
    symmetric.
    """

    def products(self) -> tuple[str, ...]:
        return ("KQ",)

    def draw(self, record: xarray.Dataset, law: None) -> Figure:
        from saltus.papers.rank.studies import _rank_pictures as pictures

        middle = int(record.layer.values[len(record.layer) // 2 - 1])
        head = self.heads_shown(record)[middle]
        title = (
            "What heads gain has a steeper spectrum than what they began with: "
            f"{pictures.share(record, 'KQ')} of the area under it"
        )
        return pictures.spectra(self, record, [("KQ", middle, head)], title, columns=1)


@study("rank/fig5", cites="boixadsera2023rank", figure="5", cost=COST, checks=CHECKS)
@dataclass(frozen=True)
class EveryLayer(Spectra):
    """In every layer what W_K W_Q' gained has a steeper spectrum than its first value.

    As figure 1, for a randomly drawn head in several layers, after the training.
    """

    def products(self) -> tuple[str, ...]:
        return ("KQ",)

    def draw(self, record: xarray.Dataset, law: None) -> Figure:
        from saltus.papers.rank.studies import _rank_pictures as pictures

        shown = self.heads_shown(record)
        panels = [("KQ", k, shown[k]) for k in pictures.layers(record)]
        title = (
            "In every layer what W_K W_Q' gained has a steeper spectrum than its first value: "
            f"{pictures.share(record, 'KQ')} of the area under it"
        )
        return pictures.spectra(self, record, panels, title)


@study("rank/fig14", cites="boixadsera2023rank", figure="14 (16, 18)", cost=COST, checks=CHECKS)
@dataclass(frozen=True)
class BothProducts(Spectra):
    """Both products of a head gain steep spectra, W_K W_Q' and W_V W_O'.

    Figure 14; with --data cifar100 figure 16, with --data imagenet figure 18.
    """

    def draw(self, record: xarray.Dataset, law: None) -> Figure:
        from saltus.papers.rank.studies import _rank_pictures as pictures

        shown = self.heads_shown(record)
        panels = [(p, k, shown[k]) for p in self.products() for k in pictures.layers(record)]
        title = (
            "Both products of a head gain steep spectra: W_K W_Q' and W_V W_O' have "
            f"{pictures.share(record, 'KQ', 'VO')} of the area under their first ones"
        )
        return pictures.spectra(self, record, panels, title)
