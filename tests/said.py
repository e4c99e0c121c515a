"""What a command line printed, for tests that look at it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


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
