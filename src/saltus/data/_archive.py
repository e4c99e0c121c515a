"""Files out of an archive, into memory only: no member names a place on the disk or outgrows its bound."""

from __future__ import annotations

import gzip
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import IO, Protocol

from saltus.data._content import Unusable

_MEMBERS = 100_000
_DAMAGED = (zlib.error, lzma.LZMAError, struct.error, tarfile.TarError, zipfile.BadZipFile)


class _Reads(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Bounded:
    """A stream that refuses to give more than so many bytes: an archive may unpack to anything."""

    def __init__(self, stream: _Reads, limit: int) -> None:
        self._stream, self._left = stream, limit

    def read(self, size: int, /) -> bytes:
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise Unusable("unpacks to far more than expected")
        return data


def read(archive: Path, wanted: Callable[[str], bool], limit: int) -> dict[str, bytes]:
    """The wanted files of a .tar, .tar.gz, .tar.xz, .zip, .whl or .deb, by their own names (folders dropped).

    **Arguments:** `wanted`: asked with each member's path; `limit`: bytes the whole archive may unpack to.
    """
    try:
        with archive.open("rb") as stream:
            start = stream.read(8)
            stream.seek(0)
            if start.startswith(b"PK\x03\x04"):
                return _zip(stream, wanted, limit)
            if start == b"!<arch>\n":
                return _deb(stream, wanted, limit)
            return _tar(stream, wanted, limit)
    except (EOFError, OSError, *_DAMAGED) as error:
        raise Unusable(f"is damaged or cut short ({' '.join(str(error).split())[:80]})") from error
    except (NotImplementedError, RuntimeError, ValueError, KeyError, IndexError, OverflowError) as error:
        raise Unusable(f"is an archive of an unknown or protected kind ({str(error)[:80]})") from error


def unzipped(data: bytes, limit: int) -> bytes:
    """The content of one .gz file."""
    try:
        with gzip.open(io.BytesIO(data)) as stream:
            out = stream.read(limit + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise Unusable("holds a damaged .gz file") from error
    if len(out) > limit:
        raise Unusable("holds a .gz file that unpacks to far more than expected")
    return out


def _safe(path: str) -> str:
    parts = PurePosixPath(path).parts
    if path.startswith("/") or ".." in parts or "\\" in path or "\0" in path or (parts and ":" in parts[0]):
        raise Unusable(f"holds a member that points outside of it ({path[:60]!r})")
    return "/".join(parts)


def _keep(out: dict[str, bytes], path: str, data: bytes) -> None:
    name = PurePosixPath(path).name
    if out.setdefault(name, data) != data:
        raise Unusable(f"holds two different files named {name[:60]!r}")


def _tar(stream: IO[bytes], wanted: Callable[[str], bool], limit: int) -> dict[str, bytes]:
    start = stream.read(6)
    stream.seek(0)
    plain: _Reads = stream
    if start[:2] == b"\x1f\x8b":
        plain = gzip.GzipFile(fileobj=stream)
    elif start == b"\xfd7zXZ\0":
        plain = lzma.LZMAFile(stream)  # noqa: SIM115 (closed with the archive)
    out: dict[str, bytes] = {}
    kept = 0
    # A stream ("r|") is read once, in order: what is skipped is bounded as well.
    with tarfile.open(fileobj=_Bounded(plain, limit), mode="r|") as tar:  # type: ignore[call-overload]
        for count, member in enumerate(tar):
            path = _safe(member.name)
            if count > _MEMBERS:
                raise Unusable("unpacks to far more than expected")
            if wanted(path):
                kept += member.size  # a sparse member may be larger than what is stored of it
                if kept > limit:
                    raise Unusable("unpacks to far more than expected")
                held = tar.extractfile(member) if member.isreg() else None
                if held is None:
                    raise Unusable(f"holds {path[:60]!r} as something other than a file")
                data = held.read()
                if len(data) != member.size:
                    raise Unusable("is cut short")
                _keep(out, path, data)
    return out


def _zip(stream: IO[bytes], wanted: Callable[[str], bool], limit: int) -> dict[str, bytes]:
    out: dict[str, bytes] = {}
    with zipfile.ZipFile(stream) as held:
        members = held.infolist()
        if len(members) > _MEMBERS or sum(m.file_size for m in members) > limit:
            raise Unusable("unpacks to far more than expected")
        for member in members:
            path = _safe(member.filename)
            if not member.is_dir() and wanted(path):
                _keep(out, path, held.read(member))  # gives no more than the file_size counted above
    return out


def _deb(stream: IO[bytes], wanted: Callable[[str], bool], limit: int) -> dict[str, bytes]:
    """A Debian package: an `ar` file whose member data.tar.* holds the files."""
    stream.seek(8)
    while len(header := stream.read(60)) == 60 and header[58:] == b"`\n":
        name, size = header[:16].decode("ascii", "replace").strip(" /"), int(header[48:58])
        if size < 0 or size > limit:
            break
        if name.startswith("data.tar"):
            return _tar(io.BytesIO(stream.read(size)), wanted, limit)
        stream.seek(size + size % 2, 1)
    raise Unusable("is a Debian package without data")
