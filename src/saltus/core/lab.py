"""Runs a study once: finds its record or computes it part by part, then its law, claims and drawing."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
import shlex
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saltus.core import record, settings, store
from saltus.core.errors import BadInput
from saltus.core.progress import Silent, Tick
from saltus.core.record import Record
from saltus.core.study import Info

if TYPE_CHECKING:
    import xarray


class Lab:
    """What a running study may ask for: a place for finished parts, and a progress display."""

    def __init__(self, parts: Path | None = None, show: Silent | None = None) -> None:
        self._parts = parts
        self.show = show or Silent()
        self.kept: list[str] = []

    def keep(self, name: str, compute: Callable[[], xarray.Dataset]) -> xarray.Dataset:
        """The part of that name: read back if an interrupted run finished it, else computed and kept.

        **Arguments:** `name`: unique within the study; `compute`: returns a Dataset that depends on nothing
        but the study's settings.
        """
        self.kept.append(name)
        if self._parts is None:
            return compute()
        place = self._parts / (hashlib.sha256(name.encode()).hexdigest()[:16] + ".part")
        if (place / store.MANIFEST).is_file():
            try:
                return record.read(place).data
            except BadInput:
                shutil.rmtree(place, ignore_errors=True)
        data = record.tidy(compute())
        record.write(place, data, {"part": name})
        return data

    @contextmanager
    def progress(self, label: str) -> Iterator[Tick]:
        """A bar for long work: `with lab.progress("runs") as tick: tick(done, total)`."""
        with self.show.bar(label) as tick:
            yield tick


def values_of(study: Any) -> dict[str, Any]:
    return {name: getattr(study, name) for name in settings.hints(type(study))}


def key(study: Any) -> str:
    """The name of this computation: settings that only change the drawing are left out."""
    info: Info = type(study).info
    fields = {f.name: f for f in dataclasses.fields(study)}
    used = {n: v for n, v in values_of(study).items() if not fields[n].metadata.get("drawing")}
    return store.key_of(info.id, info.version, json.loads(json.dumps(settings.plain_all(used))))


def command(study: Any) -> str:
    """The exact command that shows this again."""
    cls, info = type(study), type(study).info
    words = ["saltus", "run", info.id if not _is_file(info) else info.source]
    baseline = settings.resolve(cls, {n: getattr(study, n) for n in getattr(cls, "presets", {})}, info.id)
    for name, value in values_of(study).items():
        switched = name in getattr(cls, "presets", {}) and value != settings.default_of(cls, name)
        if switched or value != baseline[name]:
            words += [f"--{name.replace('_', '-')}", *settings.as_text(value).split(" ")]
    return shlex.join(words)


def _is_file(info: Info) -> bool:
    return "saltus/papers" not in info.source.replace("\\", "/")


def variant(study: Any) -> str:
    """How this differs from the study's own default, in words every output carries."""
    cls = type(study)
    named = [str(getattr(study, n)) for n in getattr(cls, "presets", {})]
    base = settings.resolve(cls, {n: getattr(study, n) for n in getattr(cls, "presets", {})}, cls.info.id)
    changed = [n for n, v in values_of(study).items() if v != base[n]]
    if changed:
        named.append("changed: " + ", ".join(n.replace("_", "-") for n in changed))
    return "; ".join(named) or "as published"


def run(
    study: Any, out: str | Path = store.DEFAULT, *, again: bool = False, show: Silent | None = None
) -> tuple[Record, bool]:
    """Find this study's record in the store, or compute it; a killed run resumes from its finished parts.

    **Returns:** the record, and whether it was computed now.
    """
    info: Info = type(study).info
    shelf = store.Store(out).open()
    place = shelf.place(info.id, key(study))
    with shelf.lock(place):
        if place.exists() and not again:
            found = record.read(place)
            if found.manifest.get("study") != info.id:
                owner = found.manifest.get("study")
                raise BadInput(f"{place} belongs to study {owner}; choose another --out")
            return found, False
        parts = _parts(place, again)
        began = time.time()
        lab = Lab(parts, show)
        try:
            data = _compute(study, lab)
        except KeyboardInterrupt:
            raise Interrupted(len(list(parts.glob("*.part"))), parts) from None
        manifest = {
            "study": info.id,
            "version": info.version,
            "title": info.title,
            "figure": info.figure,
            "cites": info.cites,
            "settings": settings.plain_all(values_of(study)),
            "variant": variant(study),
            "command": command(study),
            "parts": lab.kept,
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
            "seconds": round(time.time() - began, 3),
            **record.environment(),
        }
        record.write(place, data, manifest)
        shutil.rmtree(parts, ignore_errors=True)
        return record.read(place), True


class Interrupted(Exception):
    """Stopped by the user; what was finished is kept."""

    def __init__(self, done: int, parts: Path) -> None:
        super().__init__(
            f"interrupted; {done} finished parts are kept, and the same command goes on from there"
        )
        self.done, self.parts = done, parts


def _compute(study: Any, lab: Lab) -> xarray.Dataset:
    takes_lab = len(inspect.signature(study.run).parameters) > 0
    data = study.run(lab) if takes_lab else study.run()
    from saltus._lazy import xr

    if not isinstance(data, xr.Dataset):
        raise TypeError(
            f"{type(study).info.id}: run must return an xarray Dataset, not {type(data).__name__}"
        )
    return data


def _parts(place: Path, again: bool) -> Path:
    """The folder of finished parts, emptied when they were made by other software or on another device."""
    folder = place.with_name(place.name + ".parts")
    if again:
        shutil.rmtree(folder, ignore_errors=True)
    here = record.environment()
    stamp = {"packages": here["packages"], "platform": here["device"]["platform"]}
    with store.disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "made-with.json"
        if file.exists() and file.read_text() != json.dumps(stamp, sort_keys=True):
            shutil.rmtree(folder)
            folder.mkdir()
        store.write_file(file, json.dumps(stamp, sort_keys=True).encode())
    return folder
