"""What each command does, once its words are understood."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from saltus import python
from saltus.arguments import Arguments, flag, parse, value
from saltus.core import describe, settings, store
from saltus.core import study as registry
from saltus.core.errors import BadInput
from saltus.core.progress import Silent, clock, for_stderr
from saltus.core.study import Info

if TYPE_CHECKING:
    from saltus.report.outcome import Outcome

RUN: dict[str, Literal["flag", "value"]] = {
    "json": flag,
    "all": flag,
    "again": flag,
    "no-figure": flag,
    "quiet": flag,
    "help": flag,
    "out": value,
    "settings": value,
}


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


def do_run(words: list[str]) -> int:
    args = parse("run", words, RUN, open_ended=True)
    if args.on("all"):
        if args.names:
            raise BadInput("--all runs every study; leave out the names, or leave out --all")
        chosen = [*python.studies().values()]
    elif args.names:
        chosen = python.find(args.names)
    else:
        raise BadInput("run needs a study, a paper or --all, like: saltus run sim/fig2a")
    if args.on("help"):
        for info in chosen:
            print(f"{info.id}  {info.title}", *describe.option_lines(info.cls), sep="\n")
        return 0
    built = _build(chosen, args)
    outcomes = _run_all(built, args)
    return 0 if all(o.as_documented for o in outcomes) else 1


def _build(chosen: list[Info], args: Arguments) -> list[Any]:
    """Every study with its settings, all checked before the first one runs."""
    given = {**_from_file(args.get("settings")), **args.extra}
    for name in given:
        if not any(name in settings.hints(info.cls) for info in chosen):
            where = chosen[0].id if len(chosen) == 1 else "none of these studies"
            if len(chosen) == 1:
                known = [*settings.hints(chosen[0].cls), *(n.replace("-", "_") for n in RUN)]
                close = settings.nearest(name, known).replace("_", "-")
                close = close or "; its options are " + ", ".join(n.replace("_", "-") for n in known)
                raise BadInput(f"{where} has no option --{name.replace('_', '-')}{close}")
            every = {
                *(n for info in chosen for n in settings.hints(info.cls)),
                *(n.replace("-", "_") for n in RUN),
            }
            close = settings.nearest(name, sorted(every)).replace("_", "-")
            raise BadInput(f"{where} has an option --{name.replace('_', '-')}{close}")
    built = []
    for info in chosen:
        mine = {n: v for n, v in given.items() if n in settings.hints(info.cls)}
        if args.extra and len(chosen) > 1 and not args.on("quiet"):
            for name in sorted(set(args.extra) - set(mine)):
                print(f"  {info.id} has no {name.replace('_', '-')}: left as it is", file=sys.stderr)
        built.append(info.cls(**mine))
    return built


def _from_file(name: str | None) -> dict[str, Any]:
    if name is None:
        return {}
    import tomllib

    try:
        held = tomllib.loads(Path(name).read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"cannot read {name}: {error.strerror}; --settings takes a TOML file") from None
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, UnicodeDecodeError, endless digits
        raise BadInput(f"{name} is not TOML: {error}") from None
    for key, held_value in held.items():
        if isinstance(held_value, dict):
            raise BadInput(f"{name}: {key!r} is a table; settings are plain `name = value` lines")
    return {key.replace("-", "_"): held_value for key, held_value in held.items()}


def _run_all(built: list[Any], args: Arguments) -> list[Outcome]:
    from saltus.report.turns import in_turn

    show = Silent() if args.on("quiet") else for_stderr()
    outcomes = []
    began = time.monotonic()

    def before(number: int) -> None:
        info: Info = type(built[number]).info
        count = f"[{number + 1}/{len(built)}] " if len(built) > 1 else ""
        show.say(f"{count}{info.id}  {info.title}")

    draw = not args.on("no-figure")
    out = args.get("out") or store.DEFAULT
    for turn in in_turn(built, out, again=args.on("again"), draw=draw, show=show, before=before):
        outcome, views = turn.outcome, turn.views
        outcomes.append(outcome)
        how = (
            f"computed in {clock(outcome.record.manifest['seconds'])}"
            if outcome.computed
            else "already there"
        )
        which = f"{outcome.info.id} " if len(built) > 1 else ""
        show.say(f"  {which}{how}: {views[0]}")
        if draw and outcome.draws and len(views) == 1:
            show.say("  not drawn: runs left the numbers too far for a figure")
        if args.on("json"):
            print(json.dumps(outcome.as_json(), allow_nan=False), flush=True)
        else:
            _print(outcome)
    if len(built) > 1:
        odd = [o.info.id for o in outcomes if not o.as_documented]
        said = f"; other than documented: {', '.join(odd)}" if odd else "; every claim as documented"
        show.say(f"{len(built)} studies in {clock(time.monotonic() - began)}{said}")
    return outcomes


def _print(outcome: Outcome) -> None:
    from rich.console import Console

    Console().print(outcome)


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
        if Path(name).is_dir() and (Path(name) / store.MANIFEST).exists():
            paths.append(Path(name))
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
