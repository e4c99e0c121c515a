"""A study that has been run: its record, law, claims, verdict and figure."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saltus.core import lab, settings, store
from saltus.core.claim import Claim
from saltus.core.progress import Silent
from saltus.core.record import Record, device_name
from saltus.core.study import Info

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Outcome:
    """What a run gives back; law, claims and figure are made from the record when asked for."""

    study: Any
    record: Record
    computed: bool = field(default=True)

    @property
    def info(self) -> Info:
        return type(self.study).info

    @property
    def data(self) -> xarray.Dataset:
        return self.record.data

    @cached_property
    def law(self) -> xarray.Dataset | None:
        make = getattr(self.study, "law", None)
        return make(self.data) if make is not None else None

    @cached_property
    def claims(self) -> list[Claim]:
        found = list(self.study.claims(self.data, self.law))
        names = [c.id for c in found]
        if len(set(names)) != len(names):
            raise TypeError(f"{self.info.id}: two claims share an id: {names}")
        return found

    @property
    def as_documented(self) -> bool:
        return all(claim.as_documented for claim in self.claims)

    @property
    def draws(self) -> bool:
        return hasattr(self.study, "draw")

    def figure(self) -> Figure:
        """Draw it, in the house style."""
        from saltus.report.style import house_style

        with house_style():
            return self.study.draw(self.data, self.law)

    @property
    def settings(self) -> dict[str, Any]:
        """As claims and figure have them: those that only change a drawing may differ from the record's."""
        return settings.plain_all(lab.values_of(self.study))

    @property
    def variant(self) -> str:
        return lab.variant(self.study)

    @property
    def command(self) -> str:
        """The exact command that shows these claims and this figure again."""
        return lab.command(self.study)

    def as_json(self) -> dict[str, Any]:
        """What `saltus run --json` prints."""
        manifest = self.record.manifest
        return {
            "id": self.info.id,
            "title": self.info.title,
            "figure": self.info.figure,
            "cites": self.info.cites,
            "settings": self.settings,
            "variant": self.variant,
            "device": device_name(manifest),
            "seconds": manifest["seconds"],
            "computed": self.computed,
            "record": str(self.record.path),
            "command": self.command,
            "claims": [claim.as_json() for claim in self.claims],
        }

    def _repr_html_(self) -> str:
        from saltus.report.page import section

        return section(self)

    def __rich__(self) -> Any:
        from saltus.report.table import outcome_table

        return outcome_table(self)


def run(
    study: Any, out: str | Path = store.DEFAULT, *, again: bool = False, show: Silent | None = None
) -> Outcome:
    """Run a study, or find its record; **returns** the outcome."""
    found, computed = lab.run(study, out, again=again, show=show)
    return Outcome(study, found, computed)
