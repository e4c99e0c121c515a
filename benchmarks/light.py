"""Lets saltus be imported where it is not installed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"


def open_saltus() -> None:
    """Find saltus in this tree when it is not installed; training and probes need JAX and numpy alone."""
    if importlib.util.find_spec("saltus") is None:
        sys.path.insert(0, str(SOURCE))
