"""What each command does, once its words are understood."""

from __future__ import annotations

import json
from pathlib import Path

from saltus import python
from saltus.arguments import flag, parse, value
from saltus.core import describe, store
from saltus.core import study as registry
from saltus.core.errors import BadInput
from saltus.core.progress import Silent, for_stderr
from saltus.running import do_run as do_run


def do_list(words: list[str]) -> int:
    args = parse("list", words, {"json": flag, "help": flag})
    found = python.find(args.names) if args.names else [*python.studies().values()]
    if args.on("json"):
        for info in found:
            row = {"id": info.id, "title": info.title, "figure": info.figure, "cites": info.cites}
            print(json.dumps({**row, "cost": info.cost}))
        return 0
    if not found:
        raise BadInput("there are no studies: this installation of saltus is incomplete")
    known = registry.papers()
    width, shows = (max(map(len, words)) for words in zip(*((s.id, s.shows) for s in found), strict=True))
    for paper in dict.fromkeys(s.paper for s in found):
        if paper in known:
            print(f"{known[paper].title} ({known[paper].authors.split(',')[0]} et al., {known[paper].year})")
        for info in found:
            if info.paper == paper:
                print(f"  {info.id:<{width}}  {info.shows:<{shows}}  {info.title}")
    return 0


def do_show(words: list[str]) -> int:
    args = parse("show", words, {"help": flag})
    if not args.names:
        raise BadInput("show needs a study, like: saltus show sim/fig2a")
    print("\n\n".join(describe.describe(info) for info in python.find(args.names)))
    return 0


def do_report(words: list[str]) -> int:
    args = parse("report", words, {"out": value, "to": value, "help": flag, "quiet": flag})
    from saltus.report.page import write_page

    shelf = store.Store(args.get("out") or store.DEFAULT)
    paths = _record_paths(args.names, shelf)
    if not paths:
        raise BadInput(f"no records in {shelf.root}; run a study first, like: saltus run sim/fig2a")
    show = Silent() if args.on("quiet") else for_stderr()
    outcomes, skipped = [], []
    for path in paths:
        try:
            outcome = python.reopen(path)
            len(outcome.claims)  # made here, where what cannot be shown can still be left out
            outcomes.append(outcome)
        except BadInput as error:
            if args.names:
                raise
            skipped.append(str(error))
    for line in skipped:
        show.say(f"left out: {line}")
    if not outcomes:
        raise BadInput(f"no readable records in {shelf.root}")
    outcomes.sort(key=lambda o: registry.natural(o.info.id))
    page = write_page(outcomes, args.get("to") or shelf.root / "report.html")
    print(page.resolve())
    return 0


def _record_paths(names: list[str], shelf: store.Store) -> list[Path]:
    if not names:
        return shelf.records()
    paths: list[Path] = []
    for name in names:
        if Path(name).is_dir() and (below := _records_below(Path(name))):
            paths += below
            continue
        try:
            wanted = {info.id for info in python.find([name])}
        except BadInput:
            if not Path(name).exists():
                raise
            paths.append(Path(name))  # told there why it is no record
            continue
        here = [p for p in shelf.records() if str(p.parent.relative_to(shelf.root)) in wanted]
        if not here:
            raise BadInput(f"no record of {name} in {shelf.root}; saltus run {name} makes one")
        paths += here
    return paths


def _records_below(folder: Path) -> list[Path]:
    """A record by itself, or all that a store, or a folder of one, holds."""
    return [folder] if (folder / store.MANIFEST).exists() else store.Store(folder).records()


def do_tour(words: list[str]) -> int:
    args = parse("tour", words, {"out": value, "help": flag})
    if args.names:
        raise BadInput("tour takes no study; saltus run does")
    from saltus.tour import take

    return take(args.get("out") or store.DEFAULT)


def do_data(words: list[str]) -> int:
    args = parse("data", words, {"help": flag, "json": flag})
    from saltus.data import shelf

    return shelf.command(args.names, as_json=args.on("json"))
