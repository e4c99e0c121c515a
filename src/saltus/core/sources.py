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
    "__main__.py", "arguments.py", "cli.py", "commands.py", "python.py", "report", "signals.py", "streams.py",
    "tour.py",
)  # fmt: skip


def files(source: str) -> list[Path]:
    """The files that a study declared in `source` may compute with.

    The rooms that all papers share, and its own paper's: no paper uses another's, which a linter watches. A
    user's own file may use any paper.
    """
    file = Path(source) if source else None
    ours = file is not None and file.is_relative_to(PACKAGE / "papers")
    own = file.relative_to(PACKAGE).parts[:2] if file is not None and ours else ("papers",)
    found = [] if file is None or ours else [file]
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).parts
        if parts[0] in SHOWS or path.stem.endswith("_pictures"):
            continue
        if parts[0] != "papers" or len(parts) == 2 or parts[: len(own)] == own:
            found.append(path)
    return found


@cache
def digest(source: str) -> str:
    """A checksum of those files' names and contents."""
    total = hashlib.sha256()
    for path in files(source):
        name = path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else "own"
        total.update(name.encode() + b"\0")
        try:
            total.update(hashlib.sha256(path.read_bytes()).digest())
        except OSError:  # gone since it was imported
            continue
    return total.hexdigest()[:16]


def stamp(source: str) -> dict[str, object]:
    """What the bits of a computation depend on besides its settings and its device."""
    from saltus.core import record

    return {"packages": record.packages(), "code": digest(source)}
