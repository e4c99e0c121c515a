"""The one record of every study and reading that the pages are written from."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from saltus import python
from saltus.core import lab, store
from saltus.core.errors import BadInput
from saltus.core.study import Info
from saltus.report.outcome import Outcome

READINGS = ("as-written", "as-drawn")
PLAIN = ""  # the reading of a study that has none
Found = dict[tuple[str, str], Outcome]


def readings(info: Info) -> tuple[str, ...]:
    """The readings of a study, or the empty one."""
    return READINGS if "reading" in _fields(info) else (PLAIN,)


def collect(stores: Sequence[Path], *, paper: str, draft: bool = False) -> Found:
    """Every study of a paper in every reading, from the best record that the stores hold of it.

    The best is one with default settings, at full scale if there is one, the newest of these. A draft also
    takes records with changed settings, and does without those that are missing.
    """
    found: Found = {}
    for outcome in _every(stores, paper):
        for one in _under_readings(outcome):
            key = (one.info.id, getattr(one.study, "reading", PLAIN))
            if (draft or not _changed(one)) and (key not in found or _rank(one) > _rank(found[key])):
                found[key] = one
    gaps = missing(found, paper)
    if gaps and not draft:
        raise BadInput(
            "no record with default settings of "
            + ", ".join(" ".join(filter(None, key)) for key in gaps)
            + f" in {', '.join(map(str, stores))}; saltus run --all [--reading as-drawn] --out DIR makes them"
        )
    if not found:
        raise BadInput(f"no record of any study in {', '.join(map(str, stores))}")
    return found


def missing(found: Mapping[tuple[str, str], Outcome], paper: str) -> list[tuple[str, str]]:
    """The studies and readings of a paper of which there is no record."""
    every = [info for info in python.studies().values() if info.paper == paper]
    wanted = [(info.id, reading) for info in every for reading in readings(info)]
    return [key for key in wanted if key not in found]


def _every(stores: Sequence[Path], paper: str) -> list[Outcome]:
    known = {id for id, info in python.studies().items() if info.paper == paper}
    paths = [path for folder in stores for path in store.Store(folder).records()]
    return [python.reopen(p) for p in paths if str(p.parent.parent.name + "/" + p.parent.name) in known]


def _under_readings(outcome: Outcome) -> list[Outcome]:
    """The outcome, and its other reading where both are made from the same record."""
    fields = _fields(outcome.info)
    if "reading" not in fields or not fields["reading"].metadata.get("drawing"):
        return [outcome]
    values = lab.values_of(outcome.study)
    return [
        Outcome(outcome.info.cls(**{**values, "reading": reading}), outcome.record, computed=False)
        for reading in READINGS
    ]


def _fields(info: Info) -> dict[str, dataclasses.Field[object]]:
    return {f.name: f for f in dataclasses.fields(info.cls)}


def _changed(outcome: Outcome) -> bool:
    """Whether any setting but the reading and the scale is not the study's own."""
    cls, values = outcome.info.cls, lab.values_of(outcome.study)
    switches = {name: values[name] for name in ("reading", "scale") if isinstance(values.get(name), str)}
    if "scale" in switches and "scale" not in getattr(cls, "presets", {}):
        del switches["scale"]
    # What a study leaves to the machine, as the data set to be had, is no change.
    return lab.values_of(lab.settled(cls(**switches))) != values


def _rank(outcome: Outcome) -> tuple[bool, bool, str]:
    full = getattr(outcome.study, "scale", "") == "full"
    return not _changed(outcome), full, str(outcome.record.manifest["started"])
