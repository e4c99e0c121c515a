#!/usr/bin/env python3
"""Set up and run, on a fresh machine with only Python 3.11+ and pip.

    python3 run.py tour         set up, then take the tour
    python3 run.py test         set up, then run the tests
    python3 run.py test-slow    the slow tests too
    python3 run.py check        lint, types, import contract
    python3 run.py bench        the benchmarks, peers side by side
    python3 run.py saltus ...   any saltus command

Everything goes into .venv beside this file; the system's Python is left alone.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
VENV = HERE / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")


def run(*words: str | Path, **options: object) -> int:
    return subprocess.run([str(w) for w in words], cwd=HERE, **options).returncode  # type: ignore[call-overload]


def need(*words: str | Path) -> None:
    if run(*words):
        sys.exit(f"run.py: this step failed: {' '.join(map(str, words))}")


def make_environment(extra: str) -> None:
    """Create .venv once, and install again only when the project's needs change."""
    stamp = VENV / f".installed-{extra or 'plain'}"
    wanted = hashlib.sha256((HERE / "pyproject.toml").read_bytes() + sys.version.encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print("Setting up .venv (about a minute the first time)", file=sys.stderr)
    if not PYTHON.exists():
        shutil.rmtree(VENV, ignore_errors=True)
        # Some systems ship Python without ensurepip: then this Python's own pip installs into .venv.
        if run(sys.executable, "-m", "venv", VENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
            shutil.rmtree(VENV, ignore_errors=True)
            need(sys.executable, "-m", "venv", "--without-pip", VENV)
    target = f".[{extra}]" if extra else "."
    own_pip = run(PYTHON, "-m", "pip", "--version", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0
    pip = [PYTHON, "-m", "pip"] if own_pip else [sys.executable, "-m", "pip", "--python", PYTHON]
    need(*pip, "install", "--quiet", "--disable-pip-version-check", "--editable", target)
    stamp.write_text(wanted)


def check() -> int:
    steps = (
        ("ruff", "check", "."),
        ("ruff", "format", "--check", "."),
        ("mypy", "src"),
        ("lint-imports",),
    )
    return max(run(BIN / words[0], *words[1:]) for words in steps)


def main() -> int:
    if sys.version_info < (3, 11):  # noqa: UP036
        sys.exit(f"run.py: Python 3.11 or newer is needed, this is {sys.version.split()[0]}")
    words = sys.argv[1:]
    if not words or words[0] not in ("tour", "test", "test-slow", "check", "bench", "saltus"):
        print(__doc__)
        return 0 if words in ([], ["--help"], ["-h"]) else 2
    verb, rest = words[0], words[1:]
    make_environment("" if verb in ("tour", "saltus") else "dev")
    if verb == "tour":
        return run(PYTHON, "-m", "saltus", "tour", *rest)
    if verb == "saltus":
        return run(PYTHON, "-m", "saltus", *rest)
    if verb == "check":
        return check()
    if verb == "bench":
        return run(PYTHON, HERE / "benchmarks" / "run.py", *rest)
    slow = [] if verb == "test" else ["-m", "slow or not slow"]
    return run(PYTHON, "-m", "pytest", "-n", "2", "--dist", "loadfile", "-q", *slow, *rest)


if __name__ == "__main__":
    sys.exit(main())
