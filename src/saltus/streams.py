"""Standard streams that never break a run: closed ones, full ones, terminals without Unicode."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys
import unicodedata

PLAIN = {"≥": ">=", "≤": "<=", "·": "-", "×": "x", "–": "-", "—": "-", "…": "...", "²": "^2", "\u0302": "^"}


def _plain(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    held = error.object[error.start : error.end]
    return "".join(PLAIN.get(character) or _letter(character) for character in held), error.end


def _letter(character: str) -> str:
    """A letter without its accent; of what is no letter, a question mark."""
    plain = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    if plain:
        return plain
    name = unicodedata.name(character, "")
    return name.rpartition(" ")[2].lower() if name.startswith("GREEK SMALL LETTER") else "?"


def prepare() -> None:
    """Give closed streams the null device, and unprintable characters a plain spelling."""
    codecs.register_error("saltus.plain", _plain)
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            # Otherwise the next file opened would take this number, and prints would land in it.
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="saltus.plain")


def hush() -> None:
    """Where stdout cannot take what is still buffered, let it go nowhere, so that the exit is quiet too."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
