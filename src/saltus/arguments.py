"""Words of a command line: names, the command's own options, and a study's settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from saltus.core.errors import BadInput, nearest

flag: Literal["flag"] = "flag"
value: Literal["value"] = "value"
DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
_NUMBER = re.compile(r"^-[\d.]")


@dataclass
class Arguments:
    """A command line taken apart."""

    names: list[str] = field(default_factory=list)
    own: dict[str, str | bool] = field(default_factory=dict)
    extra: dict[str, str | list[str]] = field(default_factory=dict)

    def on(self, name: str) -> bool:
        return bool(self.own.get(name))

    def get(self, name: str) -> str | None:
        found = self.own.get(name)
        return found if isinstance(found, str) else None


def _is_value(word: str, *, first: bool) -> bool:
    """Whether a word belongs to the option before it: not an option, and not the name of another study."""
    if word.startswith("-") and not _NUMBER.match(word):
        return False
    return first or not ("/" in word or word.endswith(".py"))


def parse(
    command: str,
    words: list[str],
    options: Mapping[str, Literal["flag", "value"]],
    *,
    open_ended: bool = False,
) -> Arguments:
    """Take a command line apart.

    **Arguments:** `options`: the command's own; `open_ended`: any other `--name value...` is a study's
    setting, whose several words (`--mu 1,2 3,4`) are kept apart for the setting to read.
    """
    if any("\0" in word for word in words):
        raise BadInput("the command line holds a null character")
    out = Arguments()
    i = 0
    while i < len(words):
        word = "--help" if words[i] == "-h" else words[i]
        i += 1
        if not word.startswith("--") or _NUMBER.match(word):
            if word.startswith("-") and len(word) > 1 and not _NUMBER.match(word):
                raise BadInput(f"no option {word}; options are written --name, see saltus --help")
            if word.startswith(tuple(DASHES)):  # as word processors and web pages make of two hyphens
                raise BadInput(
                    f"no option {word}; options begin with two plain hyphens: --{word.lstrip(DASHES + '-')}"
                )
            out.names.append(word)
            continue
        name, equals, attached = word[2:].partition("=")
        kind = options.get(name)
        if kind == flag:
            if equals:
                raise BadInput(f"--{name} takes no value")
            out.own[name] = True
            continue
        if kind is None and not open_ended:
            close = nearest(name, options) or f"; its options are {', '.join('--' + o for o in options)}"
            raise BadInput(f"{command} has no option --{name}{close}")
        taken = [attached] if equals else []
        while not equals and i < len(words) and _is_value(words[i], first=not taken):
            if kind == value and taken:
                break
            taken.append(words[i])
            i += 1
        if kind == value:
            if not taken or not taken[0]:
                raise BadInput(f"--{name} needs a value")
            if name in out.own:
                raise BadInput(f"--{name} is given twice")
            out.own[name] = taken[0]
            continue
        key = name.replace("-", "_")
        if not key:
            raise BadInput("-- alone is not an option")
        if key in out.extra:
            raise BadInput(f"--{name} is given twice; give several values after one --{name}")
        out.extra[key] = taken if len(taken) > 1 else "".join(taken)
    return out
