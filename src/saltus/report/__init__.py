"""Records to figures, tables and one HTML file."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saltus.report import figure as figure
    from saltus.report.outcome import Outcome as Outcome
    from saltus.report.outcome import run as run
    from saltus.report.page import write_page as write_page

_NAMES = {"Outcome": "outcome", "run": "outcome", "write_page": "page"}


def __getattr__(name: str) -> Any:
    if name == "figure":
        return importlib.import_module(f"{__name__}.figure")
    if name in _NAMES:
        return getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
