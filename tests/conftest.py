"""What the tests of the laboratory's core share."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from saltus import python
from saltus.cli import main

# No deadline: a busy machine is not a bug.
settings.register_profile(
    "quick", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.load_profile("quick")

STUDIES = Path(__file__).parent / "studies"


@dataclass(frozen=True)
class Said:
    """What a command line printed, and its exit status."""

    status: int
    out: str
    err: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        """Every line of stdout as JSON; NaN and Infinity, which are not JSON, are refused."""

        def refuse(word: str) -> None:
            raise ValueError(f"{word} is not JSON")

        return [json.loads(line, parse_constant=refuse) for line in self.out.splitlines()]

    def refused(self) -> str:
        """The one line of a request that could not be carried out."""
        assert self.status == 2, self
        assert "Traceback" not in self.err
        line = self.err.splitlines()[-1]
        assert line.startswith("saltus: ")
        assert not self.out
        return line


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
