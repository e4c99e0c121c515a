"""Which source files of ours a computation can depend on, as one checksum.

Finished work is kept from one run to the next only while the code that made it is the same. A commit would
be too coarse a name for that code (it changes with every word of the documentation) and too fine a one in
a tree with local changes (it does not change with them).
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
# These ask for computations, find them and show them; none of them makes a number.
SHOWS = (
    "__main__.py", "arguments.py", "cli.py", "commands.py", "python.py", "report", "running.py", "signals.py",
    "streams.py", "tour.py",
)  # fmt: skip


def files(paper: str | None) -> list[Path]:
    """The files of ours that a study may compute with: of a paper, or of anybody's (None).

    The rooms that all papers share, and its own paper's: no paper uses another's, which a linter watches. A
    user's own study may use any paper.
    """
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).parts
        if parts[0] in SHOWS or path.stem.endswith("_pictures"):
            continue
        if parts[0] != "papers" or len(parts) == 2 or paper in (None, parts[1]):
            found.append(path)
    return found


def digest(source: str) -> str:
    """A checksum of all that a study declared in the file `source` may compute with."""
    file = Path(source)
    if file.is_relative_to(PACKAGE / "papers"):
        return _of_package(file.relative_to(PACKAGE).parts[1])
    try:
        own = file.read_bytes() if source else b""
    except OSError:  # gone since it was imported
        own = b""
    return hashlib.sha256(_of_package(None).encode() + own).hexdigest()[:16]


@cache  # what is imported stays as it is, whatever happens to the files
def _of_package(paper: str | None) -> str:
    total = hashlib.sha256()
    for path in files(paper):
        total.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0")
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:16]


def stamp(source: str) -> dict[str, object]:
    """What the bits of a computation depend on besides its settings and its device."""
    from saltus.core import record

    return {"packages": record.packages(), "code": digest(source)}
