"""Which program trains: a compiled loop over steps, or on a GPU one kernel for all of them.

On a GPU a block's tables are drawn where it is trained and never leave: on the way to the host and back they
would take longer than the training.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput, nearest
from saltus.descent._ensemble import run_many
from saltus.papers.sim.training import kernel, resident
from saltus.papers.sim.training.program import loop
from saltus.papers.sim.training.protocol import Protocol
from saltus.papers.sim.training.tables import programs

__all__ = ["ENGINES", "engine_of", "on_device"]

ENGINES = ("auto", "loop", "kernel")
SWITCH = "SALTUS_ENGINE"  # what "auto" means, for a whole process
LOOP_BLOCK = 512  # runs side by side, which a GPU needs when each step is a few small kernels

_without_kernel: set[Protocol] = set()  # shapes whose kernel did not compile


def engine_of(
    asked: str, shape: Protocol, path: str, steps: int, points: int, train_loss: bool, on_gpu: bool
) -> str:
    """ "loop" or "kernel"; it depends on what is trained and seen, not on how many runs there are."""
    asked = os.environ.get(SWITCH, "auto") if asked == "auto" else asked
    if asked not in ENGINES:
        raise BadInput(f"engine is {', '.join(ENGINES)}; got {asked!r}{nearest(asked, ENGINES)}")
    small = resident.fits(shape, path, steps, points, train_loss)
    if asked == "kernel" and not small:
        raise BadInput(
            "the kernel trains linear networks by the reduced path, of at most "
            f"{kernel.MOST_LAYERS} layers with all sizes among {', '.join(map(str, kernel.SIZES))}, seen at "
            "no more steps than fit in memory; leave engine out"
        )
    if asked != "auto":
        return asked
    return "kernel" if on_gpu and small and shape not in _without_kernel and kernel.available() else "loop"


def on_device(
    shape: Protocol,
    path: str,
    train_loss: bool,
    engine: str,
    seeds: np.ndarray,
    numbers: dict[str, Any],
    *,
    block: int | None,
    devices: Sequence[jax.Device],
    progress: Callable[[int, int], None] | None,
    sure: bool,
) -> dict[str, np.ndarray]:
    """What is seen of all `seeds`, their tables drawn and used on the device, block by block.

    `sure`: whether a kernel that cannot be had is an error, rather than a reason to go by the loop.
    """
    interpret = devices[0].platform == "cpu"
    go = partial(run_many, runs=seeds, devices=devices, progress=progress, args=(numbers,), compiled=False)
    if engine == "kernel":
        try:
            whole = _whole(shape, path, train_loss, engine, interpret)
            return go(whole, block=block or resident.block_of(shape))
        except Exception as error:
            if sure or isinstance(error, BadInput | MemoryError) or "RESOURCE_EXHAUSTED" in str(error):
                raise
            if not _without_kernel:
                says = " ".join(str(error).split())[:200]
                print(f"saltus: no kernel here, so slower ({type(error).__name__}: {says})", file=sys.stderr)
            _without_kernel.add(shape)
    return go(_whole(shape, path, train_loss, "loop", interpret), block=block or LOOP_BLOCK)


@cache
def _whole(
    shape: Protocol, path: str, train_loss: bool, engine: str, interpret: bool
) -> Callable[..., dict[str, jax.Array]]:
    """A block from its runs' numbers to what is seen: three compiled programs."""
    draw, draw_raw = map(jax.jit, programs(shape, path == "reduced" and not shape.nonlinear))
    run = jax.jit(
        resident.resident(shape, train_loss, interpret)
        if engine == "kernel"
        else loop(shape, path, train_loss)
    )

    def block(index: jax.Array, numbers: dict[str, jax.Array]) -> dict[str, jax.Array]:
        table = draw(index, numbers)
        table["raw"] = draw_raw(index, numbers)
        # The loop takes places in the table, the kernel looks for copies among the runs.
        found = run(index if engine == "kernel" else jnp.arange(len(index)), numbers, table)
        return {**found, "nearest": table["nearest"], "discarded": table["discarded"]}

    return block
