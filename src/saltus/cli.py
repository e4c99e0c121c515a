"""The command line: a contract other programs rely on."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import traceback
import warnings
from collections.abc import Sequence

from saltus import signals, streams
from saltus.core.errors import BadInput, nearest

USAGE = """\
saltus: a laboratory for how neural networks learn

  saltus list [--json]                   the studies there are
  saltus show ID                         what a study reproduces, its settings, cost and claims
  saltus run ID... [--option value]      run studies (an id, a paper, or the path of your own file)
  saltus run --all                       run every study
  saltus report [FOLDER|ID...]           one HTML file for all records of a store, or for some
  saltus tour                            a guided sample: one striking figure per finished paper
  saltus data list | fetch NAME          data sets and where they come from
  saltus --version

Options of run
  --json            one JSON object per study on stdout
  --out DIR         the store for records (default: saltus-records)
  --again           compute even if the record exists
  --no-figure       do not draw
  --settings FILE   read settings from a TOML file; options given here win
  --quiet           no progress
  --debug           show the traceback when something breaks inside
  --help            with an ID: the study's own options
Exit status: 0 every claim came out as documented, 1 some claim did not, 2 bad input, 3 a fault of saltus,
130 interrupted (the same command goes on from the finished parts)."""

COMMANDS = ("list", "show", "run", "report", "tour", "data", "help")


def main(words: Sequence[str] | None = None) -> int:
    """Carry out one command line; **returns** the exit status."""
    own = words is None
    if own:
        streams.prepare()
    words = list(sys.argv[1:] if words is None else words)
    with signals.stoppable() as stop:
        status = _guarded(words, stop)
    if own and status == signals.STATUS:
        # Worker threads may be inside compiled code for minutes; an ordinary exit would wait for them.
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()
            sys.stdout.flush()
        os._exit(status)
    return status


def _guarded(words: list[str], stop: signals.Stop) -> int:
    debug = "--debug" in words
    words = [w for w in words if w != "--debug"]
    try:
        status = _dispatch(words)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt as error:
        with warnings.catch_warnings(action="ignore"):
            # What was being written goes without a word (a coroutine would say it was never awaited).
            traceback.clear_frames(error.__traceback__)
        return _complain(str(error) or signals.SAID, signals.STATUS)
    except BadInput as error:
        return _complain(str(error))
    except BrokenPipeError:
        streams.hush()  # the reader has seen enough, as in `saltus run --all --json | head -1`
        return 141
    except MemoryError:
        return _complain("not enough memory for these settings; use fewer runs or smaller sizes")
    except (Exception, SystemExit) as error:  # a study of anybody's may call sys.exit()
        if stop.requested:
            return _complain(signals.SAID, signals.STATUS)
        if debug:
            traceback.print_exc()
        return _broken(error, words)


def _complain(text: str, status: int = 2) -> int:
    with contextlib.suppress(OSError):
        print("saltus: " + " ".join(text.split()), file=sys.stderr, flush=True)
    return status


def _broken(error: BaseException, words: list[str]) -> int:
    """What was not foreseen, in one line: the machine's limits, a user's own study, or a mistake of ours."""
    text = str(error)
    if "RESOURCE_EXHAUSTED" in text or "Out of memory" in text:
        return _complain(
            "not enough memory on the device for these settings; use fewer runs or smaller sizes"
        )
    theirs = _in_own_study(error)
    if theirs:
        return _complain(
            f"{theirs}: {type(error).__name__}: {text[:300]}; add --debug to see the whole traceback"
        )
    if isinstance(error, OSError) and error.errno is not None:
        streams.hush()  # where it was stdout that could not be written to
        return _complain(": ".join(filter(None, (error.strerror, str(error.filename or "")))))
    return _complain(f"internal fault, {type(error).__name__}; please report it{_log(words)}", 3)


def _in_own_study(error: BaseException) -> str | None:
    """Where in a user's own file it happened, if it passed through one."""
    from saltus.core import study

    mine = os.path.dirname(os.path.abspath(__file__))
    files = {s.source for s in study.studies().values() if not s.source.startswith(mine)} - {""}
    found = [f for f in traceback.extract_tb(error.__traceback__) if f.filename in files]
    return f"{found[-1].filename}, line {found[-1].lineno}" if found else None


def _log(words: list[str]) -> str:
    """The details in a file, where one can be written."""
    try:
        with tempfile.NamedTemporaryFile("w", prefix="saltus-", suffix=".log", delete=False) as log:
            log.write("saltus " + " ".join(words).encode("ascii", "backslashreplace").decode() + "\n")
            traceback.print_exc(file=log)
    except OSError:
        return ", with what --debug prints"
    return f" with {log.name}"


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(USAGE)
        return 0
    if words[0] in ("-V", "--version"):
        from saltus import __version__

        print(f"saltus {__version__}")
        return 0
    command, rest = words[0], words[1:]
    if command not in COMMANDS:
        close = nearest(command, COMMANDS) or f"; commands are {', '.join(COMMANDS)}"
        raise BadInput(f"no command {command!r}{close}")
    if any(w in ("-h", "--help") for w in rest) and (command != "run" or all(w[0] == "-" for w in rest if w)):
        print(USAGE)
        return 0
    from saltus import commands

    return getattr(commands, f"do_{command}")(rest)


if __name__ == "__main__":
    sys.exit(main())
