"""Several studies one after another: while one computes, the one before is judged and drawn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from saltus.core import store
from saltus.core.progress import Silent
from saltus.report.outcome import Outcome, run
from saltus.report.views import write_views

__all__ = ["Turn", "in_turn"]


@dataclass(frozen=True)
class Turn:
    """One study done: its outcome, the files beside its record, and where the time went."""

    outcome: Outcome
    views: list[Path]
    seconds: dict[str, float]


def in_turn(
    studies: Iterable[Any],
    out: str | Path = store.DEFAULT,
    *,
    again: bool = False,
    draw: bool = True,
    show: Silent | None = None,
    before: Callable[[int], None] = lambda number: None,
) -> Iterator[Turn]:
    """Every study's outcome in order, the last but one while the last is computed.

    Training keeps all cores busy, and claims and drawings one. `before(number)` is called as a study, counted
    from 0, begins.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="saltus-draw") as pool:
        waiting: Future[Turn] | None = None
        for number, study in enumerate(studies):
            before(number)
            began = time.perf_counter()
            try:
                outcome = run(study, out, again=again, show=show)
            except Exception:
                if waiting is not None:
                    yield waiting.result()  # what is done is told, whatever became of the next
                raise
            except KeyboardInterrupt:
                if waiting is not None and waiting.done():
                    yield waiting.result()
                raise
            seconds = time.perf_counter() - began
            if waiting is not None:
                yield waiting.result()
            waiting = pool.submit(partial(_finish, outcome, seconds, draw))
        if waiting is not None:
            yield waiting.result()


def _finish(outcome: Outcome, compute: float, draw: bool) -> Turn:
    began = time.perf_counter()
    len(outcome.claims)  # made here, and kept
    judged = time.perf_counter()
    views = write_views(outcome, draw=draw)
    drawn = time.perf_counter()
    return Turn(outcome, views, {"compute": compute, "law": judged - began, "draw": drawn - judged})
