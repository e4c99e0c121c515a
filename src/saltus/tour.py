"""`saltus tour`: one striking figure and its claims for each finished paper, then a page to open."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from saltus import python
from saltus.core import store
from saltus.core import study as registry
from saltus.core.progress import clock, console, for_stderr

# The stops of the tour, a few per finished paper: what a newcomer should see first. Where a study's own
# settings take longer than a tour may, fewer runs do.
STOPS: dict[str, dict[str, dict[str, Any]]] = {
    "sim": {"sim/fig2a": {}, "sim/fig5": {}},
    "rank": {"rank/fig2": {"teachers": 8}},
    "features": {"features/fig2": {}},
}


def take(out: str | Path = store.DEFAULT) -> int:
    """Run the stops, print their claims, write the page; **returns** the exit status."""
    show = for_stderr()
    began = time.monotonic()
    stops = [python.find([id])[0].cls(**given) for stops in STOPS.values() for id, given in stops.items()]
    show.say(
        f"A tour of {len(STOPS)} papers in {len(stops)} studies; theory and experiment on the same axes."
    )

    from saltus.report.page import write_page
    from saltus.report.turns import in_turn

    def before(number: int) -> None:
        info = stops[number].info
        show.say(f"[{number + 1}/{len(stops)}] {info.id}  {info.title}")

    terminal = console()
    outcomes = []
    for turn in in_turn(stops, out, show=show, before=before):
        outcomes.append(turn.outcome)
        terminal.print(turn.outcome)
    page = write_page(outcomes, store.Store(out).root / "tour.html", "saltus: a tour")
    odd = sum(not o.as_documented for o in outcomes)
    works = ", ".join(registry.papers()[name].title for name in STOPS if name in registry.papers())
    show.say(f"{works}: done in {clock(time.monotonic() - began)}. Open this file in a browser:")
    sys.stderr.flush()
    print(page.resolve())
    return 1 if odd else 0
