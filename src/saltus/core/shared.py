"""Parts that several studies show: computed once in a store, whichever of them comes first.

STORE/shared.parts/<name>.part           one part, named by what it was computed from
STORE/shared.parts/<name>.safetensors    where a long training of one can be gone on from
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saltus.core import record, sources, store
from saltus.core.errors import BadInput

if TYPE_CHECKING:
    import xarray

FOLDER = "shared.parts"


def key(name: str, about: Mapping[str, Any], source: str) -> str:
    """The name of a shared part: what it is, and all that it depends on, this software among it."""
    importlib.import_module("saltus._jax")  # the device is known once JAX is
    here = record.device()
    device = {"platform": here["platform"], "kind": here["kind"]}  # how many there are changes no bit
    text = json.dumps([name, dict(about), sources.stamp(source), device], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def obtain(
    root: Path,
    name: str,
    about: Mapping[str, Any],
    compute: Callable[[Path], xarray.Dataset],
    *,
    source: str = "",
) -> xarray.Dataset:
    """The part, read back where it was computed before, else computed and kept.

    **Arguments:** `compute`: given the name of a file it may use until it is done; `source`: the file of the
    study that asks, whose code computes it.
    """
    place = root / FOLDER / f"{key(name, about, source)}.part"
    with store.lock(place):
        if place.exists():
            try:
                return record.read(place).data
            except BadInput:
                pass  # damaged: made anew
        scratch = place.with_suffix(".safetensors")
        record.write(place, compute(scratch), {"part": name, "about": dict(about), "device": record.device()})
        scratch.unlink(missing_ok=True)
        return record.read(place).data
