from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import saltus
from said import Said
from saltus.core import lab, record, store
from saltus.core.errors import BadInput

CLI = Callable[..., Said]


@pytest.fixture
def line(plain_file: Path, tmp_path: Path) -> list[str]:
    return ["run", str(plain_file), "--quiet", "--no-figure", "--out", str(tmp_path / "out")]


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_failed_write_leaves_nothing_and_loses_nothing(tmp_path: Path) -> None:
    place = tmp_path / "place"
    store.write_whole(place, lambda folder: (folder / "a").write_text("old") and None)
    with pytest.raises(ZeroDivisionError):
        store.write_whole(place, lambda folder: 1 // 0 and None)
    assert files(tmp_path) == {"place/a": b"old"}
    store.write_whole(place, lambda folder: (folder / "a").write_text("new") and None)
    assert files(tmp_path) == {"place/a": b"new"}
    with pytest.raises(BadInput):
        store.write_file(tmp_path / "place", b"x")
    assert files(tmp_path) == {"place/a": b"new"}


def test_a_cut_off_replacement_is_put_back_by_whoever_reads(Plain: Any, tmp_path: Path) -> None:
    path = saltus.run(Plain(), out=tmp_path).record.path
    away = path.with_name(f".{path.name}.old")
    path.rename(away)
    saltus.load(path)
    path.rename(away)
    assert store.Store(tmp_path).records() == [path]
    path.rename(away)
    # A living process is between its two renames: nobody meddles.
    with store.lock(path):
        path.rename(away)
        assert store.Store(tmp_path).records() == []
        with pytest.raises(BadInput, match="no record"):
            saltus.load(path)
        assert away.exists()


def test_the_key_depends_on_study_version_and_settings() -> None:
    keys = {store.key_of(*x) for x in [("a", 1, {}), ("b", 1, {}), ("a", 2, {}), ("a", 1, {"x": 1})]}
    assert len(keys) == 4
    assert store.key_of("a", 1, {"x": 1, "y": 2}) == store.key_of("a", 1, {"y": 2, "x": 1})


def test_nothing_is_computed_twice(
    cli: CLI, line: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = tmp_path / "calls"
    monkeypatch.setenv("SALTUS_TEST_CALLS", str(calls))
    first = cli(*line, "--json").objects[0]
    second = cli(*line, "--json", "--colour", "red").objects[0]
    assert (first["computed"], second["computed"]) == (True, False)
    assert first["record"] == second["record"]
    assert len(calls.read_text().split()) == 3
    third = cli(*line, "--json", "--again").objects[0]
    assert third["computed"]
    assert len(calls.read_text().split()) == 6
    cli(*line, "--runs", 9)
    assert len(store.Store(tmp_path / "out").records()) == 2


# --- folders that cannot be a store -------------------------------------------------------------------


def a_file(out: Path) -> None:
    out.write_text("precious")


def below_a_file(out: Path) -> str:
    out.write_text("precious")
    return str(out / "below")


def a_loop(out: Path) -> None:
    out.symlink_to(out)


def a_dead_link(out: Path) -> str:
    out.symlink_to("/proc/nowhere/at/all")
    return str(out)


FOLDERS: dict[str, Callable[[Path], str | None]] = {
    "a file": a_file,
    "below a file": below_a_file,
    "a symlink loop": a_loop,
    "a link to nowhere": a_dead_link,
    "a very long name": lambda out: str(out / ("x" * 300)),
    "a very long path": lambda out: str(out / "/".join(["x" * 200] * 40)),
    "where nothing can be made": lambda out: "/proc/saltus",
    "the home of nobody": lambda out: "~nobody-of-that-name/x",
    "a null character": lambda out: "a\0b",
    "nothing": lambda out: "",
    "a device": lambda out: "/dev/null",
}


@pytest.mark.parametrize("kind", FOLDERS)
def test_out_that_cannot_be_a_store(kind: str, cli: CLI, plain_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    named = FOLDERS[kind](out)
    before = files(tmp_path)
    cli("run", plain_file, "--out", named if named is not None else out).refused()
    assert files(tmp_path) == before
    if kind not in ("where nothing can be made", "a device"):
        cli("report", "--out", named if named is not None else out).refused()


@pytest.mark.parametrize("code", [errno.EACCES, errno.ENOSPC])
@pytest.mark.parametrize("call", ["mkdir", "open", "rename", "replace", "fsync"])
def test_a_disk_that_says_no(
    call: str, code: int, cli: CLI, line: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever fails, at whichever moment: one line, and what was there stays."""
    out, line = tmp_path / "out", [*line, "--parts", "1"]
    assert cli(*line).status == 0
    before = files(out)
    real = getattr(os, call)
    left = {"mkdir": 2, "open": 3, "rename": 0, "replace": 0, "fsync": 5}[call]

    def fail(path: Any, *args: Any, **options: Any) -> Any:
        nonlocal left
        if isinstance(path, int) or str(path).startswith(str(out)):
            left -= 1
            if left < 0:
                raise OSError(code, os.strerror(code), path if isinstance(path, str) else None)
        return real(path, *args, **options)

    with monkeypatch.context() as patched:
        patched.setattr(os, call, fail)
        said = cli(*line, "--again")
    said.refused()
    assert len(said.err.splitlines()) == 1
    after = {n: b for n, b in files(out).items() if ".parts/" not in n}
    assert after == before
    assert cli(*line, "--again").status == 0
    assert not [p for p in (out / "tests/plain").iterdir() if p.name.startswith(".") or p.suffix]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=900k", "tmpfs", str(disk)]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no right to mount a small disk")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk(
    small_disk: Path, cli: CLI, plain_file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls = tmp_path / "calls"
    monkeypatch.setenv("SALTUS_TEST_CALLS", str(calls))
    line = ["run", plain_file, "--quiet", "--no-figure", "--out", small_disk]
    statuses = set()
    for filler in (180, 140, 100, 60, 0):
        (small_disk / "filler").write_bytes(b"x" * filler * 4096)
        said = cli(*line, "--parts", 4, "--runs", 16)
        if said.status != 0:
            assert "no space left" in said.refused()
            assert not list(small_disk.glob("**/.*.new-*"))
            assert not store.Store(small_disk).records()
        statuses.add(said.status)
    assert statuses == {0, 2}
    # The parts that fitted were kept through all of it.
    assert len(calls.read_text().split()) < 4 * 4


def test_a_record_of_another_study_is_left_alone(
    cli: CLI, line: list[str], Plain: Any, tmp_path: Path
) -> None:
    place = store.Store(tmp_path / "out").place("tests/plain", lab.key(Plain()))
    other = saltus.run(Plain(runs=9), out=tmp_path / "else").record
    record.write(place, other.data, {**other.manifest, "study": "tests/other"})
    before = files(tmp_path / "out")
    assert "belongs to study tests/other" in cli(*line).refused()
    assert "belongs to study tests/other" in cli(*line, "--again").refused()
    assert files(tmp_path / "out") == before


def test_a_foreign_folder_of_that_name_is_left_alone(
    cli: CLI, line: list[str], Plain: Any, tmp_path: Path
) -> None:
    place = store.Store(tmp_path / "out").place("tests/plain", lab.key(Plain()))
    place.mkdir(parents=True)
    (place / "precious").write_text("mine")
    assert "not a saltus record" in cli(*line).refused()
    assert "not a saltus record" in cli(*line, "--again").refused()
    assert files(place) == {"precious": b"mine"}


def test_a_damaged_record_is_told_and_replaced_when_asked(cli: CLI, line: list[str]) -> None:
    path = Path(cli(*line, "--json").objects[0]["record"])
    (path / "manifest.json").write_text("{")
    assert "damaged" in cli(*line).refused()
    assert "--again" in cli(*line).refused()
    assert cli(*line, "--again").status == 0
    assert cli(*line).status == 0


def test_a_damaged_part_is_made_anew(cli: CLI, line: list[str], Plain: Any, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    made = []

    def compute() -> Any:
        made.append(1)
        return Plain().part(0)

    for _ in range(2):
        first = lab.Lab(folder).keep("one", compute)
    assert len(made) == 1
    (folder / next(folder.iterdir()).name / "manifest.json").write_text("{}")
    assert lab.Lab(folder).keep("one", compute).identical(first)
    assert len(made) == 2
    once = lab.Lab(folder)
    once.keep("one", compute)
    with pytest.raises(ValueError, match="two parts"):
        once.keep("one", compute)


def test_out_inside_a_record(cli: CLI, line: list[str], plain_file: Path) -> None:
    path = Path(cli(*line, "--json").objects[0]["record"])
    before = files(path)
    for inside in (path, path / "data.zarr", path / "new"):
        assert "record of tests/plain" in cli("run", plain_file, "--out", inside).refused()
    assert files(path) == before


def test_a_store_with_links_in_circles_and_foreign_things(cli: CLI, line: list[str], tmp_path: Path) -> None:
    cli(*line)
    out = tmp_path / "out"
    (out / "loop").symlink_to(out)
    (out / "tests" / "self").symlink_to(out / "tests" / "self")
    (out / "foreign").mkdir()
    (out / "foreign" / "manifest.json").write_text('{"name": "a browser extension"}')
    assert len([p for p in store.Store(out).records() if p.parent.name == "plain"]) == 1
    said = cli("report", "--out", out)
    assert said.status == 0
    assert "left out" in said.err


def test_a_resumed_run_by_other_software_starts_its_parts_anew(
    cli: CLI, line: list[str], tmp_path: Path, Plain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = tmp_path / "calls"
    monkeypatch.setenv("SALTUS_TEST_CALLS", str(calls))
    stopped = []

    def stop(*args: Any) -> Any:
        stopped.append(args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(lab, "_manifest", stop)
        assert cli(*line).status == 130
    (stamp,) = (tmp_path / "out").glob("**/made-with.json")
    stamp.write_text(stamp.read_text().replace("zarr", "zorro"))
    assert cli(*line).status == 0
    assert len(calls.read_text().split()) == 6


def test_parts_keep_their_device(Plain: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def compute() -> Any:
        made.append(1)
        return Plain().part(0)

    monkeypatch.setattr(record, "device", lambda: {"platform": "gpu", "kind": "another", "count": 1})
    lab.Lab(tmp_path).keep("one", compute)
    lab.Lab(tmp_path).keep("one", compute)
    assert len(made) == 1
    monkeypatch.setattr(record, "device", lambda: {"platform": "cpu", "kind": "cpu", "count": 2})
    lab.Lab(tmp_path).keep("one", compute)
    assert len(made) == 2
