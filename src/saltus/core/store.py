"""Where records live: content-addressed folders, each written whole or not at all.

    STORE/sim/fig2a/3f9c0a1b2c3d/            one record: manifest.json, data.zarr, and its views
    STORE/sim/fig2a/3f9c0a1b2c3d.parts/      finished parts of a record that is not finished yet
    STORE/sim/fig2a/3f9c0a1b2c3d.lock        held by the process that computes it

A folder appears under its final name by a single rename, after everything in it has reached the disk, so a
process killed at any moment leaves either the old state or the new one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from saltus.core.errors import BadInput

DEFAULT = Path("saltus-records")
MANIFEST = "manifest.json"


def key_of(study: str, version: int, settings: dict[str, Any]) -> str:
    """Twelve hex digits naming exactly this computation."""
    text = json.dumps([study, version, settings], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@contextlib.contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn what the operating system says of a disk into one line."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise BadInput(
                f"no space left on the disk of {path}; what was finished is kept: free some space "
                "or choose another folder with --out, then run the same command again"
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise BadInput(f"{path} is not writable; choose another folder with --out") from error
        if error.errno in (errno.ENOTDIR, errno.EEXIST):
            raise BadInput(f"{path} is in the way of a folder; choose another one with --out") from error
        if error.errno in (errno.ENAMETOOLONG, errno.EINVAL, errno.ELOOP):
            raise BadInput(
                f"{str(path)[:80]!r} is not a usable folder name; choose another with --out"
            ) from error
        if error.errno == errno.EISDIR:
            raise BadInput(f"{path} is a folder; a file is to be written there") from error
        if error.errno in (errno.ENOENT, errno.ENOTEMPTY, errno.ESTALE):
            raise BadInput(
                f"{path} was moved or removed while it was in use; run the same command again"
            ) from error
        raise


class Store:
    """A folder of records."""

    def __init__(self, root: str | Path = DEFAULT) -> None:
        if "\0" in str(root) or not str(root):
            raise BadInput("the output folder's name is empty or holds a null character")
        try:
            self.root = Path(root).expanduser()
        except RuntimeError as error:
            raise BadInput(f"{root}: {error}") from None

    def open(self) -> Store:
        """Make the folder and make sure it can be written to, before anything is computed."""
        with disk_errors(self.root):
            for folder in (self.root, *self.root.parents):
                if folder.exists() and not folder.is_dir():
                    raise BadInput(f"{folder} is a file; --out needs a folder")
            owner = _owner(self.root)
            if owner is not None:
                raise BadInput(f"{self.root} is itself a record of {owner}; give --out the store above it")
            try:
                self.root.mkdir(parents=True, exist_ok=True)
            except FileNotFoundError:  # as in /proc
                raise BadInput(f"{self.root} cannot be made here; choose another folder with --out") from None
            with tempfile.TemporaryFile(dir=self.root):  # nameless, so that a kill leaves nothing
                pass
        return self

    def place(self, study: str, key: str) -> Path:
        return self.root / study / key

    def records(self) -> list[Path]:
        """Every finished record, newest last."""
        if not self.root.is_dir():
            raise BadInput(f"no store at {self.root}; run a study first, or name the folder with --out")
        for old in self.root.glob("**/.*.old"):
            recover(old.with_name(old.name[1:-4]))
        found = {}
        for manifest in self.root.glob(f"**/{MANIFEST}"):
            with contextlib.suppress(OSError):  # replaced at this moment by another process
                if not _temporary(manifest.parent):
                    found[manifest.parent] = manifest.stat().st_mtime_ns
        return sorted(found, key=lambda p: (found[p], p))


@contextlib.contextmanager
def lock(place: Path) -> Iterator[None]:
    """Hold the right to compute this record; a second process is told who has it."""
    file = place.with_name(place.name + ".lock")
    with disk_errors(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        handle = _locked(file, place)
    with handle:
        with contextlib.suppress(OSError):  # a full disk: the lock holds, only the name of its holder is lost
            handle.truncate(0)
            handle.write(str(os.getpid()))
            handle.flush()
        try:
            _recover_one(place)
            yield
        finally:
            with contextlib.suppress(OSError):
                file.unlink()


def _locked(file: Path, place: Path) -> IO[str]:
    while True:
        handle = file.open("a+")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(handle.fileno()).st_ino == file.stat().st_ino:
                return handle
        except BlockingIOError:
            handle.seek(0)
            pid = handle.read().strip() or "unknown"
            handle.close()
            raise BadInput(
                f"process {pid} is computing {place} right now; wait for it, or use another --out"
            ) from None
        except FileNotFoundError:
            pass
        handle.close()  # its last holder removed the file between our opening and locking it


def recover(place: Path) -> None:
    """Put back a record whose replacement was cut off, unless a living process is just replacing it."""
    if place.with_name(f".{place.name}.old").exists():
        with contextlib.suppress(BadInput), lock(place):
            pass


def _owner(folder: Path) -> str | None:
    """The study whose record this folder is, or lies in."""
    for one in (folder, *folder.absolute().parents):
        manifest = one / MANIFEST
        try:
            if manifest.is_file() and json.loads(manifest.read_text()).get("format") == "saltus-record":
                return str(json.loads(manifest.read_text()).get("study"))
        except (OSError, ValueError, AttributeError):
            continue
    return None


def write_whole(target: Path, fill: Callable[[Path], None]) -> None:
    """Fill a new folder, bring it to the disk, and give it its name in one step."""
    with disk_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}.new-", dir=target.parent))
        try:
            fill(fresh)
            _sync_tree(fresh)
            fresh.chmod(0o755)
            old = target.with_name(f".{target.name}.old")
            if target.exists():
                _remove(old)
                target.rename(old)
            fresh.rename(target)
            _sync(target.parent)
            _remove(old)
        except BaseException:
            _clear(fresh)
            _recover_one(target)
            raise


def write_file(target: Path, data: bytes) -> None:
    """Replace a file's content in one step, or one line saying why not."""
    with disk_errors(target):
        replace(target, data)


def replace(target: Path, data: bytes) -> None:
    """Replace a file's content in one step."""
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        Path(name).chmod(0o644)
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _recover_one(target: Path) -> None:
    """Put back a record whose replacement was cut off between its two renames; clear half-written ones."""
    old = target.with_name(f".{target.name}.old")
    if old.exists() and not target.exists():
        with contextlib.suppress(OSError):
            old.rename(target)
    for left in target.parent.glob(f".{target.name}.new-*"):
        shutil.rmtree(left, ignore_errors=True)


def _remove(path: Path) -> None:
    """A record that was moved elsewhere and linked to is let go; what the link leads to is not ours."""
    if path.is_symlink():
        with contextlib.suppress(OSError):
            path.unlink()
    else:
        shutil.rmtree(path, ignore_errors=True)


def _clear(fresh: Path) -> None:
    """Remove a folder that could not be filled; zarr's own threads may still be writing into it."""
    for pause in (0.0, 0.05, 0.2, 0.5):
        time.sleep(pause)
        shutil.rmtree(fresh, ignore_errors=True)


def _temporary(path: Path) -> bool:
    return any(part.startswith(".") or part.endswith(".parts") for part in path.parts[-2:])


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_tree(folder: Path) -> None:
    for directory, _, files in os.walk(folder):
        for name in files:
            _sync(Path(directory) / name)
        _sync(Path(directory))
