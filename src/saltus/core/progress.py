"""Progress on stderr: a live bar on a terminal, a line now and then elsewhere, nothing when asked."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

NARROW = 40
Tick = Callable[[int, int], None]


class Silent:
    """Says nothing; what Python callers get unless they ask."""

    def say(self, text: str) -> None:
        pass

    @contextlib.contextmanager
    def bar(self, label: str) -> Iterator[Tick]:
        yield lambda done, total: None


class Lines(Silent):
    """For logs: a line at the start of long work and at most one every ten seconds."""

    def __init__(self, every: float = 10.0) -> None:
        self.every = every

    def say(self, text: str) -> None:
        with contextlib.suppress(OSError):  # a full disk, a reader gone: no reason to stop computing
            print(text, file=sys.stderr, flush=True)

    @contextlib.contextmanager
    def bar(self, label: str) -> Iterator[Tick]:
        start = last = time.monotonic()

        def tick(done: int, total: int) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= self.every and done:
                last = now
                left = (now - start) * (total - done) / done
                self.say(f"  {label}: {done}/{total}, {clock(now - start)} so far, about {clock(left)} left")

        yield tick


class Live(Silent):
    """For a terminal: a bar with elapsed and remaining time."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        self.console = console(stderr=True)
        self._columns: tuple[Any, ...] = (
            TextColumn("  {task.description}", markup=False),
            BarColumn(bar_width=28),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        self._make = Progress

    def say(self, text: str) -> None:
        self.console.print(text, highlight=False, markup=False)

    @contextlib.contextmanager
    def bar(self, label: str) -> Iterator[Tick]:
        with self._make(*self._columns, console=self.console, transient=True) as shown:
            task = shown.add_task(label, total=None)
            yield lambda done, total: shown.update(task, completed=done, total=total)


def console(*, stderr: bool = False) -> Any:
    """A terminal; one that is too narrow for words, or says it has no width at all, folds them itself."""
    from rich.console import Console

    made = Console(stderr=stderr)
    if made.width < NARROW:
        made.width = NARROW
    return made


def for_stderr() -> Silent:
    """The display that suits where stderr goes."""
    return Live() if sys.stderr.isatty() else Lines()


def clock(seconds: float) -> str:
    """`7 s`, `2 min 05 s`, `1 h 10 min`."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min {int(seconds % 60):02d} s"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60):02d} min"
