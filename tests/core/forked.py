"""Command lines in processes of their own that start at once: forked from one that has all imported."""

from __future__ import annotations

import multiprocessing
import os
import sys
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

# The steps at which a process may be killed: everything that changes the disk, and every opening.
STEPS = ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.chmod", "shutil.rmtree")

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(
    ["xarray", "zarr", "saltus.commands", "saltus.report.views", "saltus.report.outcome"]
)


def start(words: list[str], said: Path, env: dict[str, str] | None = None, **options: Any) -> BaseProcess:
    """Begin a command line; what it prints goes to the file `said`."""
    process = _context.Process(target=_run, args=(words, str(said), env or {}), kwargs=options)
    process.start()
    return process


def run(words: list[str], said: Path, env: dict[str, str] | None = None, **options: Any) -> int | None:
    """Carry out a command line; **returns** its exit status (negative: the signal that ended it)."""
    process = start(words, said, env, **options)
    process.join(60)
    assert process.exitcode is not None
    return process.exitcode


def _run(
    words: list[str], said: str, env: dict[str, str], die_at: int = 0, under: str = "", count: str = ""
) -> None:
    os.environ.update(env)
    handle = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    from saltus import cli

    if under:
        _watch(die_at, under, count)
    sys.argv = ["saltus", *words]
    status = cli.main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _watch(die_at: int, under: str, count: str) -> None:
    """Die by kill -9 at the `die_at`-th step below the folder `under`; or write how many there were."""
    seen = 0

    def hook(event: str, args: tuple[Any, ...]) -> None:
        nonlocal seen
        if event in STEPS and args and str(args[0]).startswith(under):
            seen += 1
            if seen == die_at:
                os.kill(os.getpid(), 9)

    sys.addaudithook(hook)
    if count:
        real = os._exit

        def leave(status: int) -> None:
            Path(count).write_text(str(seen))
            real(status)

        os._exit = leave  # type: ignore[assignment]
