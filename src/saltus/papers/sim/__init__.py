"""Structured Identity Mapping: concepts learnt one after another (Yang et al., ICLR 2025)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saltus.papers.sim import law as law
    from saltus.papers.sim import symmetric as symmetric
    from saltus.papers.sim import training as training
    from saltus.papers.sim import world as world
    from saltus.papers.sim.overlay import jacobian as jacobian
    from saltus.papers.sim.overlay import output_at_corner as output_at_corner
    from saltus.papers.sim.overlay import theorem as theorem
    from saltus.papers.sim.world import World as World

_SUBMODULES = ("law", "symmetric", "training", "world")
_NAMES = {"World": "world", "jacobian": "overlay", "output_at_corner": "overlay", "theorem": "overlay"}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
