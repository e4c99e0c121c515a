"""Whether a study's settings are declared as settings can be, before anybody gives them values."""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any, Literal

from saltus.core import settings
from saltus.core.errors import BadInput

PLAIN = (int, float, bool, str, type(None))


def check(cls: Any) -> None:
    """One line on the first setting that has a type, a default or a preset it cannot have."""
    for name, hint in settings.hints(cls).items():
        if not _possible(hint):
            said = getattr(hint, "__name__", str(hint))
            raise BadInput(f"{cls.__name__}.{name} is declared as {said}; a setting is {settings.KINDS}")
        default = settings.default_of(cls, name)
        if default is not dataclasses.MISSING and default != "":
            try:
                settings.convert(default, hint, name)
            except BadInput as error:
                raise BadInput(f"{cls.__name__}.{name} has a default it cannot have: {error}") from None
    for switch, table in getattr(cls, "presets", {}).items():
        for chosen, changes in table.items():
            settings.check_name(cls, switch, f"{cls.__name__}.presets:")
            for name in changes:
                settings.check_name(cls, name, f"{cls.__name__}.presets: {switch} {chosen}")


def _possible(hint: Any) -> bool:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return all(isinstance(a, PLAIN) for a in args)
    if origin is tuple:
        return all(_possible(a) for a in args if a is not Ellipsis)
    if origin in (typing.Union, types.UnionType):
        return all(_possible(a) for a in args)
    return hint in PLAIN
