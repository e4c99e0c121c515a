"""Small files in the formats of the real data sets, written independently of the code that reads them."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from saltus.data import _catalogue
from saltus.data._catalogue import Entry

Files = dict[str, bytes]
Client = Callable[..., Path]  # makes a stand-in for a registry client, see conftest


def idx(array: np.ndarray) -> bytes:
    return (
        bytes([0, 0, 8, array.ndim]) + b"".join(struct.pack(">I", n) for n in array.shape) + array.tobytes()
    )


def png(rows: np.ndarray) -> bytes:
    """8-bit RGB, unfiltered. `rows`: uint8 `[height, width, 3]`."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", rows.shape[1], rows.shape[0], 8, 2, 0, 0, 0)
    lines = b"".join(b"\0" + row.tobytes() for row in rows)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def mnist(seed: int = 0) -> tuple[dict[str, np.ndarray], Files]:
    """Ten and four pictures, with the names the real files have."""
    rng = np.random.default_rng(seed)
    content = {}
    for split, n in (("train", 10), ("test", 4)):
        content[f"{split}_x"] = rng.integers(0, 256, (n, 28, 28), np.uint8)
        content[f"{split}_y"] = rng.integers(0, 10, n).astype(np.uint8)
    files = {
        "train-images-idx3-ubyte": idx(content["train_x"]),
        "train-labels-idx1-ubyte": idx(content["train_y"]),
        "t10k-images-idx3-ubyte": idx(content["test_x"]),
        "t10k-labels-idx1-ubyte": idx(content["test_y"]),
    }
    return content, files


def cifar() -> tuple[dict[str, np.ndarray], Files, Files]:
    """Five batches of three pictures, a test batch of two: the content, as PNG strips, as binary batches."""
    rng = np.random.default_rng(1)
    strips, batches, xs, ys = {}, {}, {}, {}
    for name, n in (*((f"data_batch_{i}", 3) for i in range(1, 6)), ("test_batch", 2)):
        x, y = rng.integers(0, 256, (n, 32, 32, 3), np.uint8), rng.integers(0, 10, n).astype(np.uint8)
        xs[name], ys[name] = x, y
        strips[f"{name}.png"] = png(x.reshape(n, 1024, 3))
        planes = [bytes([y[k]]) + b"".join(x[k, :, :, c].tobytes() for c in range(3)) for k in range(n)]
        batches[f"{name}.bin"] = b"".join(planes)
    train = [f"data_batch_{i}" for i in range(1, 6)]
    content = {
        "train_x": np.concatenate([xs[t] for t in train]),
        "train_y": np.concatenate([ys[t] for t in train]),
        "test_x": xs["test_batch"],
        "test_y": ys["test_batch"],
    }
    strips["train_lables.json"] = json.dumps(content["train_y"].tolist()).encode()
    strips["test_lables.json"] = json.dumps(content["test_y"].tolist()).encode()
    return content, strips, batches


def tar(files: Files, folder: str = "package/data") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as held:
        for name, data in {"README.md": b"read me", **files}.items():
            info = tarfile.TarInfo(f"{folder}/{name}")
            info.size = len(data)
            held.addfile(info, io.BytesIO(data))
    return out.getvalue()


def tgz(files: Files, folder: str = "package/data") -> bytes:
    return gzip.compress(tar(files, folder))


def zipped(files: Files, folder: str = "package/data") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as held:
        for name, data in files.items():
            held.writestr(f"{folder}/{name}", data)
    return out.getvalue()


def deb(files: Files, folder: str = "./usr/share/datasets") -> bytes:
    def member(name: str, data: bytes) -> bytes:
        head = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode()
        return head + data + b"\n" * (len(data) % 2)

    control, held = tgz({}, "."), lzma.compress(tar(files, folder))
    members = member("debian-binary", b"2.0\n") + member("control.tar.gz", control)
    return b"!<arch>\n" + members + member("data.tar.xz", held)


def digest(content: dict[str, np.ndarray]) -> str:
    """The checksum as documented: name, type and shape on a line, then the bytes, in order of the names."""
    parts = [f"{k} |u1 {content[k].shape}\n".encode() + content[k].tobytes() for k in sorted(content)]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def small_mnist() -> Entry:
    """The catalogue's entry, expecting the small files instead."""
    return replace(_catalogue.ENTRIES["mnist"], sha256=digest(mnist()[0]))


def install() -> None:
    """For another process: let its catalogue expect the small files."""
    _catalogue.ENTRIES["mnist"] = small_mnist()


def cifar100(each: tuple[int, int] = (5, 1)) -> tuple[dict[str, np.ndarray], Files]:
    """A hundred classes in twenty groups, so many images of each; every image one colour."""
    rng = np.random.default_rng(2)
    groups = rng.permutation(np.repeat(np.arange(20, dtype=np.uint8), 5))
    content, files = {}, {}
    for split, n in zip(("train", "test"), each, strict=True):
        y = rng.permutation(np.repeat(np.arange(100, dtype=np.uint8), n))
        colours = rng.integers(0, 256, (len(y), 1, 1, 3), np.uint8)
        x = np.broadcast_to(colours, (len(y), 32, 32, 3))
        content |= {f"{split}_x": x, f"{split}_y": y, f"{split}_group": groups[y]}
        planes = np.repeat(colours[:, 0, 0], 1024, axis=1)
        files[f"{split}.bin"] = np.concatenate([groups[y][:, None], y[:, None], planes], axis=1).tobytes()
    return content, files


def wikitext(lines: dict[str, int]) -> Files:
    """Files with that many lines each."""
    return {f"wiki.{part}.raw": " = Title = é \n".encode() * n for part, n in lines.items()}
