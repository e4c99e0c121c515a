"""Finished parts of a record that is not finished yet: kept from a killed run for the next one.

STORE/sim/fig2a/3f9c0a1b2c3d.parts/made-with.json      the software that made them
STORE/sim/fig2a/3f9c0a1b2c3d.parts/<name>.part         one part, written whole
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from pathlib import Path

from saltus.core import sources, store
from saltus.core.study import Info

STAMP = "made-with.json"


def folder_of(place: Path) -> Path:
    """Where the parts of the record at `place` lie."""
    return place.with_name(place.name + ".parts")


def part(folder: Path, name: str) -> Path:
    """Where the part of that name lies."""
    return folder / (hashlib.sha256(name.encode()).hexdigest()[:16] + ".part")


def finished(folder: Path) -> int:
    """How many parts are there."""
    return len(list(folder.glob("*.part")))


def open_folder(place: Path, info: Info) -> Path:
    """The folder of finished parts, emptied when they were made by other software."""
    folder = folder_of(place)
    text = json.dumps(sources.stamp(info.source), sort_keys=True)
    with store.disk_errors(folder):
        drop_stale(place)
        file = folder / STAMP
        if folder.exists() and not (file.is_file() and file.read_bytes() == text.encode()):
            shutil.rmtree(folder)
        folder.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            store.write_file(file, text.encode())
    return folder


def drop_stale(place: Path) -> None:
    """Parts begun before the record was written went into it; later ones are of an unfinished `--again`."""
    folder = folder_of(place)
    with contextlib.suppress(FileNotFoundError):
        if (folder / STAMP).stat().st_mtime_ns <= (place / store.MANIFEST).stat().st_mtime_ns:
            shutil.rmtree(folder, ignore_errors=True)
