"""Ctrl-C and SIGTERM: stop at once where Python can, and soon where it is inside compiled code."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

STATUS = 130
SAID = "interrupted; finished parts are kept, and the same command goes on from there"
# How long an interrupted run may take to reach Python again before the process leaves as it is. Leaving is
# safe at any moment: the store only ever changes by whole renames.
GRACE = 2.0


class Stop:
    """Whether the user has asked to stop."""

    def __init__(self) -> None:
        self.requested = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if not self.requested:  # a second Ctrl-C must not break the tidying up of the first
            self.requested = True
            raise KeyboardInterrupt


@contextlib.contextmanager
def stoppable() -> Iterator[Stop]:
    """Both signals raise one KeyboardInterrupt in the main thread; the process ends within `GRACE` of it."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread may handle signals: the caller does
        return
    # A process started with SIGINT ignored (nohup, a job in the background) keeps ignoring it.
    numbers = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) is not signal.SIG_IGN]
    listen, wake = os.pipe()
    os.set_blocking(wake, False)
    former: dict[int, Any] = {n: signal.signal(n, stop) for n in numbers}
    former_fd = signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(listen, set(numbers), over.wait), daemon=True)
    watcher.start()
    try:
        yield stop
    finally:
        over.set()
        signal.set_wakeup_fd(former_fd)
        for number, handler in former.items():
            signal.signal(number, handler)
        os.close(wake)


def _watch(listen: int, numbers: set[int], over: Callable[[float], bool]) -> None:
    """The interpreter hears a signal only between its own instructions; this thread hears it at once."""
    with open(listen, "rb", buffering=0) as heard:
        while byte := heard.read(1):
            if byte[0] in numbers and not over(GRACE):
                if sys.stderr.isatty():
                    os.write(2, b"\x1b[?25h\r\x1b[K")  # a progress bar hides the cursor
                os.write(2, f"saltus: {SAID}\n".encode())
                os._exit(STATUS)
