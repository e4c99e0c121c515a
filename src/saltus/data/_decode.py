"""From the files of a data set to its arrays: IDX, CIFAR batches (PNG strips or binary), texts."""

from __future__ import annotations

import io
import json
import struct
from typing import TYPE_CHECKING

import numpy as np

from saltus.data._archive import unzipped
from saltus.data._catalogue import WIKI, Entry
from saltus.data._content import Unusable

if TYPE_CHECKING:
    from saltus.data._content import Bytes, Content

Files = dict[str, bytes]


def decode(entry: Entry, files: Files) -> Content:
    """The content of a data set, uint8 throughout, not yet compared with its checksum."""
    if not files:
        raise Unusable(f"holds none of the files of {entry.name}")
    if entry.format == "idx":
        return _idx_set(files, entry.size + 1024)
    if entry.format == "cifar":
        return _cifar(files)
    if entry.format == "cifar100":
        return _cifar100(files)
    if entry.format == "wikitext":
        return _wikitext(files)
    return _texts(files)


def _idx_set(files: Files, limit: int) -> Content:
    named = {}
    for name, data in sorted(files.items()):
        packed = name.endswith(".gz")
        # Some copies are spelt train-images.idx3-ubyte.
        named[name.removesuffix(".gz").replace(".idx", "-idx")] = unzipped(data, limit) if packed else data
    out = {}
    for ours, theirs in (("train", "train"), ("test", "t10k")):
        for axis, what in (("x", "images-idx3"), ("y", "labels-idx1")):
            out[f"{ours}_{axis}"] = idx(_the(named, f"{theirs}-{what}-ubyte"))
        _same_length(out[f"{ours}_x"], out[f"{ours}_y"])
    return out


def idx(data: bytes) -> Bytes:
    """An array in LeCun's IDX format: two zeros, the type (8: unsigned byte), rank, sizes, data."""
    rank = data[3] if len(data) > 3 else 0
    if data[:3] != b"\0\0\x08" or not 1 <= rank <= 4 or len(data) < 4 + 4 * rank:
        raise Unusable("holds a file that is not IDX with unsigned bytes")
    shape = struct.unpack(f">{rank}I", data[4 : 4 + 4 * rank])
    count = 1
    for n in shape:
        count *= n
    if len(data) != 4 + 4 * rank + count:
        raise Unusable("holds an IDX file whose length is not what its header says")
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape)


def _cifar(files: Files) -> Content:
    train = [f"data_batch_{i}" for i in range(1, 6)]
    if any(name.endswith(".bin") for name in files):
        parts = {name: _batch(_the(files, f"{name}.bin")) for name in [*train, "test_batch"]}
        x, y = (np.concatenate([parts[name][i] for name in train]) for i in (0, 1))
        test_x, test_y = parts["test_batch"]
    else:
        x = np.concatenate([_strip(_the(files, f"{name}.png")) for name in train])
        test_x = _strip(_the(files, "test_batch.png"))
        y, test_y = (_labels(_the(files, f"{split}_lables.json")) for split in ("train", "test"))
    _same_length(x, y)
    _same_length(test_x, test_y)
    return {"train_x": x, "train_y": y, "test_x": test_x, "test_y": test_y}


def _batch(data: bytes) -> tuple[Bytes, Bytes]:
    x, labels = _rows(data, 1)
    return x, labels[:, 0]


def _cifar100(files: Files) -> Content:
    """The binary form of CIFAR-100: the group of the class, the class, the planes."""
    out: Content = {}
    for split in ("train", "test"):
        x, labels = _rows(_the(files, f"{split}.bin"), 2)
        out |= {f"{split}_x": x, f"{split}_y": labels[:, 1].copy(), f"{split}_group": labels[:, 0].copy()}
    return out


def _rows(data: bytes, labels: int) -> tuple[Bytes, Bytes]:
    """The authors' binary form: labels, then the red, the green and the blue plane of 1024 bytes each."""
    each = labels + 3072
    if not data or len(data) % each:
        raise Unusable("holds a CIFAR batch that is not a whole number of images")
    rows = np.frombuffer(data, np.uint8).reshape(-1, each)
    x = rows[:, labels:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(x), rows[:, :labels].copy()


def _strip(data: bytes) -> Bytes:
    """A PNG 1024 pixels wide with one image of 32x32 in each row."""
    from matplotlib.image import imread

    known = data[:8] == b"\x89PNG\r\n\x1a\n" and data[12:16] == b"IHDR" and len(data) > 33
    width, height, bits, colour = struct.unpack(">IIBB", data[16:26]) if known else (0, 0, 0, 0)
    # Looked at before decoding, so that a small file cannot ask for a large picture.
    if (width, bits, colour) != (1024, 8, 2) or not 1 <= height <= 10_000:
        raise Unusable("holds a picture that is not a strip of CIFAR-10 images")
    try:
        pixels = imread(io.BytesIO(data), format="png")
    except (OSError, ValueError, SyntaxError) as error:
        raise Unusable("holds a damaged picture") from error
    # imread gives k/255 in float32; rounding gives k back exactly.
    return np.rint(pixels * np.float32(255)).astype(np.uint8).reshape(height, 32, 32, 3)


def _labels(data: bytes) -> Bytes:
    try:
        held = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Unusable("holds labels that are not JSON") from error
    if not isinstance(held, list) or not all(type(k) is int and 0 <= k <= 9 for k in held):
        raise Unusable("holds labels that are not a list of 0 to 9")
    return np.array(held, np.uint8)


def _wikitext(files: Files) -> Content:
    """Train, valid and test, as they are (.raw) or with rare words replaced (.tokens)."""
    kind = "raw" if "wiki.train.raw" in files else "tokens"
    out = {}
    for part in WIKI:
        data = _the(files, f"wiki.{part}.{kind}")
        _utf8(f"wiki.{part}.{kind}", data)
        out[part] = np.frombuffer(data, np.uint8)
    return out


def _utf8(name: str, data: bytes) -> None:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise Unusable(f"holds {name[:60]!r}, which is not UTF-8 text") from error


def _texts(files: Files) -> Content:
    out = {}
    for name, data in files.items():
        _utf8(name, data)
        out[name.removesuffix(".txt").removesuffix("_gut")] = np.frombuffer(data, np.uint8)
    return out


def _the(files: Files, name: str) -> bytes:
    if name not in files:
        raise Unusable(f"does not hold {name}")
    return files[name]


def _same_length(x: Bytes, y: Bytes) -> None:
    if len(x) != len(y):
        raise Unusable(f"holds {len(x)} images but {len(y)} labels")
