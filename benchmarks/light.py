"""Lets saltus' training be imported where only JAX, numpy and jaxtyping are installed."""

from __future__ import annotations

import importlib.util
import sys
import types
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"


def open_saltus() -> None:
    """Find saltus in this tree when it is not installed, and its ensembles without what flows need."""
    if importlib.util.find_spec("saltus") is None:
        sys.path.insert(0, str(SOURCE))
    if any(importlib.util.find_spec(name) is None for name in ("diffrax", "optax", "equinox")):
        # The package's front door loads adaptive solvers; the rooms behind it that are timed do not.
        package = types.ModuleType("saltus.descent")
        package.__path__ = [str(SOURCE / "saltus" / "descent")]
        sys.modules["saltus.descent"] = package
