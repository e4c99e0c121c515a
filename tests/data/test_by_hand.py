"""Data sets that no registry has: what a user must put where, and that the files are read."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import data_files
import numpy as np
import pytest
from PIL import Image

from saltus import data
from saltus.core.errors import BadInput
from saltus.data import _catalogue, _facts, shelf

LINES = {"train": 40, "valid": 6, "test": 7}


@pytest.fixture
def small_wiki(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_facts, "WIKI_LINES", LINES)


@pytest.fixture
def small_cifar100(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_facts, "CIFAR100_EACH", {"train": 5, "test": 1})


@pytest.fixture
def small_imagenet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_facts, "IMAGENET", {"train": 6, "val": 2})
    monkeypatch.setattr(_facts, "IMAGENET_CLASSES", 2)


@pytest.mark.parametrize("name", ["cifar100", "wikitext-103", "imagenet"])
def test_fetch_says_what_to_put_where(name: str, cache: Path) -> None:
    with pytest.raises(BadInput) as caught:
        shelf.command(["fetch", name], as_json=False)
    said = str(caught.value)
    assert said.startswith(f"no registry has {name}: put ")
    assert str(cache / name) in said
    assert "\n" not in said


def test_list_says_so(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shelf.command(["list"], as_json=False)
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    for name in ("cifar100", "wikitext-103", "imagenet"):
        assert "to be put there by hand" in lines[name]
    shelf.command(["list"], as_json=True)
    rows = {r["name"]: r for r in map(json.loads, capsys.readouterr().out.splitlines())}
    assert rows["imagenet"]["path"] == str(cache / "imagenet")
    assert not rows["cifar100"]["here"]
    assert rows["plays"]["here"]


@pytest.mark.usefixtures("small_cifar100")
@pytest.mark.parametrize("form", ["files", "archive"])
def test_cifar100(form: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content, files = data_files.cifar100()
    folder = cache / "cifar100"
    folder.mkdir(parents=True)
    if form == "files":
        for name, held in files.items():
            (folder / name).write_bytes(held)
    else:
        packed = data_files.tgz(files, "cifar-100-binary")
        (folder / "cifar-100-binary.tar.gz").write_bytes(packed)
        with pytest.raises(BadInput, match="is not the archive of cifar100"):
            data.load("cifar100")
        entry = _catalogue.ENTRIES["cifar100"]
        published = replace(entry, archives=(hashlib.md5(packed).hexdigest(),))
        monkeypatch.setitem(_catalogue.ENTRIES, "cifar100", published)
    for _ in range(2):  # from the folder, then from the cache
        found = data.load("cifar100")
        assert len(found.classes) == 100
        for ours, name in ((found.x, "train_x"), (found.y, "train_y"), (found.test_x, "test_x")):
            np.testing.assert_array_equal(ours, content[name])
        for held in folder.iterdir():
            held.unlink()
    assert (cache / "cifar100.npz").exists()


@pytest.mark.usefixtures("small_cifar100")
def test_other_data_are_not_cifar100(cache: Path) -> None:
    folder = cache / "cifar100"
    folder.mkdir(parents=True)
    short, right = data_files.cifar100((4, 1))[1], data_files.cifar100()[1]
    ungrouped = np.frombuffer(right["train.bin"], np.uint8).reshape(-1, 3074).copy()
    ungrouped[0, 0] = (ungrouped[0, 0] + 1) % 20
    for files, says in (
        (short, "its train set does not hold 5"),
        ({**right, "train.bin": ungrouped.tobytes()}, "its train set does not put each class"),
        ({**right, "test.bin": right["test.bin"][:-1]}, "not a whole number of images"),
        ({"train.bin": right["train.bin"], "test.bin": b""}, "not a whole number"),
    ):
        for name, held in files.items():
            (folder / name).write_bytes(held)
        with pytest.raises(BadInput, match=says):
            data.load("cifar100")


@pytest.mark.usefixtures("small_wiki")
@pytest.mark.parametrize("form", ["files", "archive", "tokens"])
def test_wikitext(form: str, cache: Path) -> None:
    files = data_files.wikitext(LINES)
    if form == "tokens":
        files = {name.replace(".raw", ".tokens"): held for name, held in files.items()}
    folder = cache / "wikitext-103"
    folder.mkdir(parents=True)
    if form == "archive":
        (folder / "wikitext-103-raw-v1.zip").write_bytes(data_files.zipped(files, "wikitext-103-raw"))
    else:
        for name, held in files.items():
            (folder / name).write_bytes(held)
    for _ in range(2):
        found = data.load("wikitext-103")
        assert {part: text.count("\n") for part, text in found.parts.items()} == LINES
        assert found.parts["valid"].startswith(" = Title = é")


@pytest.mark.usefixtures("small_wiki")
def test_other_data_are_not_wikitext(cache: Path) -> None:
    folder = cache / "wikitext-103"
    folder.mkdir(parents=True)
    for name, held in data_files.wikitext({**LINES, "valid": 60}).items():
        (folder / name).write_bytes(held)
    with pytest.raises(BadInput, match=r"wiki\.valid has 60 lines, should have 6"):
        data.load("wikitext-103")


def tree(root: Path, counts: dict[str, int], kind: str = "JPEG") -> Path:
    """Pictures of one colour each: the class in red, the number in green."""
    for number, label in enumerate(("n01", "n02")):
        for part, n in counts.items():
            (root / part / label).mkdir(parents=True)
            for k in range(n):
                picture = Image.new("RGB", (70 + 10 * k, 50), (100 * number, 40 * k, 7))
                picture.save(root / part / label / f"{k}.{kind}")
    return root


@pytest.mark.usefixtures("small_imagenet")
def test_imagenet(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree(cache / "imagenet", {"train": 3, "val": 1})
    found = data.load("imagenet")
    assert found.classes == ("n01", "n02")
    assert found.y.tolist() == [0, 0, 0, 1, 1, 1]
    assert found.test_y.tolist() == [0, 1]
    shelf.command(["fetch", "imagenet"], as_json=False)
    assert capsys.readouterr().out.startswith("Folder(imagenet: 6 + 2 pictures, 2 classes)")
    (cache / "imagenet/val/n02/0.JPEG").unlink()
    with pytest.raises(BadInput, match=r"6 \+ 1 pictures.*saltus\.data\.folder\(PATH\)"):
        data.load("imagenet")


def test_pictures_are_read_and_cut(tmp_path: Path) -> None:
    found = data.folder(tree(tmp_path / "mine", {"train": 3}, "png"))
    assert (found.name, len(found.test_files)) == ("mine", 0)
    pixels = found.read(range(6), 16)
    assert pixels.shape == (6, 16, 16, 3)
    assert pixels.dtype == np.uint8
    np.testing.assert_array_equal(pixels[:, 5, 5, 0], 100 * found.y)
    np.testing.assert_array_equal(pixels[:, 9, 3, 1], [0, 40, 80] * 2)
    assert found.read([], 16).shape == (0, 16, 16, 3)


def test_the_centre_and_random_parts(tmp_path: Path) -> None:
    """A ramp from left to right tells which part was cut, and whether it was mirrored."""
    (tmp_path / "train" / "a").mkdir(parents=True)
    ramp = np.broadcast_to(np.arange(256, dtype=np.uint8)[None, :, None], (128, 256, 3))
    for k in range(40):
        Image.fromarray(np.ascontiguousarray(ramp)).save(tmp_path / "train" / "a" / f"{k:02}.png")
    found = data.folder(tmp_path)
    centre = found.read([0], 56)[0, :, :, 0].astype(float)
    side = 128 / (256 / 224)
    assert centre[0, 0] == pytest.approx(128 - side / 2, abs=2)
    assert centre[0, -1] == pytest.approx(128 + side / 2, abs=2)
    parts = found.read(range(40), 56, seed=3).astype(float)[..., 0]
    np.testing.assert_array_equal(parts, found.read(range(40), 56, seed=3)[..., 0])
    np.testing.assert_array_equal(parts[7], found.read([7], 56, seed=3)[0, ..., 0])
    assert len({p.tobytes() for p in parts}) == 40
    mirrored = parts[:, 0, 0] > parts[:, 0, -1]
    assert 8 <= mirrored.sum() <= 32
    width = abs(parts[:, 0, -1] - parts[:, 0, 0])
    assert width.min() > 25
    assert width.max() <= 172  # all of the height, at 4/3


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda p: None, "holds no folder train"),
        (lambda p: (p / "train").mkdir(), "no folder of a class"),
        (lambda p: (p / "train" / "a").mkdir(parents=True), "holds no picture"),
        (lambda p: [tree(p, {"train": 1}), (p / "val" / "n99").mkdir(parents=True)], "the class 'n99'"),
    ],
)
def test_trees_that_are_none(make: object, says: str, tmp_path: Path) -> None:
    make(tmp_path)  # type: ignore[operator]
    with pytest.raises(BadInput, match=says):
        data.folder(tmp_path)


def test_damaged_pictures_are_one_line(tmp_path: Path) -> None:
    root = tree(tmp_path, {"train": 1})
    (root / "train/n01/0.JPEG").write_bytes(b"\xff\xd8 no picture")
    with pytest.raises(BadInput, match=r"0\.JPEG cannot be read"):
        data.folder(root).read([0], 8)
    with pytest.raises(BadInput, match="size of 1 or more"):
        data.folder(root).read([0], 0)
    for beyond in (-1, 10**6):
        with pytest.raises(BadInput, match="no picture"):
            data.folder(root).read([beyond], 8)


def test_the_plays_ship() -> None:
    plays = data.load("plays")
    assert list(plays.parts) == ["hamlet", "lear", "macbeth", "tempest"]
    assert "To be, or not to be,--that is the question" in plays.parts["hamlet"]
    assert len(plays.whole.encode()) == 527_730 + 6
