"""One layer of several networks and tasks: figure 4."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from saltus._lazy import xr
from saltus.core.errors import BadInput
from saltus.core.settings import setting
from saltus.core.study import study
from saltus.papers.rank.studies import _rank_claims as claims_
from saltus.papers.rank.studies import _training
from saltus.papers.rank.studies._text import TEXTS
from saltus.papers.rank.studies._vision import SETS
from saltus.papers.rank.studies.language import LanguageRanks
from saltus.papers.rank.studies.stable import AdamRanks

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab


@study(
    "rank/fig4",
    cites="boixadsera2023rank",
    figure="4",
    cost="5 minutes on two cores, shared with figures 1, 5, 14, 15 and 20",
    checks=(
        "for each pair of network and task the stable rank of what heads gain grows (control: random walks)",
        "and what heads gained is of low rank (control: their first weights)",
    ),
)
@dataclass(frozen=True)
class Pairs:
    """Images or text, the stable rank of what heads gain stays low; it does not grow everywhere.

    One layer of a ViT on images and of a GPT on text, both by Adam: the trainings of figures 15 and 20.
    """

    scale: str = setting(
        "small",
        "small: digits and plays on two cores; gpu: CIFAR-10 and speeches; paper: its four pairs",
        choices=("small", "gpu", "paper"),
    )
    data: tuple[str, ...] = setting(("digits", "plays"), "what is learnt: images by a ViT, text by a GPT")
    epochs: int | None = setting(None, "passes over the data, each network's own unless said", low=1)
    seeds: int | None = setting(None, "networks of each pair, each pair's own unless said", low=1)
    base: int = setting(0, "key that all seeds share", low=0, high=2**32 - 1)

    # Why a claim is documented as not holding, by its id.
    verdicts: ClassVar[dict[str, str]] = {
        "digits-grows-kq": AdamRanks.verdicts["grows-kq"],
        "plays-grows-kq": LanguageRanks.verdicts["grows-kq"],
    }
    presets: ClassVar[dict[str, Any]] = {
        "scale": {
            "small": {},
            "gpu": {"data": ("cifar10", "sotu")},
            "paper": {"data": ("cifar10", "cifar100", "imagenet", "wikitext-103")},
        }
    }

    def check(self) -> None:
        for name in self.data:
            if name not in (*SETS, *TEXTS):
                raise BadInput(f"data is among {', '.join((*SETS, *TEXTS))}; {name!r} is not")
        if len(set(self.data)) != len(self.data):
            raise BadInput("data names a set twice")
        for one in self.networks().values():
            one.check()

    def networks(self) -> dict[str, Any]:
        """The trainings, by what they learn."""
        found: dict[str, Any] = {}
        for name in self.data:
            own: Any = AdamRanks if name in SETS else LanguageRanks
            given = {"epochs": self.epochs, "seeds": self.seeds}
            found[name] = own(
                scale=self.scale,
                data=name,
                base=self.base,
                **{k: v for k, v in given.items() if v is not None},
            )
        return found

    def run(self, lab: Lab) -> xarray.Dataset:
        parts = {name: _training.trained(one, lab) for name, one in self.networks().items()}
        return xr.merge([_marked(part, name) for name, part in parts.items()])

    def law(self, record: xarray.Dataset) -> None:
        """Random walks, which the record holds, are what there is to compare with."""

    def claims(self, record: xarray.Dataset, law: None) -> Iterator[Claim]:
        for name in self.data:
            part = of(record, name)
            own = {k.removeprefix(f"{name}-"): why for k, why in self.verdicts.items()}
            for one in (*claims_.grows(part, verdicts=own), *claims_.low_rank(part, verdicts=own)):
                yield replace(one, id=f"{name}-{one.id}", says=f"{name}: {one.says}")

    def draw(self, record: xarray.Dataset, law: None) -> Figure:
        from saltus.papers.rank.studies import _rank_pictures as pictures

        return pictures.pairs(self, {name: of(record, name) for name in self.data})

    def note(self) -> str:
        return "; ".join(one.note() for one in self.networks().values())


def _mark(name: str) -> str:
    return name.replace("-", "_") + "__"


def _marked(part: xarray.Dataset, name: str) -> xarray.Dataset:
    """Every variable and dimension under the name of its training."""
    mark = _mark(name)
    return part.rename({str(n): f"{mark}{n}" for n in {*part.dims, *part.variables}})


def of(record: xarray.Dataset, name: str) -> xarray.Dataset:
    """The record of one training."""
    mark = _mark(name)
    held = record[[n for n in record.data_vars if str(n).startswith(mark)]]
    return held.rename({str(n): str(n).removeprefix(mark) for n in {*held.dims, *held.variables}})
