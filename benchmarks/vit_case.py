"""One vision transformer with its data, for every contestant; and what its arithmetic amounts to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

PAPER: dict[str, Any] = dict(depth=6, heads=8, width=512, head=128, mlp=512, patch=4)
QUICK: dict[str, Any] = dict(depth=2, heads=2, width=32, head=16, mlp=32, patch=8)
BATCH = {False: 512, True: 16}
LR = 1e-4


def model(quick: bool, **more: Any) -> Any:
    """The network at the paper's size, or a tiny one."""
    from saltus.model import ViT

    return ViT(**(QUICK if quick else PAPER), **more)


def flops(sizes: dict[str, Any], tokens: int, classes: int = 10, channels: int = 3) -> float:
    """Operations (a multiplication and an addition are two) of one image's forward and backward pass."""
    d, inner = sizes["width"], sizes["heads"] * sizes["head"]
    maps = tokens * d * (4 * inner + 2 * sizes["mlp"])
    scores = 2 * tokens * tokens * inner
    ends = (tokens - 1) * sizes["patch"] ** 2 * channels * d + d * classes
    return 3 * 2.0 * (sizes["depth"] * (maps + scores) + ends)


def made_up(count: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Images of smooth noise with labels, where no data is at hand: speed does not ask what they show."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 256, (count, 32, 32, 3), np.uint8)
    return {"x": x, "y": rng.integers(0, 10, count).astype(np.uint8)}


def save(folder: Path, quick: bool, data: dict[str, np.ndarray], mean: Any, std: Any) -> dict[str, Any]:
    """Write FOLDER/case.npz for the peers; **returns** the network's first parameters by name."""
    from saltus._jax import jax
    from saltus.probe import paths

    params = jax.jit(model(quick).init)(jax.random.key(0))
    named = {f"params.{k}": np.asarray(v, np.float32) for k, v in paths(params).items()}
    order = np.random.default_rng(1).permutation(len(data["x"])).astype(np.int32)
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(
        folder / "case.npz",
        sizes=json.dumps(QUICK if quick else PAPER),
        batch=BATCH[quick],
        lr=LR,
        images=data["x"],
        labels=data["y"],
        order=order,
        mean=np.asarray(mean, np.float32),
        factor=(1 / np.asarray(std)).astype(np.float32),
        **named,
    )
    return params
