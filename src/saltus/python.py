"""The command line's verbs for Python: everything it does is three lines here."""

from __future__ import annotations

import hashlib
import importlib.util
import shlex
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saltus import papers
from saltus.core import declared, record, store
from saltus.core import study as registry
from saltus.core.errors import BadInput
from saltus.core.progress import Silent
from saltus.core.study import Info

if TYPE_CHECKING:
    import xarray

    from saltus.report.outcome import Outcome


# The users' files imported so far, and what was in them.
_IMPORTED: dict[str, bytes] = {}


def studies() -> dict[str, Info]:
    """Every study there is, by id."""
    papers.discover()
    return registry.studies()


def find(names: list[str]) -> list[Info]:
    """Studies by id, by paper, or by the path of a user's own file."""
    papers.discover()
    chosen: dict[str, Info] = {}
    for name in names:
        for info in from_file(Path(name)) if name.endswith(".py") else registry.select([name]):
            chosen[info.id] = info
    return list(chosen.values())


def from_file(file: Path) -> list[Info]:
    """Import a user's own file and return the studies it registers; anew where it has changed since."""
    try:
        if not file.is_file():
            raise BadInput(f"no file {file}; give the path of a Python file that registers a study")
        resolved, content = str(file.resolve()), file.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read {str(file)[:80]}: {error.strerror}") from None
    if _IMPORTED.get(resolved) != content:
        registry.forget(resolved)
        try:
            _import(file, resolved)
        except BaseException:
            registry.forget(resolved)  # half a file is none
            raise
        _IMPORTED[resolved] = content
    return registry.of_file(resolved)


def _import(file: Path, resolved: str) -> None:
    name = "saltus_user_" + hashlib.sha256(resolved.encode()).hexdigest()[:12]
    spec = importlib.util.spec_from_file_location(name, resolved)
    if spec is None or spec.loader is None:
        raise BadInput(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    # A study's file may import what lies beside it, as it could when run by Python itself.
    sys.path.insert(0, str(Path(resolved).parent))
    try:
        spec.loader.exec_module(module)
    except (BadInput, KeyboardInterrupt):
        raise
    except BaseException as error:  # whatever a file of anybody's may do, sys.exit() among it
        del sys.modules[name]
        lines = [
            frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == resolved
        ]
        where = f", line {lines[-1]}" if lines else ""
        raise BadInput(f"{file}{where} could not be imported: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(Path(resolved).parent))
    found = {info.id: info for info in registry.of_file(resolved)}
    if not found:
        raise BadInput(f"{file} registers no study; put @saltus.study('mine/name') on a dataclass in it")
    for held in vars(module).values():
        info = vars(held).get("info") if isinstance(held, type) else None
        if isinstance(info, Info) and info.id in found and info.cls is not found[info.id].cls:
            raise BadInput(f"{file} has two studies called {info.id!r}; give one of them another id")
    for info in found.values():
        declared.check(info.cls)


def run(
    study: str | Any,
    /,
    *,
    out: str | Path = store.DEFAULT,
    again: bool = False,
    progress: Silent | None = None,
    **settings: Any,
) -> Outcome:
    """Run one study, or find its record: `saltus.run("sim/fig2a", seeds=64)`.

    **Arguments:** `study`: an id, the path of a file with one study, a study's class or an instance; `out`:
    the store; `again`: compute even if the record exists; the rest are the study's own settings.

    **Returns:** the outcome: `.data` (xarray), `.law`, `.claims`, `.figure()`.
    """
    from saltus.report.outcome import run as run_study

    if isinstance(study, str):
        found = find([study])
        if len(found) != 1:
            raise BadInput(
                f"{study!r} names {len(found)} studies; run takes one: {', '.join(s.id for s in found)}"
            )
        study = found[0].cls(**settings)
    elif isinstance(study, type) and hasattr(study, "info"):
        study = study(**settings)
    elif not hasattr(type(study), "info"):
        raise BadInput(f"run takes a study, its id or its file, not a {type(study).__name__}")
    elif settings:
        raise BadInput("settings are given to the study's constructor when a study object is run")
    return run_study(study, out, again=again, show=progress)


def load(path: str | Path) -> xarray.Dataset:
    """The arrays of a record, checked against their checksum, with the manifest in `attrs["manifest"]`."""
    held = record.read(path)
    held.data.attrs["manifest"] = held.manifest
    return held.data


def reopen(path: str | Path) -> Outcome:
    """The outcome of a record on disk: law, claims and figure as of now, nothing computed again."""
    from saltus.report.outcome import Outcome

    held = record.read(path)
    manifest = held.manifest
    info = _info_of(manifest, Path(path))
    if manifest.get("version") != info.version:
        raise BadInput(
            f"the record at {path} is of version {manifest.get('version')} of {info.id}, "
            f"this saltus has {info.version}; run the study again"
        )
    try:
        study = info.cls(**manifest["settings"])
    except BadInput as error:
        raise BadInput(f"the record at {path} has settings that this saltus refuses: {error}") from None
    return Outcome(study, held, computed=False)


def _info_of(manifest: dict[str, Any], path: Path) -> Info:
    papers.discover()
    id = str(manifest.get("study"))
    if id not in registry.studies():
        try:
            words = shlex.split(str(manifest.get("command", "")))
        except ValueError:
            words = []
        files = [Path(w) for w in words if w.endswith(".py")]
        if files and files[0].is_file():
            from_file(files[0])
        if id not in registry.studies():
            raise BadInput(f"the record at {path} is of study {id!r}, which this saltus does not know")
    return registry.info(id)


def show(id: str) -> str:
    """What a study reproduces, its settings and their meaning, cost, and the claims it will check."""
    from saltus.core.describe import describe

    return "\n\n".join(describe(info) for info in find([id]))
