"""CIFAR-10 in as few bytes as numpy and lzma give, for a machine that can fetch nothing.

    python benchmarks/packed.py FOLDER [--megabytes 50] [--test 2000]

Lossless: green is taken from red and blue, each byte is predicted from its three neighbours above and to the
left (the median predictor of JPEG-LS), and what is left is compressed in shards, which threads open side by
side. Needs nothing but numpy to open.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

SHARD = 1000
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 4, "lp": 0, "pb": 0}]


def packed(images: np.ndarray) -> bytes:
    """Images [n, height, width, 3] of bytes."""
    planes = images.copy()
    planes[..., 0] -= images[..., 1]
    planes[..., 2] -= images[..., 1]
    rest = _signed_first((planes.astype(np.int16) - _predicted(planes)).astype(np.uint8))
    return lzma.compress(rest.transpose(0, 3, 1, 2).tobytes(), lzma.FORMAT_RAW, filters=FILTERS)


def opened(data: bytes, shape: tuple[int, ...]) -> np.ndarray:
    """The images [n, height, width, 3] of `packed`."""
    count, height, width, channels = shape
    raw = lzma.decompress(data, lzma.FORMAT_RAW, filters=FILTERS)
    rest = np.frombuffer(raw, np.uint8).reshape(count, channels, height, width)
    # Pixels first: each is then one long row, of every image and colour.
    rest = np.ascontiguousarray(rest.transpose(2, 3, 0, 1)).reshape(height, width, -1)
    rest = np.where(rest & 1, ~(rest >> 1), rest >> 1).astype(np.uint8)
    planes = np.zeros((height + 1, width + 1, rest.shape[-1]), np.int16)
    for y in range(height):
        for x in range(width):
            left, above, corner = planes[y + 1, x], planes[y, x + 1], planes[y, x]
            left, above, corner = _at_edges(y, x, left, above, corner)
            planes[y + 1, x + 1] = (_median(left, above, corner) + rest[y, x]) & 255
    planes = planes[1:, 1:].astype(np.uint8).reshape(height, width, count, channels).transpose(2, 0, 1, 3)
    planes = np.ascontiguousarray(planes)
    planes[..., 0] += planes[..., 1]
    planes[..., 2] += planes[..., 1]
    return planes


def _median(left: np.ndarray, above: np.ndarray, corner: np.ndarray) -> np.ndarray:
    return np.clip(left + above - corner, np.minimum(left, above), np.maximum(left, above))


def _at_edges(y: int, x: int, left: np.ndarray, above: np.ndarray, corner: np.ndarray) -> tuple:
    """On the first row everything is what is left, in the first column what is above."""
    if y == 0:
        return left, left, left
    return (above, above, above) if x == 0 else (left, above, corner)


def _predicted(planes: np.ndarray) -> np.ndarray:
    p = np.zeros((len(planes), planes.shape[1] + 1, planes.shape[2] + 1, planes.shape[3]), np.int16)
    p[:, 1:, 1:] = planes
    left, above, corner = p[:, 1:, :-1].copy(), p[:, :-1, 1:].copy(), p[:, :-1, :-1].copy()
    above[:, 0], corner[:, 0] = left[:, 0], left[:, 0]
    left[:, 1:, 0], corner[:, 1:, 0] = above[:, 1:, 0], above[:, 1:, 0]
    return _median(left, above, corner)


def _signed_first(rest: np.ndarray) -> np.ndarray:
    """Small differences of either sign as small numbers: 0, -1, 1, -2, ..."""
    signed = rest.astype(np.int8).astype(np.int16)
    return np.where(signed >= 0, 2 * signed, -2 * signed - 1).astype(np.uint8)


def pack(folder: Path, megabytes: float, test: int) -> dict:
    """The first training images that fit, and the first `test` of the test images."""
    from saltus import data

    held = data.load("cifar10")
    folder.mkdir(parents=True, exist_ok=True)
    total, room = 0, megabytes * 2**20

    def write(kind: str, x: np.ndarray, limit: int) -> int:
        nonlocal total
        done = 0
        while done < limit:
            part = packed(x[done : min(done + SHARD, limit)])
            if total + len(part) > room:
                break
            (folder / f"{kind}-{done:05}.lzma").write_bytes(part)
            total += len(part)
            done = min(done + SHARD, limit)
            print(f"{kind} {done}: {total / 2**20:.1f} MiB", file=sys.stderr, flush=True)
        return done

    tested = write("test", held.test_x, test)
    trained = write("train", held.x, len(held.x))
    about = {"train": trained, "test": tested, "shape": list(held.x.shape[1:]), "shard": SHARD}
    np.savez_compressed(folder / "labels.npz", train=held.y[:trained], test=held.test_y[:tested])
    (folder / "about.json").write_text(json.dumps(about) + "\n")
    return about


def load(folder: Path) -> dict[str, np.ndarray]:
    """train_x, train_y, test_x, test_y."""
    about = json.loads((folder / "about.json").read_text())

    def one(path: Path) -> np.ndarray:
        kind, first = path.stem.split("-")
        count = min(about["shard"], about[kind] - int(first))
        return opened(path.read_bytes(), (count, *about["shape"]))

    with np.load(folder / "labels.npz") as labels, ThreadPoolExecutor() as pool:
        found = {f"{kind}_y": labels[kind] for kind in ("train", "test")}
        for kind in ("train", "test"):
            found[f"{kind}_x"] = np.concatenate(list(pool.map(one, sorted(folder.glob(f"{kind}-*.lzma")))))
    return found


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("folder", type=Path)
    options.add_argument("--megabytes", type=float, default=50)
    options.add_argument("--test", type=int, default=2000)
    asked = options.parse_args()
    print(pack(asked.folder, asked.megabytes, asked.test))
