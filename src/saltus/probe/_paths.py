"""Finding parameters by name: globs over the dotted path of a pytree."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from saltus._jax import jax
from saltus.core.errors import BadInput, nearest


def paths(params: Any) -> dict[str, Any]:
    """Every parameter under its dotted path, e.g. `layers.0.weight`; a bare array is called `params`."""
    leaves, _ = jax.tree.flatten_with_path(params)
    return {".".join(_name(key) for key in path) or "params": leaf for path, leaf in leaves}


def find(params: Any, pattern: str) -> dict[str, Any]:
    """The parameters whose path matches: `*` stands for one part or some of it, `**` for any number."""
    known = paths(params)
    found = {name: leaf for name, leaf in known.items() if _expression(pattern).fullmatch(name)}
    if not found:
        some = ", ".join(list(known)[:6]) + (", ..." if len(known) > 6 else "")
        raise BadInput(f"no parameter matches {pattern!r}{nearest(pattern, known)} (there are: {some})")
    return found


def is_glob(pattern: str) -> bool:
    """Whether a pattern may match more than one parameter."""
    return any(c in pattern for c in "*?")


@lru_cache
def _expression(pattern: str) -> re.Pattern[str]:
    marks = {"**": ".*", "*": "[^.]*", "?": "[^.]"}
    parts = re.split(r"(\*\*|\*|\?)", pattern)
    return re.compile("".join(marks.get(part, re.escape(part)) for part in parts))


def _name(key: Any) -> str:
    for attribute in ("key", "idx", "name"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)
