"""The command line: a contract other programs rely on."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Sequence
from types import FrameType

from saltus.core.errors import BadInput, nearest

USAGE = """\
saltus: a laboratory for how neural networks learn

  saltus list [--json]                   the studies there are
  saltus show ID                         what a study reproduces, its settings, cost and claims
  saltus run ID... [--option value]      run studies (an id, a paper, or the path of your own file)
  saltus run --all                       run every study
  saltus report [RECORD|ID...]           one HTML file for all records of a store, or for some
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
Exit status: 0 every claim came out as documented, 1 some claim did not, 2 bad input, 3 a fault of saltus."""

COMMANDS = ("list", "show", "run", "report", "tour", "data", "help")


def main(words: Sequence[str] | None = None) -> int:
    """Carry out one command line; **returns** the exit status."""
    words = list(sys.argv[1:] if words is None else words)
    debug = "--debug" in words
    words = [w for w in words if w != "--debug"]
    with contextlib.suppress(ValueError):  # not the main thread: the caller handles signals
        signal.signal(signal.SIGTERM, _interrupt)
    try:
        status = _dispatch(words)
        sys.stdout.flush()
        return status
    except BadInput as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        _complain("interrupted; the same command goes on from the parts that were finished")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        return _complain("not enough memory for these settings; use fewer runs or smaller sizes")
    except Exception as error:
        if debug:
            traceback.print_exc()
            return 3
        return _fault(error, words)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _complain(text: str) -> int:
    print("saltus: " + " ".join(text.split()), file=sys.stderr)
    return 2


def _fault(error: Exception, words: list[str]) -> int:
    """A mistake of ours, or a limit of the machine: one line, with the details in a file."""
    text = str(error)
    if "RESOURCE_EXHAUSTED" in text or "Out of memory" in text:
        return _complain(
            "not enough memory on the device for these settings; use fewer runs or smaller sizes"
        )
    with tempfile.NamedTemporaryFile("w", prefix="saltus-", suffix=".log", delete=False) as log:
        log.write("saltus " + " ".join(words) + "\n")
        traceback.print_exc(file=log)
    _complain(f"internal fault, {type(error).__name__}; please report it with {log.name}")
    return 3


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
    from saltus import commands

    return getattr(commands, f"do_{command}")(rest)


if __name__ == "__main__":
    sys.exit(main())
