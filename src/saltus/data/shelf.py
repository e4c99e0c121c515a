"""`saltus data list` and `saltus data fetch NAME...`."""

from __future__ import annotations

import json
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
            where = f"{entry.holds:<22}  {_where(entry):<22}"
            print(f"{entry.name:<{width}}  {where}  {entry.title} ({entry.cites})")
    if not as_json:
        print(f"\nsaltus data fetch NAME gets one; they are kept in {_keep.root()}")


def _fetch(wanted: list[str], as_json: bool) -> None:
    if not wanted:
        raise BadInput(f"data fetch needs a name: {', '.join(ENTRIES)}")
    entries = [
        find(name) for name in dict.fromkeys(wanted)
    ]  # all names looked at before the first is fetched
    from saltus.data._obtain import obtain

    show = for_stderr()
    for entry in entries:
        held = entry.wrap(obtain(entry, show))
        print(json.dumps(_row(entry)) if as_json else f"{held!r}\n  {_keep.kept(entry)}", flush=True)


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
        "here": _keep.kept(entry).exists(),
        "path": str(_keep.kept(entry)),
    }


def _where(entry: Entry) -> str:
    if entry.format == "shipped":
        return "ships with saltus"
    if _keep.kept(entry).exists():
        return "in the cache"
    first = entry.packages[0]
    return f"{first.size / 1e6:.0f} MB, through {first.client}"
