"""A study that has been run: its record, law, claims, verdict and figure."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.core import lab, settings, store
from saltus.core.claim import Claim
from saltus.core.errors import BadInput, nearest
from saltus.core.progress import Silent
from saltus.core.record import Record, device_name
from saltus.core.study import Info

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Diverged:
    """Runs that left the numbers: a finding, not a fault."""

    runs: int
    of: int
    first: float | None

    def __str__(self) -> str:
        return f"{self.runs:,} of {self.of:,} runs diverged, the first at {self.first:g}"

    def as_json(self) -> dict[str, Any]:
        return {"runs": self.runs, "of": self.of, "first": self.first}


class Claims(list[Claim]):
    """Claims that show themselves as a table, in a notebook and on a terminal."""

    def __getitem__(self, which: Any) -> Any:
        """By number, by slice, or by the claim's own id."""
        if isinstance(which, str):
            found = [c for c in self if c.id == which]
            if not found:
                ids = [c.id for c in self]
                raise BadInput(f"no claim {which!r}{nearest(which, ids)} (known: {', '.join(ids)})")
            return found[0]
        found = super().__getitem__(which)
        return Claims(found) if isinstance(which, slice) else found

    def __rich__(self) -> Any:
        from saltus.report.table import claims_table

        return claims_table(self)

    def _repr_html_(self) -> str:
        from saltus.report.page import claims_section

        return claims_section(self)


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
        with self._calm():
            said = make(self.data) if make is not None else None
        if said is not None and not hasattr(said, "data_vars"):
            raise BadInput(f"{self.info.id}: law must return an xarray Dataset, not {type(said).__name__}")
        return said

    @cached_property
    def claims(self) -> Claims:
        with self._calm():
            made = self.study.claims(self.data, self.law)
            found = list(made) if isinstance(made, Iterable) else [made]
        odd = [c for c in found if not isinstance(c, Claim)]
        if odd:
            raise BadInput(f"{self.info.id}: claims must yield claims, not {type(odd[0]).__name__}")
        names = [c.id for c in found]
        if len(set(names)) != len(names):
            raise BadInput(f"{self.info.id}: two claims share an id: {names}")
        return Claims(found)

    @property
    def as_documented(self) -> bool:
        return all(claim.as_documented for claim in self.claims)

    @property
    def draws(self) -> bool:
        return hasattr(self.study, "draw")

    def figure(self) -> Figure:
        """Draw it, in the house style."""
        from saltus.report.style import house_style

        with house_style(), self._calm():
            drawn = self.study.draw(self.data, self.law)
        if not hasattr(drawn, "savefig"):
            raise BadInput(f"{self.info.id}: draw must return a figure, not {type(drawn).__name__}")
        return drawn

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

    @cached_property
    def diverged(self) -> Diverged | None:
        """How many runs left the numbers, and when; None where the record does not say."""
        if "diverged_at" not in self.data:
            return None
        try:
            at = np.asarray(self.data["diverged_at"].values, float).ravel()
        except ValueError:
            raise BadInput(f"{self.info.id}: diverged_at must hold numbers, a step or a time a run") from None
        gone = at[np.isfinite(at) & (at >= 0)]  # never is -1 for steps, infinite or undefined for times
        return Diverged(int(gone.size), int(at.size), float(gone.min()) if gone.size else None)

    @property
    def finite(self) -> bool:
        """Whether no run is known to have left the numbers."""
        return not (self.diverged and self.diverged.runs)

    @contextlib.contextmanager
    def _calm(self) -> Iterator[None]:
        """Where runs left the numbers, infinity minus infinity is no cause for a warning."""
        with warnings.catch_warnings():
            if not self.finite:
                warnings.simplefilter("ignore", RuntimeWarning)
            yield

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
            "diverged": self.diverged.as_json() if self.diverged else None,
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
    study = lab.settled(study, show)
    found, computed = lab.run(study, out, again=again, show=show)
    return Outcome(study, found, computed)
