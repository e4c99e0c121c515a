"""Checkpoints in safetensors: everything a training needs to go on, to the same bits."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput
from saltus.probe import paths

PyTree = Any


class Held(NamedTuple):
    """What a checkpoint holds."""

    state: PyTree
    seen: list[dict[str, Any]]
    step: int


def write(path: Path, mark: str, step: int, state: PyTree, seen: list[dict[str, Any]]) -> None:
    """Write a checkpoint whole: filled beside its place, brought to the disk, then renamed into it.

    - `mark`: what must be the same for the training to go on; `state`: a pytree of arrays.
    """
    from safetensors.numpy import save

    tensors = {f"state.{name}": np.asarray(leaf) for name, leaf in paths(state).items()}
    for number, one in enumerate(seen):
        tensors |= {f"seen.{number}.{name}": np.asarray(leaf) for name, leaf in paths(one).items()}
    about = {"mark": mark, "step": str(step), "seen": json.dumps([_shape(one) for one in seen])}
    replace(path, save({k: np.ascontiguousarray(v) for k, v in tensors.items()}, about))


def read(path: Path, mark: str, like: PyTree) -> Held:
    """A checkpoint of the same training, as arrays in the structure of `like`."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), "np") as file:
            about = file.metadata() or {}
            if about.get("mark") != mark:
                raise BadInput(f"{path} is the checkpoint of another training; move it away to begin anew")
            names = [f"state.{name}" for name in paths(like)]
            leaves = [jnp.asarray(file.get_tensor(name)) for name in names]
            state = jax.tree.unflatten(jax.tree.structure(like), leaves)
            seen = [
                _filled(shape, lambda name, n=n: file.get_tensor(f"seen.{n}.{name}"))
                for n, shape in enumerate(json.loads(about["seen"]))
            ]
            return Held(state, seen, int(about["step"]))
    except (SafetensorError, OSError, KeyError) as error:
        raise BadInput(f"{path} is not a checkpoint that can be gone on from: {error}") from error


def replace(path: Path, data: bytes) -> None:
    """Put a file in its place at once: either the old one is there or the new one, whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(beside, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _shape(one: dict[str, Any]) -> dict[str, Any]:
    return {k: sorted(v) if isinstance(v, dict) else None for k, v in one.items()}


def _filled(shape: dict[str, Any], get: Any) -> dict[str, Any]:
    return {
        name: get(name) if keys is None else {key: get(f"{name}.{key}") for key in keys}
        for name, keys in shape.items()
    }
