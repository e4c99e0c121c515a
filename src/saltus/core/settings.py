"""A study's settings: typed, bounded, readable from the command line, a TOML file or Python."""

from __future__ import annotations

import ast
import dataclasses
import math
import re
import types
import typing
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal

from saltus.core.errors import BadInput, nearest

_ABSENT = dataclasses.MISSING
KINDS = "int, float, bool, str, Literal, tuple of these, or one of these | None"

# Options of `saltus run` itself, and what a study's class has already.
TAKEN = {"json", "all", "again", "no_figure", "quiet", "help", "out", "settings", "debug"}
TAKEN |= {"run", "law", "claims", "draw", "check", "settle", "info", "presets", "study", "progress"}

# For each switch (reading, scale) and each of its values: the defaults it changes.
Presets = dict[str, dict[str, dict[str, Any]]]


def setting(
    default: Any,
    help: str,
    *,
    choices: Sequence[Any] | None = None,
    low: float | None = None,
    above: float | None = None,
    high: float | None = None,
    drawing: bool = False,
) -> Any:
    """A dataclass field with its meaning and its bounds.

    **Arguments:** `low`, `above`, `high` bound every number in the value (`above` is strict); `choices`
    lists the allowed values; `drawing=True` marks a setting that never changes what is computed.
    """
    meta = dict(help=help, choices=choices, low=low, above=above, high=high, drawing=drawing)
    return dataclasses.field(default=default, metadata=meta)


def reading(help: str = "the paper's text, or what its published figures were drawn with") -> Any:
    """The switch between a paper's text and its figures, where the two part."""
    return setting("as-written", help, choices=("as-written", "as-drawn"))


@cache
def hints(cls: Any) -> dict[str, Any]:
    """Field name to resolved type, in the order of declaration."""
    try:
        found = typing.get_type_hints(cls)
    except (NameError, TypeError, SyntaxError, AttributeError) as error:
        raise BadInput(f"{cls.__name__}: the type of a setting cannot be read: {error}") from None
    return {f.name: found[f.name] for f in dataclasses.fields(cls) if f.init}


def default_of(cls: type, name: str) -> Any:
    return cls.__dataclass_fields__[name].default  # type: ignore[attr-defined]


def check_name(cls: type, name: str, where: str) -> None:
    """Refuse a setting the study does not have, naming the nearest one it has."""
    known = hints(cls)
    if name not in known:
        close = nearest(name, known) or f"; its settings are {', '.join(known)}"
        raise BadInput(f"{where} has no setting {name.replace('_', '-')!r}{close.replace('_', '-')}")


def resolve(cls: type, given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Defaults, then the presets of the chosen reading and scale, then what was given, all checked."""
    for name in given:
        check_name(cls, name, where)
    values = {name: default_of(cls, name) for name in hints(cls)}
    missing = [n for n, v in values.items() if v is _ABSENT and n not in given]
    if missing:
        raise BadInput(f"{where} needs a value for {missing[0]!r}")
    checked = {name: coerce(cls, name, value) for name, value in given.items()}
    for switch, table in getattr(cls, "presets", {}).items():
        chosen = checked.get(switch, values[switch])
        values.update(table.get(chosen, {}))
    values.update(checked)
    return {name: coerce(cls, name, value) for name, value in values.items()}


def coerce(cls: type, name: str, value: Any) -> Any:
    """The value in the field's own type and within its bounds, or one clear line."""
    field = cls.__dataclass_fields__[name]  # type: ignore[attr-defined]
    label = name.replace("_", "-")
    if isinstance(value, str) and value == field.default:
        return value  # even the empty word, which a command line cannot ask for
    out = convert(value, hints(cls)[name], label)
    meta = field.metadata
    choices = meta.get("choices")
    if choices is not None and out not in choices:
        close = nearest(str(out), map(str, choices))
        raise BadInput(f"{label} is one of {', '.join(map(str, choices))}, not {_shown(out)}{close}")
    for number in _numbers(out):
        if meta.get("low") is not None and number < meta["low"]:
            raise BadInput(f"{label} must be at least {meta['low']:g}, not {number:g}")
        if meta.get("above") is not None and number <= meta["above"]:
            raise BadInput(f"{label} must be greater than {meta['above']:g}, not {number:g}")
        if meta.get("high") is not None and number > meta["high"]:
            raise BadInput(f"{label} must be at most {meta['high']:g}, not {number:g}")
    return out


def _numbers(value: Any) -> list[float]:
    if isinstance(value, bool | str) or value is None:
        return []
    if isinstance(value, tuple):
        return [n for item in value for n in _numbers(item)]
    return [value]


def convert(value: Any, kind: Any, label: str) -> Any:
    """The value in that type, or one clear line."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()  # a scalar of an array library
    if isinstance(value, str) and not value.strip():
        if kind is bool:
            return True  # a bare --option switches it on
        raise BadInput(f"{label} needs a value")
    if origin in (typing.Union, types.UnionType):
        if value is None or (isinstance(value, str) and value.lower() == "none"):
            if type(None) in args:
                return None
            raise BadInput(f"{label} needs a value")
        inner = [a for a in args if a is not type(None)]
        errors = []
        for one in inner:
            try:
                return convert(value, one, label)
            except BadInput as error:
                errors.append(error)
        raise errors[-1]
    if origin is Literal:
        for one in args:
            if type(value) in (type(one), str) and value in (one, str(one)):
                return one
        raise BadInput(f"{label} is one of {', '.join(map(str, args))}, not {_shown(value)}")
    if origin is tuple:
        return _convert_tuple(value, args, label)
    if kind is bool:
        return _boolean(value, label)
    if kind is int:
        return _integer(value, label)
    if kind is float:
        return _real(value, label)
    if kind is str:
        if not isinstance(value, str):
            raise BadInput(f"{label} takes a word, not {_shown(value)}")
        if not value.isprintable():
            raise BadInput(f"{label} holds characters that cannot be printed: {_shown(value)}")
        return value
    raise BadInput(f"{label} is declared as {getattr(kind, '__name__', kind)}; a setting is {KINDS}")


def _convert_tuple(value: Any, args: tuple[Any, ...], label: str) -> tuple[Any, ...]:
    nested = typing.get_origin(args[0]) is tuple
    items = parse_items(value, label, nested) if isinstance(value, str) else value
    items = items.tolist() if hasattr(items, "tolist") else items
    items = list(items) if isinstance(items, Sequence) and not isinstance(items, bytes) else [items]
    # `1,2` is one inner tuple, and so are bare numbers; the words of a command line are one each.
    text = isinstance(value, str)
    if nested and items and all(not isinstance(i, Sequence) or (text and isinstance(i, str)) for i in items):
        items = [items]
    if len(args) == 2 and args[1] is Ellipsis:
        if not items:
            raise BadInput(f"{label} is empty; give at least one value")
        return tuple(convert(item, args[0], label) for item in items)
    if len(items) != len(args):
        raise BadInput(f"{label} takes {len(args)} values, not {len(items)}")
    return tuple(convert(item, kind, label) for item, kind in zip(items, args, strict=True))


def parse_items(text: str, label: str, nested: bool = False) -> list[Any]:
    """`1,2`, `1 2`, `1,2;3,4`, `1,2 3,4` or `[[1,2],[3,4]]` as nested lists of words or numbers."""
    text = re.sub(r"\s*([,;])\s*", r"\1", text.strip())
    if nested and "," in text and not text.startswith(("[", "(")):
        text = ";".join(text.split())
    if text.startswith(("[", "(")):
        try:
            with warnings.catch_warnings(action="ignore"):
                found = ast.literal_eval(text)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            raise BadInput(
                f"{label} could not be read from {_shown(text)}; write it like 1,2 or 1,2;3,4"
            ) from None
        return list(found) if isinstance(found, list | tuple) else [found]
    if ";" in text:
        return [parse_items(part, label) for part in text.split(";") if part.strip()]
    return [word for word in text.replace(",", " ").split() if word]


def _boolean(value: Any, label: str) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "yes", "on", "1"):
        return True
    if isinstance(value, str) and value.lower() in ("false", "no", "off", "0"):
        return False
    raise BadInput(f"{label} is true or false, not {_shown(value)}")


def _real(value: Any, label: str) -> float:
    if isinstance(value, bool) or (
        not isinstance(value, int | float | str) and not hasattr(value, "__float__")
    ):
        raise BadInput(f"{label} takes a number, not {_shown(value)}")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise BadInput(f"{label} takes a number, not {_shown(value)}") from None
    if not math.isfinite(number):
        raise BadInput(f"{label} must be finite, not {_shown(value)}")
    return number


def _integer(value: Any, label: str) -> int:
    if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]{1,4000}", value.strip()):
        number = int(value.strip())  # which strips more characters than int() does
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    else:
        try:
            real = _real(value, label)
        except BadInput:
            raise BadInput(f"{label} takes a whole number, not {_shown(value)}") from None
        if real != int(real):
            raise BadInput(f"{label} takes a whole number, not {_shown(value)}")
        number = int(real)
    if abs(number) >= 2**63:  # what an array can hold
        raise BadInput(f"{label} is too large: {_shown(value)}")
    return number


def _shown(value: Any) -> str:
    """A value as an error quotes it: on one line, and not longer than the rest of it."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # Python refuses to write out integers of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= 60 else text[:57] + "..."


def plain(value: Any) -> Any:
    """The value as JSON sees it."""
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    return value


def plain_all(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: plain(value) for name, value in values.items()}


def as_text(value: Any) -> str:
    """The value as the command line reads it back."""
    return " ".join(as_words(value))


def as_words(value: Any) -> list[str]:
    """The words of the value on a command line."""
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return [word for item in value for word in as_words(item)]
    if isinstance(value, tuple):
        if any(isinstance(v, str) and not re.fullmatch(r"[\w.+-]+", v) for v in value):
            return [str(list(value))]
        return [",".join(word for v in value for word in as_words(v))]
    if isinstance(value, bool):
        return ["true" if value else "false"]
    return [repr(value) if isinstance(value, float) else str(value)]
