"""Pictures in a tree of folders, one a class, as ImageNet is handed out: read when they are asked for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from saltus.core.errors import BadInput

if TYPE_CHECKING:
    from saltus.data._content import Bytes

PARTS = ("train", "val")
ENDS = (".jpeg", ".jpg", ".png", ".webp", ".bmp")
RESIZED = 256 / 224  # what the centre is cut from, over the cut itself (Krizhevsky et al. 2012)


@dataclass(frozen=True, eq=False, repr=False)
class Folder:
    """Labelled pictures that stay on the disk.

    **Arguments:** `files`, `test_files`: paths; `y`, `test_y`: int32 indices into `classes`.
    """

    name: str
    classes: tuple[str, ...]
    files: tuple[Path, ...]
    y: np.ndarray
    test_files: tuple[Path, ...]
    test_y: np.ndarray

    def read(self, which: Sequence[int], size: int, *, test: bool = False, seed: int | None = None) -> Bytes:
        """The pictures of these numbers as uint8 `[n, size, size, 3]`.

        **Arguments:** `seed`: a random part of each picture, mirrored by a coin, as in the training of
        Inception (Szegedy et al. 2015); without it, the centre. The part depends on the seed and the number
        of the picture alone.
        """
        if size < 1:
            raise BadInput(f"pictures need a size of 1 or more, not {size}")
        files = self.test_files if test else self.files
        numbers = [int(k) for k in which]
        if wrong := [k for k in numbers if not 0 <= k < len(files)]:
            raise BadInput(f"there is no picture {wrong[0]} among {len(files):,}")

        def one(k: int) -> Bytes:
            rng = None if seed is None else np.random.default_rng([seed, k])
            return _decoded(files[k], size, rng)

        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:  # decoders release the lock
            found = list(pool.map(one, numbers))
        return np.stack(found) if found else np.zeros((0, size, size, 3), np.uint8)

    def __repr__(self) -> str:
        return (
            f"Folder({self.name}: {len(self.files):,} + {len(self.test_files):,} pictures, "
            f"{len(self.classes)} classes)"
        )


def folder(path: str | Path, name: str = "") -> Folder:
    """A tree of pictures: PATH/train/CLASS/*.jpg, and PATH/val/CLASS/*.jpg where there are some to test.

    Classes are numbered in the order of their folders' names.
    """
    root = Path(path).expanduser()
    if not (root / "train").is_dir():
        raise BadInput(f"{root} holds no folder train; pictures lie in {root}/train/CLASS/NAME.jpg")
    classes = tuple(sorted(e.name for e in os.scandir(root / "train") if _is_class(e)))
    if not classes:
        raise BadInput(f"{root}/train holds no folder of a class")
    found = {}
    for part in PARTS:
        paths: list[Path] = []
        labels: list[int] = []
        if (root / part).is_dir():
            strange = sorted({e.name for e in os.scandir(root / part) if _is_class(e)} - set(classes))
            if strange:
                raise BadInput(f"{root}/{part} holds the class {strange[0]!r}, which train does not have")
            for number, label in enumerate(classes):
                here = root / part / label
                names = sorted(n for n in os.listdir(here) if _is_picture(n)) if here.is_dir() else []
                paths += [here / n for n in names]
                labels += [number] * len(names)
        found[part] = (tuple(paths), np.asarray(labels, np.int32))
    if not found["train"][0]:
        raise BadInput(f"{root}/train holds no picture ({', '.join(ENDS)})")
    return Folder(name or root.name, classes, *found["train"], *found["val"])


def _is_class(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir() and not entry.name.startswith(".")


def _is_picture(name: str) -> bool:
    return name.lower().endswith(ENDS) and not name.startswith(".")


def _decoded(file: Path, size: int, rng: np.random.Generator | None) -> Bytes:
    from PIL import Image

    try:
        with Image.open(file) as opened:
            # A JPEG can be read at a half, a quarter, ... of its size, which is most of the work.
            opened.draft("RGB", (2 * size, 2 * size))
            whole = opened.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise BadInput(f"the picture {file} cannot be read ({str(error)[:80]})") from error
    box, mirrored = _centre(*whole.size) if rng is None else _part(*whole.size, rng)
    cut = whole.resize((size, size), Image.Resampling.BILINEAR, box=box, reducing_gap=2.0)
    pixels = np.asarray(cut, np.uint8)
    return pixels[:, ::-1] if mirrored else pixels


Box = tuple[float, float, float, float]


def _centre(width: int, height: int) -> tuple[Box, bool]:
    side = min(width, height) / RESIZED
    left, top = (width - side) / 2, (height - side) / 2
    return (left, top, left + side, top + side), False


def _part(width: int, height: int, rng: np.random.Generator) -> tuple[Box, bool]:
    """8 to 100% of the area, at a ratio of the sides from 3/4 to 4/3, anywhere."""
    mirrored = bool(rng.random() < 0.5)
    for _ in range(10):
        area, ratio = width * height * rng.uniform(0.08, 1.0), np.exp(rng.uniform(-1, 1) * np.log(4 / 3))
        w, h = float(np.sqrt(area * ratio)), float(np.sqrt(area / ratio))
        if w <= width and h <= height:
            left, top = rng.uniform(0, width - w), rng.uniform(0, height - h)
            return (left, top, left + w, top + h), mirrored
    side = float(min(width, height))
    left, top = (width - side) / 2, (height - side) / 2
    return (left, top, left + side, top + side), mirrored
