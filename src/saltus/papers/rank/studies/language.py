"""Stable ranks of what the heads of a language model gain: figure 20."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from saltus._lazy import np
from saltus.core import claim, stats
from saltus.core.study import study
from saltus.papers.rank.studies import _rank_claims as claims_
from saltus.papers.rank.studies import _training
from saltus.papers.rank.studies._text import Text

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab


@study(
    "rank/fig20",
    cites="boixadsera2023rank",
    figure="20",
    cost="2 minutes on two cores, shared with figure 4",
    checks=claims_.CHECKS,
)
@dataclass(frozen=True)
class LanguageRanks(Text):
    """In a language model too what heads gain is of low rank; only that of W_V W_O' grows.

    Mean and standard deviation over the heads of every layer of a GPT. Small: characters of four plays;
    --scale paper: GPT-2 on Wikitext-103, put there by hand.
    """

    # Why a claim is documented as not holding, by its id.
    verdicts: ClassVar[dict[str, str]] = {
        "grows-kq": "the rank of what W_K W_Q' gains falls over a training as short as this",
        "stages": "some layers rise in stages and random walks hardly do, but not so in every network",
    }

    def run(self, lab: Lab) -> xarray.Dataset:
        return _training.trained(self, lab)

    def law(self, record: xarray.Dataset) -> None:
        """Random changes, which the record holds, are what there is to compare with."""

    def claims(self, record: xarray.Dataset, law: None) -> Iterator[Claim]:
        yield from claims_.grows(record, verdicts=self.verdicts)
        yield from claims_.low_rank(record, verdicts=self.verdicts)
        yield from claims_.staged(record, self.verdicts)
        yield from claims_.reference(record)
        loss = record.loss_test.values
        few = min(3, loss.shape[1] - 1)
        yield claim.below(
            "learns",
            "test loss over that of the untrained networks (largest over networks)",
            stats.worst(loss[:, -1] / loss[:, 0]),
            0.75,
            control=("after the first steps", stats.worst(loss[:, few] / loss[:, 0])),
        )

    def draw(self, record: xarray.Dataset, law: None) -> Figure:
        from saltus.papers.rank.studies import _rank_pictures as pictures

        first, last = (float(np.median(record.loss_test.values[:, k])) for k in (0, -1))
        return pictures.ranks(self, record, f"Language (loss {first:.2f} to {last:.2f})")
