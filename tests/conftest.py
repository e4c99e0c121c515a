"""What the tests of the laboratory's core share."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from said import Said
from saltus import python
from saltus.cli import main

# No deadline: a busy machine is not a bug.
settings.register_profile(
    "quick", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.load_profile("quick")

# A job in the background of a script is started deaf to Ctrl-C, and so would be what the tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

STUDIES = Path(__file__).parent / "studies"


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Carry out a command line in this process."""

    def run(*words: object) -> Said:
        capfd.readouterr()
        status = main([str(w) for w in words])
        out, err = capfd.readouterr()
        return Said(status, out, err)

    return run


@pytest.fixture(scope="session")
def plain_file() -> Path:
    return STUDIES / "plain.py"


@pytest.fixture(scope="session")
def quick_file() -> Path:
    return STUDIES / "quick.py"


@pytest.fixture(scope="session")
def Plain(plain_file: Path) -> Any:
    return python.from_file(plain_file)[0].cls


@pytest.fixture(scope="session")
def Quick(quick_file: Path) -> Any:
    return python.from_file(quick_file)[0].cls
