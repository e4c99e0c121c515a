"""Every kind of setting and nothing to compute: what command lines are fuzzed with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import saltus
from saltus import claim
from saltus._lazy import xr
from saltus.core.stats import exact


@saltus.study("tests/quick")
@dataclass(frozen=True)
class Quick:
    """Nothing is quick."""

    rate: float = saltus.setting(1.0, "a number", above=0)
    runs: int = saltus.setting(8, "a whole number", low=1)
    noisy: bool = saltus.setting(True, "a switch")
    name: str = saltus.setting("growth", "a word")
    kind: str = saltus.setting("up", "a choice", choices=("up", "down"))
    mode: Literal["fine", "coarse"] = saltus.setting("fine", "a choice by its type")
    cut: float | None = saltus.setting(None, "a number or none", low=0)
    size: int | None = saltus.setting(3, "a whole number or none", high=1000)
    widths: tuple[int, ...] = saltus.setting((1, 2), "whole numbers", low=0)
    span: tuple[float, float] = saltus.setting((0.0, 1.0), "two numbers")
    mu: tuple[tuple[float, float], ...] = saltus.setting(((1.0, 2.0),), "pairs")
    layers: tuple[tuple[int, ...], ...] = saltus.setting(((1,), (2, 3)), "ragged whole numbers")
    words: tuple[str, ...] = saltus.setting(("a", "b"), "words")
    flags: tuple[bool, ...] = saltus.setting((True, False), "switches")
    cuts: tuple[float | None, ...] = saltus.setting((None, 1.0), "numbers or none")
    holds: bool = saltus.setting(True, "how the claim comes out")
    reading: str = saltus.reading()

    presets: ClassVar[dict[str, Any]] = {"reading": {"as-drawn": {"rate": 2.0}}}

    def run(self) -> Any:
        return xr.Dataset({"x": ((), self.rate)})

    def claims(self, record: Any, law: Any) -> Iterator[Any]:
        assert law is None
        yield claim.above("one", "is one", exact(float(self.holds)), 1.0, control=("zero", exact(0.0)))
