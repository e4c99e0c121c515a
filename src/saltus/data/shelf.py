"""`saltus data list` and `saltus data fetch NAME...`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from saltus.core.errors import BadInput, nearest
from saltus.core.progress import for_stderr
from saltus.data import _keep
from saltus.data._catalogue import ENTRIES, Entry, find

_ACTIONS = ("list", "fetch")


def command(names: list[str], as_json: bool) -> int:
    """Carry out `saltus data NAMES...`; **returns** the exit status.

    **Arguments:** `names`: `list`, or `fetch` and the names of data sets; `as_json`: one object per line.
    """
    if not names:
        raise BadInput("data needs list or fetch, like: saltus data list")
    action, wanted = names[0], names[1:]
    if action not in _ACTIONS:
        hint = nearest(action, _ACTIONS) or "; there are list and fetch"
        if action in ENTRIES:
            hint = f"; did you mean saltus data fetch {action}?"
        raise BadInput(f"data has no action {action!r}{hint}")
    if action == "list":
        if wanted:
            raise BadInput("data list takes no name; saltus data fetch NAME gets a data set")
        _list(as_json)
    else:
        _fetch(wanted, as_json)
    return 0


def _list(as_json: bool) -> None:
    width = max(len(name) for name in ENTRIES)
    for entry in ENTRIES.values():
        if as_json:
            print(json.dumps(_row(entry)))
        else:
            where = f"{entry.holds:<25}  {_where(entry):<23}"
            print(f"{entry.name:<{width}}  {where}  {entry.title} ({entry.cites})")
    if not as_json:
        print(f"\nsaltus data fetch NAME gets one; they are kept in {_keep.root()}")
        print(
            "what no registry has goes by hand into the folder of its name there; fetch says what and where"
        )


def _fetch(wanted: list[str], as_json: bool) -> None:
    if not wanted:
        raise BadInput(f"data fetch needs a name: {', '.join(ENTRIES)}")
    entries = [
        find(name) for name in dict.fromkeys(wanted)
    ]  # all names looked at before the first is fetched
    from saltus.data._obtain import get

    show = for_stderr()
    for entry in entries:
        held = get(entry, show)
        print(json.dumps(_row(entry)) if as_json else f"{held!r}\n  {_place(entry)}", flush=True)


def _row(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "title": entry.title,
        "kind": entry.kind,
        "holds": entry.holds,
        "bytes": entry.size,
        "cites": entry.cites,
        "licence": entry.licence,
        "sha256": entry.sha256,
        "packages": [f"{p.client} {p.name}" for p in entry.packages],
        "here": _here(entry),
        "path": str(_place(entry)),
        "by_hand": entry.by_hand,
    }


def _place(entry: Entry) -> Path:
    return _keep.folder_by_hand(entry) if entry.format == "folder" else _keep.kept(entry)


def _here(entry: Entry) -> bool:
    return (_place(entry) / "train" if entry.format == "folder" else _place(entry)).exists()


def _where(entry: Entry) -> str:
    if entry.shipped:
        return "ships with saltus"
    if _here(entry):
        return "in the cache" if entry.format != "folder" else "in its folder"
    if not entry.packages:
        return "to be put there by hand"
    first = entry.packages[0]
    return f"{first.size / 1e6:.0f} MB, through {first.client}"
