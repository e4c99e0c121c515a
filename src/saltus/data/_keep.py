"""The cache: one file per data set, written whole or not at all, checked whenever it is read."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from saltus.core.errors import BadInput
from saltus.core.progress import Silent
from saltus.data._catalogue import Entry
from saltus.data._content import Unusable, digest

if TYPE_CHECKING:
    from saltus.data._content import Content


def root() -> Path:
    """`$SALTUS_CACHE/data`, else `$XDG_CACHE_HOME/saltus/data`, else `~/.cache/saltus/data`."""
    if ours := os.environ.get("SALTUS_CACHE"):
        return Path(os.path.expanduser(ours)).absolute() / "data"
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG rules: a path that is not absolute does not count.
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "saltus" / "data"


def kept(entry: Entry) -> Path:
    """Where the data set lies once fetched."""
    return Path(__file__).with_name(f"{entry.name}.npz") if entry.shipped else root() / f"{entry.name}.npz"


def folder_by_hand(entry: Entry) -> Path:
    """The folder a user may fill."""
    return root() / entry.name


def read(entry: Entry, path: Path) -> Content:
    """The content of a file written by `write`, compared with its checksum."""
    import numpy as np

    try:
        with zipfile.ZipFile(path) as held:
            if sum(m.file_size for m in held.infolist()) > entry.size + 1_000_000:
                raise Unusable("is far larger than expected")
        with np.load(path, allow_pickle=False) as arrays:
            content = {name: arrays[name] for name in arrays.files}
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise Unusable("is damaged") from error
    if any(not isinstance(a, np.ndarray) for a in content.values()):
        raise Unusable("is damaged")
    check(entry, content)
    return content


def check(entry: Entry, content: Content) -> None:
    """Refuse what is not, byte for byte, the data set of that name; without a checksum, by its facts."""
    if not entry.sha256:
        from saltus.data._facts import FACTS

        FACTS[entry.name](content)
        return
    found = digest(content)
    if found != entry.sha256:
        raise Unusable(
            f"is not {entry.name} (sha256 of the content {found[:12]}, should be {entry.sha256[:12]})"
        )


def write(path: Path, content: Content, *, small: bool = False) -> None:
    """Put the arrays on the disk under a name that appears when all of them are there."""
    import numpy as np

    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            with zipfile.ZipFile(out, "w") as held:
                for title in sorted(content):
                    info = zipfile.ZipInfo(f"{title}.npy")
                    info.compress_type = zipfile.ZIP_DEFLATED if small else zipfile.ZIP_STORED
                    with held.open(info, "w") as member:
                        np.lib.format.write_array(member, content[title], allow_pickle=False)
            out.flush()
            os.fsync(out.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


@contextlib.contextmanager
def alone(entry: Entry, show: Silent) -> Iterator[Path]:
    """Hold the right to fetch this data set, waiting for its holder; **yields** an empty scratch folder."""
    here = root()
    with _disk(here, entry):
        here.mkdir(parents=True, exist_ok=True)
        lock = (here / f".{entry.name}.lock").open("a")
    with lock, _disk(here, entry):
        _take(lock.fileno(), entry, show)
        # With the lock held, what a killed process left behind belongs to nobody.
        for left in (*here.glob(f".{entry.name}.fetch-*"), *here.glob(f".{entry.name}.npz.*")):
            shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{entry.name}.fetch-", dir=here))
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _take(lock: int, entry: Entry, show: Silent) -> None:
    said = False
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not said:
                show.say(f"another process is fetching {entry.name}; waiting for it")
            said = True
            time.sleep(0.1)
        except OSError:
            return  # a disk without locks: the rename still keeps files whole
        else:
            return


@contextlib.contextmanager
def _disk(here: Path, entry: Entry) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise BadInput(
                f"no space left on the disk of {here}, {entry.name} takes {entry.size / 1e6:.0f} MB; "
                "free some, or set SALTUS_CACHE to a folder on another disk"
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST):
            raise BadInput(
                f"the cache {here} is not writable; set SALTUS_CACHE to a folder that is"
            ) from error
        raise
