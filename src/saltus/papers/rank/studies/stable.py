"""Stable ranks of what heads gain, over the training: figures 12, 13, 15, 17 and 19."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from saltus.core.settings import setting
from saltus.core.study import study
from saltus.papers.rank.studies import _rank_claims as claims_
from saltus.papers.rank.studies._vision import SCALES
from saltus.papers.rank.studies.spectra import COST, Spectra

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim


@dataclass(frozen=True)
class Ranks(Spectra):
    """What the figures of stable ranks share."""

    def claims(self, record: xarray.Dataset, law: None) -> Iterator[Claim]:
        yield from claims_.grows(record, verdicts=self.verdicts)
        yield from claims_.low_rank(record, verdicts=self.verdicts)
        yield from claims_.staged(record, self.verdicts)
        yield from claims_.reference(record)
        yield from claims_.learns(record, self.least())


@study("rank/fig15", cites="boixadsera2023rank", figure="15 (17, 19)", cost=COST, checks=claims_.CHECKS)
@dataclass(frozen=True)
class AdamRanks(Ranks):
    """With Adam what heads gain is of far lower rank than random changes; only that of W_V W_O' grows.

    Mean and standard deviation over the heads of every layer. Figure 15; with --data cifar100 figure 17, with
    --data imagenet figure 19. Dotted: random walks whose sizes are those of the training.
    """

    verdicts: ClassVar[dict[str, str]] = {
        "grows-kq": "what W_K W_Q' gains is of rank nearly one from the first steps on, and stays so on the "
        "digits"
    }

    def draw(self, record: xarray.Dataset, law: None) -> Figure:
        from saltus.papers.rank.studies import _rank_pictures as pictures

        return pictures.ranks(self, record, "Adam" if self.rule == "adam" else "SGD")


SGD: dict[str, Any] = {
    "scale": {name: {**changes, "lr": 0.3} for name, changes in SCALES["scale"].items()},
    "data": SCALES["data"],
}


@study(
    "rank/fig12",
    cites="boixadsera2023rank",
    figure="12 (13)",
    cost="2 minutes on two cores",
    checks=claims_.CHECKS,
)
@dataclass(frozen=True)
class SgdRanks(Ranks):
    """With SGD what heads gain is of far lower rank than random changes; that it grows is not settled.

    Figure 12; with --data cifar100 figure 13. Learning rate 0.3 after a warm-up, as in the paper.
    """

    verdicts: ClassVar[dict[str, str]] = {
        "grows-kq": "the median grew by a twentieth; six networks do not settle it (interval from 0.9987)",
        "grows-vo": "at a rate of 0.3 the rank is reached in the first ten steps, before growth is measured",
        "stages": "a sixth of the curves rises more than walks do; the interval over networks holds 0",
    }

    patch: int = setting(4, "side of a patch", low=1)
    rule: str = setting("sgd", "the update rule", choices=("adam", "sgd"))
    lr: float = setting(0.3, "largest learning rate", above=0)
    decay: bool = setting(False, "whether the rate then falls along a cosine")

    presets: ClassVar[dict[str, Any]] = SGD

    def draw(self, record: xarray.Dataset, law: None) -> Figure:
        from saltus.papers.rank.studies import _rank_pictures as pictures

        return pictures.ranks(self, record, "SGD" if self.rule == "sgd" else "Adam")
