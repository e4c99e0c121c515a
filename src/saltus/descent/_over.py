"""Sweeping numeric fields of a descent, a model or a world inside one compiled program."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from saltus.core.errors import BadInput, nearest


@dataclasses.dataclass(frozen=True)
class Axis:
    """One swept field: `owner` is how, model or world."""

    key: str  # as the user wrote it
    owner: str
    field: str
    values: tuple[Any, ...]
    traced: bool  # whether values can vary inside one program: real numbers or tuples of them, no sizes


def axes(over: Mapping[str, Sequence[Any]] | None, parts: Mapping[str, Any]) -> list[Axis]:
    """The swept fields, each value checked by the field's own owner.

    `parts` maps how, model and world to the objects; a bare name is a field of the first that has it.
    """
    found = []
    for key, given in (over or {}).items():
        owner, name = _owner(key, parts)
        values = _values(key, given)
        for value in values:
            # The owner's own checks run here, once per value; inside the program they cannot.
            dataclasses.replace(parts[owner], **{name: value})
        found.append(Axis(key, owner, name, values, _real(values, getattr(parts[owner], name))))
    targets = [(a.owner, a.field) for a in found]
    if len(set(targets)) < len(targets):
        raise BadInput(f"over: the same field is swept twice ({', '.join(a.key for a in found)})")
    return found


def names(swept: Sequence[Axis]) -> dict[str, str]:
    """A dimension's name for each key: the field alone where that is clear, else owner_field."""
    fields = [a.field for a in swept]
    taken = ("seed", "step", "time", "epoch")
    return {
        a.key: a.field if fields.count(a.field) == 1 and a.field not in taken else f"{a.owner}_{a.field}"
        for a in swept
    }


def put(part: Any, field: str, value: Any) -> Any:
    """A copy of a dataclass with one field replaced by a traced value, checks and caches left out."""
    new = object.__new__(type(part))
    for f in dataclasses.fields(part):
        object.__setattr__(new, f.name, value if f.name == field else getattr(part, f.name))
    return new


def traceable(part: Any) -> bool:
    """Whether `put` gives an equal object: no field is computed from the others."""
    return dataclasses.is_dataclass(part) and all(f.init for f in dataclasses.fields(part))


def labels(values: tuple[Any, ...]) -> np.ndarray:
    """Coordinates along a swept axis: the numbers, or what tuples and the like look like."""
    plain = np.asarray(values)
    if plain.ndim == 1 and plain.dtype.kind in "fiub":
        return plain
    return np.asarray([v if isinstance(v, str) else _label(v) for v in values])


def _label(value: Any) -> str:
    return str(value.tolist() if isinstance(value, np.ndarray) else value)


def _owner(key: str, parts: Mapping[str, Any]) -> tuple[str, str]:
    owner, dot, name = key.partition(".")
    fields = {part: _fields(value) for part, value in parts.items()}
    if dot:
        if owner not in parts or name not in fields[owner]:
            known = [f"{part}.{f}" for part in parts for f in fields[part]]
            raise BadInput(f"over: there is no {key!r}{nearest(key, known)} (known: {', '.join(known)})")
        return owner, name
    for part in parts:
        if key in fields[part]:
            return part, key
    known = [f for part in parts for f in fields[part]]
    raise BadInput(f"over: there is no {key!r}{nearest(key, known)} (known: {', '.join(known)})")


def _real(values: tuple[Any, ...], now: Any) -> bool:
    try:
        kinds = np.asarray(values).dtype.kind, np.asarray(now).dtype.kind
    except ValueError:  # tuples of different lengths
        return False
    return kinds[0] == "f" or kinds == ("i", "f")


def _fields(part: Any) -> list[str]:
    if not dataclasses.is_dataclass(part):
        return []
    return [f.name for f in dataclasses.fields(part) if f.init]


def _values(key: str, given: Any) -> tuple[Any, ...]:
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise BadInput(f"over: {key} needs a list of values; got {given!r}")
    values = tuple(v.item() if isinstance(v, np.generic) else v for v in given)
    if not values:
        raise BadInput(f"over: {key} has no values")
    kinds = {type(v) for v in values}
    if kinds == {int, float}:
        values = tuple(float(v) for v in values)
    if any(np.asarray(v).dtype.kind == "f" and not np.isfinite(np.asarray(v)).all() for v in values):
        raise BadInput(f"over: {key} has values that are not finite")
    return values
