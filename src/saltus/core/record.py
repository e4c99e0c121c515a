"""What was seen: labelled arrays, plus everything needed to see it again."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import html
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saltus.core import arrays, store
from saltus.core.errors import BadInput

if TYPE_CHECKING:
    import xarray

FORMAT = "saltus-record"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class Record:
    """A finished record on disk: its data, its manifest and where it lies."""

    data: xarray.Dataset
    manifest: dict[str, Any]
    path: Path

    def __repr__(self) -> str:
        return f"<record of {self._said()}>\n{self.data!r}"

    def _repr_html_(self) -> str:
        return f"<p>Record of {html.escape(self._said())}</p>{self.data._repr_html_()}"

    def _said(self) -> str:
        known = (self.manifest.get(name) for name in ("study", "variant", "command"))
        return "; ".join([*map(str, filter(None, known)), str(self.path)])


# What a manifest must say for its record to be shown, and in which type.
SAYS: dict[str, type | tuple[type, ...]] = {
    "study": str,
    "version": int,
    "settings": dict,
    "variant": str,
    "command": str,
    "started": str,
    "seconds": (int, float),
    "packages": dict,
    "device": dict,
    "machine": dict,
}
SAYS_OF = {"device": ("platform", "kind"), "machine": ("cpu", "cores")}


def write(path: Path, data: xarray.Dataset, manifest: dict[str, Any]) -> None:
    """Write the record whole: a reader never sees part of it."""
    data = arrays.ready(data)
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        **manifest,
        "digest": arrays.digest(data),
    }
    manifest["seal"] = _seal(manifest)

    def fill(folder: Path) -> None:
        arrays.write(data, folder / "data.zarr")
        (folder / store.MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")

    store.write_whole(path, fill)


def _seal(manifest: dict[str, Any]) -> str:
    """A checksum of the manifest itself: settings that were changed would be those of other arrays."""
    said = {name: value for name, value in manifest.items() if name != "seal"}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest, or one line saying why this is not a record."""
    file = path / store.MANIFEST
    try:
        if not path.exists():
            store.recover(path)
        if not path.exists():
            raise BadInput(f"no record at {path}; saltus run makes one")
    except OSError as error:
        raise BadInput(f"no record at {str(path)[:80]}: {error.strerror}") from None
    if not file.is_file():
        raise BadInput(f"{path} is not a saltus record: it has no {store.MANIFEST}")
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise BadInput(
            f"the record at {path} is damaged: its manifest cannot be read; run it --again"
        ) from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise BadInput(f"{path} is not a saltus record: its manifest is of another format")
    if manifest.get("format_version") not in range(FORMAT_VERSION + 1):
        raise BadInput(f"{path} was written by a newer saltus; upgrade this one to read it")
    # Records of the first saltus have no seal.
    if "seal" in manifest and manifest["seal"] != _seal(manifest):
        raise BadInput(f"the record at {path} is damaged: its manifest was changed; run it --again")
    lacking = (
        [] if "part" in manifest else [n for n, kind in SAYS.items() if not isinstance(manifest.get(n), kind)]
    )
    lacking += [n for n, inner in SAYS_OF.items() if n in manifest and not set(inner) <= set(manifest[n])]
    if lacking:
        raise BadInput(
            f"the record at {path} is damaged: its manifest does not say its {lacking[0]}; run it --again"
        )
    return manifest


def read(path: str | Path) -> Record:
    """Read a record and check its arrays against the checksum taken when they were written."""
    path = Path(path)
    if path.name == "data.zarr":
        path = path.parent
    manifest = read_manifest(path)
    try:
        data = arrays.read(path / "data.zarr")
    except MemoryError:
        raise
    except Exception as error:  # zarr reports damage through many exception types
        raise BadInput(
            f"the record at {path} is damaged: its arrays are unreadable ({_first_line(error)}); "
            "run it --again"
        ) from None
    if arrays.digest(data) != manifest.get("digest"):
        raise BadInput(f"the record at {path} is damaged: its arrays fail their checksum; run it --again")
    if "study" in manifest:
        data.attrs.setdefault("study", manifest["study"])
    return Record(data, manifest, path)


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return (text[0] if text else type(error).__name__)[:120]


def environment() -> dict[str, Any]:
    """Where a record is made: software, device, machine, commit."""
    import os
    import platform

    return {
        "python": platform.python_version(),
        "packages": packages(),
        "commit": commit(),
        "device": device(),
        "machine": {"system": platform.platform(), "cpu": _cpu(), "cores": len(os.sched_getaffinity(0))},
    }


def packages() -> dict[str, str]:
    """The versions of what computes and stores."""
    import importlib.metadata as metadata

    found = {}
    for name in ("saltus", "jax", "jaxlib", "numpy", "optax", "diffrax", "equinox", "xarray", "zarr"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def device() -> dict[str, Any]:
    """The accelerator JAX used, or the plain host if JAX was never needed."""
    jax: Any = sys.modules.get("jax")
    if jax is None:
        return {"platform": "cpu", "kind": "host", "count": 1}
    first = jax.local_devices()[0]
    return {"platform": first.platform, "kind": first.device_kind, "count": jax.local_device_count()}


def device_name(manifest: dict[str, Any]) -> str:
    """`cpu` with the processor's name, or the accelerator's platform and name."""
    device = manifest["device"]
    kind = manifest["machine"]["cpu"] if device["platform"] == "cpu" else device["kind"]
    return f"{device['platform']}: {kind}"


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    import platform

    return platform.processor() or "unknown"


@functools.cache
def commit() -> str | None:
    """The commit of the source tree saltus runs from, with `+` when it has local changes."""
    import subprocess

    here = Path(__file__).resolve().parent
    if not any((parent / ".git").exists() for parent in here.parents):
        return None

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(here), *words], capture_output=True, text=True, timeout=5)
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        head = git("rev-parse", "--short=12", "HEAD")
        return (head + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")) or None
    except (OSError, subprocess.SubprocessError):
        return None
