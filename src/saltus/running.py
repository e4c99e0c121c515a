"""`saltus run`: studies with their settings, from a line and a file, one after another."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from typing import TYPE_CHECKING, Any, Literal, TextIO

from saltus import python
from saltus.arguments import Arguments, flag, parse, value
from saltus.core import describe, settings, store
from saltus.core.errors import BadInput
from saltus.core.progress import Silent, clock, console, for_stderr
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


LONGEST = 1 << 20  # bytes of a file of settings


def do_run(words: list[str]) -> int:
    args = parse("run", words, RUN, open_ended=True)
    if args.on("help"):
        for info in _chosen(args):
            print(f"{info.id}  {info.title}", *describe.option_lines(info.cls), sep="\n")
        return 0
    out = sys.stdout
    # With --json nothing but its objects reaches stdout, whatever a study of anybody's prints.
    with contextlib.redirect_stdout(sys.stderr if args.on("json") else out):
        outcomes = _run_all(_build(_chosen(args), args), args, out)
        return 0 if all(o.as_documented for o in outcomes) else 1


def _chosen(args: Arguments) -> list[Info]:
    if args.on("all"):
        if args.names:
            raise BadInput("--all runs every study; leave out the names, or leave out --all")
        return [*python.studies().values()]
    if not args.names:
        raise BadInput("run needs a study, a paper or --all, like: saltus run sim/fig2a")
    return python.find(args.names)


def _build(chosen: list[Info], args: Arguments) -> list[Any]:
    """Every study with its settings, all checked before the first one runs."""
    file = args.get("settings")
    held = _from_file(file) if file else {}
    for name in held:
        if name.replace("_", "-") in RUN:
            raise BadInput(f"{file}: {name} is an option of the command line and not a setting")
    _check_names(held, chosen, [], f"{file}: ", "setting ")
    _check_names(args.extra, chosen, [n.replace("-", "_") for n in RUN], "", "option --")
    given = {**held, **args.extra}
    built = []
    for info in chosen:
        mine = {n: v for n, v in given.items() if n in settings.hints(info.cls)}
        if args.extra and len(chosen) > 1 and not args.on("quiet"):
            for name in sorted(set(args.extra) - set(mine)):
                print(f"  {info.id} has no {name.replace('_', '-')}: left as it is", file=sys.stderr)
        built.append(info.cls(**mine))
    return built


def _check_names(given: dict[str, Any], chosen: list[Info], more: list[str], where: str, what: str) -> None:
    """Refuse a name that no study of those chosen has, with the nearest one."""
    known = dict.fromkeys(n for info in chosen for n in settings.hints(info.cls))
    for name in given:
        if name in known:
            continue
        close = settings.nearest(name, [*known, *more])
        who = f"{chosen[0].id} has no" if len(chosen) == 1 else "none of these studies has"
        if not close and len(chosen) == 1:
            close = f"; its {'options' if more else 'settings'} are {', '.join([*known, *more])}"
        article = "" if len(chosen) == 1 else "an " if what.startswith("o") else "a "
        raise BadInput(f"{where}{who} {article}{what}{name.replace('_', '-')}{close.replace('_', '-')}")


def _from_file(name: str) -> dict[str, Any]:
    import tomllib

    try:
        with open(name, "rb") as file:
            content = file.read(LONGEST + 1)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise BadInput(f"cannot read {name}: {said}; --settings takes a TOML file") from None
    if len(content) > LONGEST:
        raise BadInput(f"{name} is too long for a file of settings, which are `name = value` lines")
    try:
        held = tomllib.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, UnicodeDecodeError, endless digits
        raise BadInput(f"{name} is not TOML: {error}") from None
    found: dict[str, Any] = {}
    for key, value_ in held.items():
        if isinstance(value_, dict):
            raise BadInput(f"{name}: {key!r} is a table; settings are plain `name = value` lines")
        if key.replace("-", "_") in found:
            raise BadInput(f"{name}: {key!r} is given twice, with - and with _")
        found[key.replace("-", "_")] = value_
    return found


def _run_all(built: list[Any], args: Arguments, out: TextIO) -> list[Outcome]:
    from saltus.report.turns import in_turn

    show = Silent() if args.on("quiet") else for_stderr()
    outcomes = []
    began = time.monotonic()

    def before(number: int) -> None:
        info: Info = type(built[number]).info
        count = f"[{number + 1}/{len(built)}] " if len(built) > 1 else ""
        show.say(f"{count}{info.id}  {info.title}")

    draw = not args.on("no-figure")
    place = args.get("out") or store.DEFAULT
    for turn in in_turn(built, place, again=args.on("again"), draw=draw, show=show, before=before):
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
            print(json.dumps(outcome.as_json(), allow_nan=False), file=out, flush=True)
        else:
            console().print(outcome)
    if len(built) > 1:
        odd = [o.info.id for o in outcomes if not o.as_documented]
        said = f"; other than documented: {', '.join(odd)}" if odd else "; every claim as documented"
        show.say(f"{len(built)} studies in {clock(time.monotonic() - began)}{said}")
    return outcomes
