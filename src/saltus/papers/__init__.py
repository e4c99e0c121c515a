"""One folder a paper; each uses the shared rooms and never another paper's."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil


def discover() -> None:
    """Import every paper's studies, so that they are registered; cheap, since studies load nothing heavy."""
    for paper in pkgutil.iter_modules(__path__, f"{__name__}."):
        if not paper.ispkg:
            continue
        name = f"{paper.name}.studies"
        if importlib.util.find_spec(name) is None:
            continue
        package = importlib.import_module(name)
        for module in pkgutil.iter_modules(package.__path__, f"{name}."):
            importlib.import_module(module.name)
