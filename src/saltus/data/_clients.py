"""Asking a package registry for an archive by name, through the registry's own client.

The client knows the registry, the mirror, the proxy and the keys of its machine; nothing here does.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from saltus.core.progress import Tick
from saltus.data._catalogue import MB, Package
from saltus.data._content import Unusable

STALLED = 300.0  # seconds without a new byte until a client is given up
_ARCHIVES = (".tgz", ".tar.gz", ".whl", ".zip", ".deb")
_INSTALL = {
    "npm": "npm is not installed (it comes with Node.js)",
    "pip": "pip is not installed (python -m ensurepip brings it)",
    "apt-get": "apt-get is not here (only Debian and its kin have it)",
}


def fetch(package: Package, folder: Path, tick: Tick) -> Path:
    """Have the client bring the archive into an empty folder.

    **Arguments:** `tick`: told the megabytes so far and those expected.
    """
    command = _command(package, folder)
    # What the client keeps on the way lies in the folder too: it shows the progress and goes with the folder.
    scratch = folder / "scratch"
    scratch.mkdir()
    environment = {**os.environ, "TMPDIR": str(scratch), "LC_ALL": "C"}
    with (folder / "said").open("w+b") as said:
        try:
            client = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
            )
        except OSError as error:
            raise Unusable(f"{package.client} cannot be started ({error.strerror})") from error
        try:
            _watch(client, package, folder, tick)
        finally:
            _stop(client)
        said.seek(0)
        words = said.read(100_000).decode("utf-8", "replace")
    if client.returncode:
        raise Unusable(
            f"{package.client} could not bring {package.name}: {_reason(client.returncode, words)}"
        )
    found = [path for path in folder.iterdir() if path.name.endswith(_ARCHIVES) and path.is_file()]
    if len(found) != 1:
        raise Unusable(f"{package.client} brought {len(found)} archives for {package.name}")
    return found[0]


def _command(package: Package, folder: Path) -> list[str]:
    program = shutil.which(package.client)
    program = os.path.abspath(program) if program else None  # the client runs in another folder
    wanted = f"{package.name}@{package.version}"
    if package.client == "pip":
        start = [program] if program else [sys.executable, "-m", "pip"]
        if not program and importlib.util.find_spec("pip") is None:
            raise Unusable(_INSTALL["pip"])
        # pip runs the setup of a source archive, so only the archive that was looked at may come.
        wanted = f"{package.name}=={package.version} --hash=sha256:{package.sha256}"
        (folder / "wanted.txt").write_text(wanted + "\n")
        quiet = [
            "--no-deps",
            "--no-input",
            "--no-cache-dir",
            "--disable-pip-version-check",
            "--progress-bar=off",
        ]
        return [*start, "download", *quiet, "--require-hashes", "-r", "wanted.txt", "-d", "."]
    if program is None:
        raise Unusable(_INSTALL[package.client])
    if package.client == "npm":
        return [program, "pack", wanted, "--ignore-scripts", "--loglevel=error", "--cache=scratch"]
    return [program, "-q", "download", package.name]


def _watch(client: subprocess.Popen[bytes], package: Package, folder: Path, tick: Tick) -> None:
    limit = (
        4 * package.size + 64_000_000
    )  # a client's own copies, and what pip needs to read a source archive
    most, last = 0, time.monotonic()
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            client.wait(0.2)
            return
        size = _size(folder)
        if size > limit:
            raise Unusable(f"{package.client} brought far more than expected for {package.name}")
        if size > most:
            most, last = size, time.monotonic()
        elif time.monotonic() - last > STALLED:
            raise Unusable(f"{package.client} brought nothing new of {package.name} for {STALLED:.0f} s")
        tick(min(size, package.size) // MB, package.size // MB)


def _size(folder: Path) -> int:
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(OSError):  # a client's file may be gone by now
                total += os.lstat(os.path.join(place, name)).st_size
    return total


def _stop(client: subprocess.Popen[bytes]) -> None:
    """End the client and whatever it started; nothing when it has ended by itself."""
    for strength in (signal.SIGTERM, signal.SIGKILL):
        if client.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(client.pid, strength)
        with contextlib.suppress(subprocess.TimeoutExpired):
            client.wait(5)


def _reason(status: int, words: str) -> str:
    """The line of a client's complaint that says most, without addresses (they may hold keys)."""
    if status < 0:
        return f"it was stopped by signal {-status}"
    lines = [" ".join(line.split()) for line in words.splitlines() if line.strip()]
    complaints = [m[1] for line in lines if (m := re.match(r"(?:npm (?:error|ERR!)|ERROR:|E:) (.*)", line))]
    telling = (
        [line for line in complaints if len(line.split()) > 3]
        or complaints
        or lines[-1:]
        or ["no reason given"]
    )
    return re.sub(r"\S*://\S*", "the registry", telling[0])[:160]
