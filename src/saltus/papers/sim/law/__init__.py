"""What theory says will be seen on the SIM task, as functions: one file per law."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saltus.papers.sim.law import admissible as admissible
    from saltus.papers.sim.law import affine as affine
    from saltus.papers.sim.law import assumptions as assumptions
    from saltus.papers.sim.law import bounds as bounds
    from saltus.papers.sim.law import cone as cone
    from saltus.papers.sim.law import descents as descents
    from saltus.papers.sim.law import hitting as hitting
    from saltus.papers.sim.law import inequalities as inequalities
    from saltus.papers.sim.law import lemmas as lemmas
    from saltus.papers.sim.law import one_layer as one_layer
    from saltus.papers.sim.law import stages as stages
    from saltus.papers.sim.law import two_layer as two_layer
    from saltus.papers.sim.law import unrolled as unrolled

_SUBMODULES = (
    "admissible",
    "affine",
    "assumptions",
    "bounds",
    "cone",
    "descents",
    "hitting",
    "inequalities",
    "lemmas",
    "one_layer",
    "stages",
    "two_layer",
    "unrolled",
)


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(_SUBMODULES)
