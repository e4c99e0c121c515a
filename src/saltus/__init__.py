"""A laboratory for how neural networks learn: run a network, run its theory beside it, compare.

Nothing heavy is loaded until it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saltus import data as data
    from saltus import descent as descent
    from saltus import model as model
    from saltus import probe as probe
    from saltus import report as report
    from saltus.core.claim import Claim as Claim
    from saltus.core.compare import distance as distance
    from saltus.core.errors import BadInput as BadInput
    from saltus.core.lab import Lab as Lab
    from saltus.core.settings import reading as reading
    from saltus.core.settings import setting as setting
    from saltus.core.study import study as study
    from saltus.descent import train as train
    from saltus.python import load as load
    from saltus.python import reopen as reopen
    from saltus.python import run as run
    from saltus.python import show as show
    from saltus.python import studies as studies

__version__ = "0.1.0"

_ROOMS = ("claim", "data", "descent", "model", "papers", "probe", "report", "stages", "stats")
_NAMES = {
    "BadInput": "saltus.core.errors",
    "Claim": "saltus.core.claim",
    "Lab": "saltus.core.lab",
    "distance": "saltus.core.compare",
    "load": "saltus.python",
    "reading": "saltus.core.settings",
    "reopen": "saltus.python",
    "run": "saltus.python",
    "setting": "saltus.core.settings",
    "show": "saltus.python",
    "studies": "saltus.python",
    "study": "saltus.core.study",
    "train": "saltus.descent",
}
_CORE = {name: f"saltus.core.{name}" for name in ("claim", "stages", "stats")}

__all__ = sorted([*_ROOMS, *_NAMES])


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    if name in _ROOMS:
        return importlib.import_module(_CORE.get(name, f"saltus.{name}"))
    raise AttributeError(f"module 'saltus' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
