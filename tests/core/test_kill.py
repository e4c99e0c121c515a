"""A run killed at any moment leaves the store readable, keeps its parts, and completes to the same bits."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from pathlib import Path

import forked
import pytest

import saltus
from saltus.core import store
from saltus.core.errors import BadInput

PARTS = 4


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def line(file: Path, out: Path, *more: str) -> list[str]:
    return ["run", str(file), "--out", str(out), "--no-figure", "--quiet", "--parts", str(PARTS), *more]


def records(out: Path) -> list[Path]:
    try:
        return store.Store(out).records()
    except BadInput:
        return []


def readable(out: Path) -> list[Path]:
    """Every record of the store, each read and checked against its checksum."""
    found = records(out)
    for path in found:
        saltus.load(path)
    return found


@pytest.fixture(scope="module")
def uninterrupted(
    plain_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, bytes], str, int]:
    """Arrays and checksum of a run left in peace, and how many steps it takes on the disk."""
    folder = tmp_path_factory.mktemp("whole")
    count = folder / "count"
    words = line(plain_file, folder / "out")
    status = forked.run(words, folder / "said", under=str(folder / "out"), count=str(count))
    assert status == 0, (folder / "said").read_text()
    (path,) = readable(folder / "out")
    return tree(path / "data.zarr"), saltus.load(path).attrs["manifest"]["digest"], int(count.read_text())


def complete(
    words: list[str], tmp_path: Path, env: dict[str, str], uninterrupted: tuple[dict[str, bytes], str, int]
) -> None:
    """Run again, and compare with the run left in peace."""
    assert forked.run(words, tmp_path / "said", env) == 0, (tmp_path / "said").read_text()
    (path,) = readable(tmp_path / "out")
    assert tree(path / "data.zarr") == uninterrupted[0]
    assert saltus.load(path).attrs["manifest"]["digest"] == uninterrupted[1]
    held = sorted(p.name for p in path.parent.iterdir())
    assert held == [path.name], "something was left behind"


def steps(total: int, slow: bool) -> list[int]:
    return list(range(1, total + 1)) if slow else sorted(random.Random(0).sample(range(1, total + 1), 5))


def kill_at_steps(
    plain_file: Path, tmp_path: Path, uninterrupted: tuple[dict[str, bytes], str, int], slow: bool
) -> None:
    for step in steps(uninterrupted[2], slow):
        folder = tmp_path / str(step)
        folder.mkdir()
        calls, out = folder / "calls", folder / "out"
        env = {"SALTUS_TEST_CALLS": str(calls)}
        words = line(plain_file, out)
        assert forked.run(words, folder / "said", env, under=str(out), die_at=step) == -signal.SIGKILL
        done = len(list(out.glob("**/*.part/manifest.json")))
        finished = bool(readable(out))
        before = calls.read_text().split() if calls.exists() else []
        complete(words, folder, env, uninterrupted)
        again = calls.read_text().split()[len(before) :] if calls.exists() else []
        # What was finished is not computed again: of the rest, every part exactly once.
        assert len(again) == (0 if finished else PARTS - done)
        assert len(set(again)) == len(again)


def test_killed_at_steps_on_the_disk(
    plain_file: Path, tmp_path: Path, uninterrupted: tuple[dict[str, bytes], str, int]
) -> None:
    kill_at_steps(plain_file, tmp_path, uninterrupted, slow=False)


@pytest.mark.slow
def test_killed_at_every_step_on_the_disk(
    plain_file: Path, tmp_path: Path, uninterrupted: tuple[dict[str, bytes], str, int]
) -> None:
    kill_at_steps(plain_file, tmp_path, uninterrupted, slow=True)


def test_killed_while_a_record_is_replaced(
    plain_file: Path, tmp_path: Path, uninterrupted: tuple[dict[str, bytes], str, int]
) -> None:
    calls, out = tmp_path / "calls", tmp_path / "out"
    env = {"SALTUS_TEST_CALLS": str(calls)}
    assert forked.run(line(plain_file, out), tmp_path / "said") == 0
    (path,) = readable(out)
    words = line(plain_file, out, "--again")
    count = tmp_path / "count"
    assert forked.run(words, tmp_path / "said", env, under=str(out), count=str(count)) == 0
    assert len(calls.read_text().split()) == PARTS
    total = int(count.read_text())
    # The last steps are those of the replacement itself.
    for step in [total // 3, *range(total - 12, total, 4)]:
        status = forked.run(words, tmp_path / "said", env, under=str(out), die_at=step)
        assert readable(out) == [path], step  # the old one or the new one, never none
        assert tree(path / "data.zarr") == uninterrupted[0]
        if status == 0:  # a resumed --again takes fewer steps
            continue
        assert status == -signal.SIGKILL
    complete(words, tmp_path, env, uninterrupted)


def test_an_interrupted_replacement_goes_on(plain_file: Path, tmp_path: Path) -> None:
    calls, out = tmp_path / "calls", tmp_path / "out"
    env = {"SALTUS_TEST_CALLS": str(calls), "SALTUS_TEST_DELAY": "0.1"}
    assert forked.run(line(plain_file, out), tmp_path / "said") == 0
    words = line(plain_file, out, "--again")
    process = forked.start(words, tmp_path / "said", env)
    wait_for(lambda: list(out.glob("**/*.part/manifest.json")))
    process.kill()
    process.join()
    # Without --again the old record is the answer, and the parts of its replacement stay.
    assert forked.run(line(plain_file, out), tmp_path / "said", env) == 0
    done = len(list(out.glob("**/*.part/manifest.json")))
    assert done
    before = len(calls.read_text().split())
    assert forked.run(words, tmp_path / "said", env) == 0
    assert len(calls.read_text().split()) - before == PARTS - done
    # And a finished one starts anew.
    assert forked.run(words, tmp_path / "said", env) == 0
    assert len(calls.read_text().split()) - before == 2 * PARTS - done


def wait_for(condition: object, seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not seen(condition):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


def seen(condition: object) -> bool:
    """The condition, or no: folders that another process is renaming vanish under the search."""
    try:
        return bool(condition())  # type: ignore[operator]
    except FileNotFoundError:
        return False


def kill_at_moments(
    plain_file: Path, tmp_path: Path, uninterrupted: tuple[dict[str, bytes], str, int], times: int
) -> None:
    rng = random.Random(1)
    calls, out = tmp_path / "calls", tmp_path / "out"
    env = {"SALTUS_TEST_CALLS": str(calls), "SALTUS_TEST_DELAY": "0.02"}
    words = line(plain_file, out)
    for _ in range(times):
        process = forked.start(words, tmp_path / "said", env)
        time.sleep(rng.uniform(0, 0.6))
        process.kill()
        process.join()
        readable(out)
        if rng.random() < 0.3 and records(out):
            shutil.rmtree(out)
    complete(words, tmp_path, env, uninterrupted)


def test_killed_at_random_moments(
    plain_file: Path, tmp_path: Path, uninterrupted: tuple[dict[str, bytes], str, int]
) -> None:
    kill_at_moments(plain_file, tmp_path, uninterrupted, 6)


@pytest.mark.slow
def test_killed_at_many_random_moments(
    plain_file: Path, tmp_path: Path, uninterrupted: tuple[dict[str, bytes], str, int]
) -> None:
    kill_at_moments(plain_file, tmp_path, uninterrupted, 150)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_runs_say_so_and_go_on(
    number: int, plain_file: Path, tmp_path: Path, uninterrupted: tuple[dict[str, bytes], str, int]
) -> None:
    out = tmp_path / "out"
    words = line(plain_file, out)
    process = forked.start(words, tmp_path / "said", {"SALTUS_TEST_DELAY": "0.2"})
    wait_for(lambda: list(out.glob("**/*.part/manifest.json")))
    assert process.pid
    os.kill(process.pid, number)
    process.join(20)
    said = (tmp_path / "said").read_text()
    assert process.exitcode == 130, said
    assert said.startswith("saltus: interrupted; ")
    assert "the same command goes on from there" in said
    assert "kept" in said
    assert said.count("\n") == 1
    complete(words, tmp_path, {}, uninterrupted)


STUCK = '''
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
import saltus

@saltus.study("tests/stuck")
@dataclass(frozen=True)
class Stuck:
    """It takes for ever."""
    where: str = "compiled"

    def run(self, lab):
        from saltus._lazy import jax, jnp, xr
        lab.keep("one", lambda: xr.Dataset({"x": 1}))

        @jax.jit
        def for_ever(x):
            return jax.lax.while_loop(lambda x: x < 2, lambda x: jnp.sin(x), x)

        def work():
            open(READY, "w").close()
            return for_ever(1.0).block_until_ready()

        if self.where == "compiled":
            return work()
        if self.where == "swallowed":
            open(READY, "w").close()
            while True:
                try:
                    time.sleep(1)
                except BaseException:
                    pass
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(lambda _: work(), range(2)))

    def claims(self, record, law):
        yield from ()
'''


@pytest.mark.parametrize("where", ["compiled", "threads", "swallowed"])
def test_interrupted_where_python_cannot_hear(where: str, tmp_path: Path) -> None:
    ready, file = tmp_path / "ready", tmp_path / "stuck.py"
    file.write_text(STUCK.replace("READY", repr(str(ready))))
    words = ["run", str(file), "--out", str(tmp_path / "out"), "--where", where, "--quiet"]
    process = forked.start(words, tmp_path / "said")
    wait_for(ready.exists, 60)
    time.sleep(0.3)
    assert process.pid
    os.kill(process.pid, signal.SIGINT)
    began = time.monotonic()
    process.join(30)
    said = (tmp_path / "said").read_text()
    assert process.exitcode == 130, said
    assert time.monotonic() - began < 10
    assert said.startswith("saltus: interrupted; ")
    assert said.count("\n") == 1
    assert list((tmp_path / "out").glob("**/*.part/manifest.json"))


def test_two_processes_on_one_record(plain_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = line(plain_file, out)
    first = forked.start(words, tmp_path / "said", {"SALTUS_TEST_DELAY": "0.5"})
    wait_for(lambda: list(out.glob("**/*.parts/made-with.json")))
    assert forked.run(words, tmp_path / "second") == 2
    assert (tmp_path / "second").read_text().startswith(f"saltus: process {first.pid} is computing")
    # Reading goes on meanwhile, and a store without finished records is no fault.
    assert forked.run(["report", "--out", str(out)], tmp_path / "third") == 2
    assert "no records" in (tmp_path / "third").read_text()
    first.join(60)
    assert first.exitcode == 0
    assert readable(out)


def test_many_processes_compute_once_each(plain_file: Path, tmp_path: Path) -> None:
    """However they meet, a part is never computed by two of them at once, and the record is whole."""
    out, calls = tmp_path / "out", tmp_path / "calls"
    words = line(plain_file, out)
    env = {"SALTUS_TEST_CALLS": str(calls)}
    crowd = [forked.start(words, tmp_path / f"said{i}", env) for i in range(6)]
    for process in crowd:
        process.join(60)
    assert {p.exitcode for p in crowd} <= {0, 2}
    assert 0 in {p.exitcode for p in crowd}
    assert sorted(calls.read_text().split()) == [str(k) for k in range(PARTS)]
    readable(out)
