"""A study in words: what it reproduces, its settings, its cost, the claims it will check."""

from __future__ import annotations

import dataclasses
import inspect
import textwrap
import typing
from typing import Any

from saltus.core import settings
from saltus.core.study import Info, papers


def describe(info: Info) -> str:
    """Everything known of a study without running it, as plain text."""
    rest = (inspect.getdoc(info.cls) or "").partition("\n")[2]
    lines = [_fill(info.title, f"{info.id}  ", 2)]
    for paragraph in rest.strip().split("\n\n") if rest.strip() else []:
        # Lines set apart by their author stay as they are.
        apart = any(line.startswith((" ", "- ")) for line in paragraph.splitlines())
        lines += ["", textwrap.indent(paragraph, "  ") if apart else _fill(paragraph, "  ", 2)]
    lines += ["", *facts] if (facts := _facts(info)) else []
    lines += ["", "  Settings", *option_lines(info.cls)]
    lines += _preset_lines(info.cls)
    if info.checks:
        lines += ["", "  Claims it will check"]
        lines += [_fill(c, "    - ", 6) for c in info.checks]
    return "\n".join(lines)


def _facts(info: Info) -> list[str]:
    work = next((p for p in papers().values() if p.key == info.cites), None)
    said = (
        ("Reproduces:", info.figure and f"{info.shows} of {info.cites or 'the paper'}"),
        ("Citation:", work and f"{work.authors} ({work.year}). {work.title}. {work.venue}."),
        ("Cost:", info.cost),
    )
    return [_fill(words, f"  {label:<12}", 14) for label, words in said if words]


def _fill(text: str, first: str, indent: int) -> str:
    return textwrap.fill(
        text, 100, initial_indent=first, subsequent_indent=" " * indent, break_on_hyphens=False
    )


def option_lines(cls: type) -> list[str]:
    """One block a setting: name, default, meaning, bounds."""
    lines = []
    for field in dataclasses.fields(cls):
        if not field.init:
            continue
        label = f"--{field.name.replace('_', '-')} {_default(field)}"
        words = " ".join(filter(None, (field.metadata.get("help", ""), _bounds(cls, field))))
        if len(label) < 28:
            lines.append(_fill(words, f"    {label:<28}", 32))
        else:
            lines += [
                f"    {label}",
                _fill(words, " " * 32, 32),
            ]
    return lines


def _default(field: dataclasses.Field[Any]) -> str:
    return "(needed)" if field.default is dataclasses.MISSING else settings.as_text(field.default)


def _bounds(cls: type, field: dataclasses.Field[Any]) -> str:
    meta = field.metadata
    if meta.get("choices"):
        return "(" + " | ".join(map(str, meta["choices"])) + ")"
    bounds = [
        f"{sign} {meta[name]:.10g}"
        for name, sign in (("above", ">"), ("low", "≥"), ("high", "≤"))
        if meta.get(name) is not None
    ]
    kind = _kind(settings.hints(cls)[field.name])
    return f"({', '.join([kind, *bounds])})"


def _kind(hint: Any) -> str:
    if typing.get_origin(hint) is tuple:
        inner = typing.get_args(hint)[0]
        return "tuples, like 1,2 3,4" if typing.get_origin(inner) is tuple else "list, like 1,2"
    names = {int: "whole number", float: "number", str: "word", bool: "true or false"}
    if hint in names:
        return names[hint]
    inner = [names[a] for a in typing.get_args(hint) if a in names]
    return f"{inner[0]} or none" if inner else "value"


def _preset_lines(cls: type) -> list[str]:
    lines: list[str] = []
    for switch, table in getattr(cls, "presets", {}).items():
        for value, changes in table.items():
            if changes:
                words = " ".join(f"--{n.replace('_', '-')} {settings.as_text(v)}" for n, v in changes.items())
                lines.append(_fill(words, f"    --{switch} {value} stands for: ", 8))
    return ["", "  Presets", *lines] if lines else []
