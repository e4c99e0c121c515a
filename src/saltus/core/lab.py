"""Runs a study once: finds its record or computes it part by part, then its law, claims and drawing."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import os
import re
import shlex
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saltus.core import parts, record, settings, shared, store
from saltus.core.errors import BadInput
from saltus.core.progress import Silent, Tick
from saltus.core.record import Record
from saltus.core.study import Info

if TYPE_CHECKING:
    import xarray


class Lab:
    """What a running study may ask for: a place for finished parts, and a progress display."""

    def __init__(
        self,
        parts: Path | None = None,
        show: Silent | None = None,
        root: Path | None = None,
        source: str = "",
    ) -> None:
        self._parts, self._root, self._source = parts, root, source
        self.show = show or Silent()
        self.kept: list[str] = []

    def keep(self, name: str, compute: Callable[[], xarray.Dataset]) -> xarray.Dataset:
        """The part of that name: read back if an interrupted run finished it, else computed and kept.

        **Arguments:** `name`: unique within the study; `compute`: returns a Dataset that depends on nothing
        but the study's settings.
        """
        if name in self.kept:
            raise ValueError(f"two parts of this study are named {name!r}")
        self.kept.append(name)
        if self._parts is None:
            return compute()
        place = parts.part(self._parts, name)
        if place.exists():
            try:
                held = record.read(place)
                if _same_device(held.manifest.get("device", {})):
                    return held.data
            except BadInput:
                pass  # damaged: made anew
        record.write(place, compute(), {"part": name, "device": record.device()})
        # Always the data as it comes back, so that a resumed run goes on with the very same thing.
        return record.read(place).data

    def keep_all(
        self, computes: Mapping[str, Callable[[], xarray.Dataset]], label: str = "parts"
    ) -> list[xarray.Dataset]:
        """Several parts, as many at a time as there are cores; **returns** them in the order given.

        Compiled code and compilation itself release the interpreter lock, so small parts that each compile
        a program of their own go side by side.
        """
        with self.progress(label) as tick, ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            waiting = [pool.submit(self.keep, name, compute) for name, compute in computes.items()]
            try:
                for done, _ in enumerate(as_completed(waiting), 1):
                    tick(done, len(waiting))
            except BaseException:
                # What runs now is finished and kept; nothing else starts.
                pool.shutdown(wait=False, cancel_futures=True)
                raise
            return [future.result() for future in waiting]

    def share(
        self, name: str, about: Mapping[str, Any], compute: Callable[[Path | None], xarray.Dataset]
    ) -> xarray.Dataset:
        """A part that other studies show as well: computed once in a store, then read by all of them.

        **Arguments:** `about`: everything that it depends on, as JSON would hold it; `compute`: given the
        name of a file in which it may keep what a killed run goes on from.
        """
        if self._root is None:
            return compute(None)
        return shared.obtain(self._root, name, about, compute, source=self._source)

    def record_of(self, study: Any) -> xarray.Dataset:
        """The record of another study, of which this one is a further view: nothing is computed twice.

        It is found in the same store, or computed and kept there under its own name. Where its version is
        raised, raise those of its views too.
        """
        study = settled(study, self.show)
        if self._root is None:
            return _compute(study, Lab(show=self.show))
        return run(study, self._root, show=self.show)[0].data

    @contextmanager
    def progress(self, label: str) -> Iterator[Tick]:
        """A bar for long work: `with lab.progress("runs") as tick: tick(done, total)`."""
        with self.show.bar(label) as tick:
            yield tick


def _same_device(made_on: dict[str, Any]) -> bool:
    """Whether a part was made where we are: bits are the same on the same hardware only."""
    if made_on.get("kind") == "host":
        return True  # JAX had no hand in it
    importlib.import_module("saltus._jax")
    here = record.device()
    return all(made_on.get(name) == here[name] for name in ("platform", "kind"))


def settled(study: Any, show: Silent | None = None) -> Any:
    """The study with everything decided that its settings leave to the machine, so that its record names it.

    A study that has such settings, like a data set that may or may not be had, says so by a method
    `settle(show)` that returns the study to be run.
    """
    decide = getattr(study, "settle", None)
    return study if decide is None else decide(show or Silent())


def values_of(study: Any) -> dict[str, Any]:
    cls: Any = type(study)
    return {name: getattr(study, name) for name in settings.hints(cls)}


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
            first, *rest = settings.as_words(value)
            option = f"--{name.replace('_', '-')}"
            # A word that looks like an option must be tied to its own; a negative number does not.
            words += [f"{option}={first}"] if re.match(r"-(?![\d.])", first) else [option, first]
            words += rest
    return shlex.join(words)


def _is_file(info: Info) -> bool:
    return bool(info.source) and not Path(info.source).is_relative_to(Path(__file__).parents[1])


def variant(study: Any) -> str:
    """Which reading and scale this is, and what else was changed, in words every output carries."""
    cls, values = type(study), values_of(study)
    presets: settings.Presets = getattr(cls, "presets", {})
    switches = dict.fromkeys([*presets, *(n for n in ("reading",) if n in values)])
    named = [_switched(n, values[n], presets.get(n, {})) for n in switches]
    base = settings.resolve(cls, {n: values[n] for n in switches}, cls.info.id)
    changed = [n for n, v in values.items() if v != base[n]]
    if changed:
        named.append("changed: " + ", ".join(n.replace("_", "-") for n in changed))
    return "; ".join(named) or "default settings"


def _switched(name: str, value: Any, table: dict[str, dict[str, Any]]) -> str:
    """`as-written`; and of a scale, whether a larger one waits behind its switch."""
    if name != "scale":
        return str(value)
    larger = [other for other, changes in table.items() if changes and other != value]
    words = f", smaller than --scale {larger[-1]}" if larger and not table.get(value) else ""
    return f"scale {value}{words}"


def run(
    study: Any, out: str | Path = store.DEFAULT, *, again: bool = False, show: Silent | None = None
) -> tuple[Record, bool]:
    """Find this study's record in the store, or compute it; a killed run resumes from its finished parts.

    **Returns:** the record, and whether it was computed now.
    """
    study = settled(study, show)
    info: Info = type(study).info
    shelf = store.Store(out).open()
    place = shelf.place(info.id, key(study))
    with store.lock(place):
        if place.exists() and not again:
            found = record.read(place)
            if found.manifest["study"] != info.id:
                raise BadInput(f"{place} belongs to study {found.manifest['study']}; choose another --out")
            parts.drop_stale(place)
            return found, False
        if place.exists():
            _replaceable(place, info)
        folder = parts.open_folder(place, info)
        began = time.time()
        lab = Lab(folder, show, shelf.root, info.source)
        try:
            data = _compute(study, lab)
            record.write(place, data, _manifest(study, lab, began))
        except KeyboardInterrupt:
            raise Interrupted(parts.finished(folder), folder) from None
        except Exception:
            if not parts.finished(folder):  # what failed at once leaves nothing behind
                shutil.rmtree(folder, ignore_errors=True)
            raise
        shutil.rmtree(folder, ignore_errors=True)
        return record.read(place), True


def _manifest(study: Any, lab: Lab, began: float) -> dict[str, Any]:
    info: Info = type(study).info
    return {
        "study": info.id,
        "version": info.version,
        "title": info.title,
        "figure": info.figure,
        "cites": info.cites,
        "settings": settings.plain_all(values_of(study)),
        "variant": variant(study),
        "command": command(study),
        "parts": sorted(lab.kept),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
        "seconds": round(time.time() - began, 3),
        **record.environment(),
    }


class Interrupted(KeyboardInterrupt):
    """Stopped by the user; what was finished is kept."""

    def __init__(self, done: int, folder: Path) -> None:
        kept = f"{done} finished part{'s are' if done != 1 else ' is'} kept, and "
        super().__init__(f"interrupted; {kept if done else ''}the same command goes on from there")
        self.done, self.folder = done, folder


def _replaceable(place: Path, info: Info) -> None:
    """`--again` replaces this study's record, whole or damaged, and nothing else that bears its name."""
    try:
        owner = record.read_manifest(place)["study"]
    except BadInput:
        damaged = {store.MANIFEST, "data.zarr"} & set(os.listdir(place)) if place.is_dir() else set()
        if damaged:
            return
        raise
    if owner != info.id:
        raise BadInput(f"{place} belongs to study {owner}; choose another --out")


def _compute(study: Any, lab: Lab) -> xarray.Dataset:
    takes_lab = len(inspect.signature(study.run).parameters) > 0
    data = study.run(lab) if takes_lab else study.run()
    from saltus._lazy import xr

    if not isinstance(data, xr.Dataset):
        raise BadInput(f"{type(study).info.id}: run must return an xarray Dataset, not {type(data).__name__}")
    return data
