"""Many independent runs from one function: laid out in blocks, spread over devices, gathered by index."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import lru_cache, partial
from itertools import islice
from typing import Any

import numpy as np

from saltus._jax import jax, jnp, workers
from saltus.core.errors import BadInput

__all__ = ["keys", "run_many"]

PyTree = Any
# Portions of the work per device: enough for an even load and a moving progress bar.
PORTIONS = 8


def keys(base: int, index: jax.Array) -> jax.Array:
    """Keys [n] of the runs `index` [n]: each from the run's own number, so from nothing about the layout."""
    return jax.vmap(lambda i: jax.random.fold_in(jax.random.key(base), i))(jnp.asarray(index, jnp.uint32))


def run_many(
    block_fn: Callable[..., PyTree],
    runs: int | Sequence[int] | np.ndarray,
    *,
    block: int,
    axis: int = 0,
    chunk: int | None = None,
    devices: Sequence[jax.Device] | None = None,
    progress: Callable[[int, int], None] | None = None,
    memory: int | None = None,
    args: tuple[PyTree, ...] = (),
    compiler_options: tuple[tuple[str, Any], ...] = (),
    compiled: bool = True,
) -> PyTree:
    """Every run's results, as numpy arrays with the run axis first.

    - `block_fn(index [block], *args)` returns a pytree of arrays whose axis `axis` (0 or -1) is the run
      axis; pass the same function object again and it is not compiled again.
    - `runs`: how many, or the indices themselves.
    - `block`: runs computed together. It is the one unit of computation (the last one is padded), so the
      result has the same bits whatever `chunk`, `devices` or the order of completion.
    - `chunk`: blocks handed to a device at a time; chosen from the memory there is when not given.
    - `devices`: one Python thread drives each (compiled calls release the interpreter lock).
    - `progress(done, total)` is called from this thread.
    - `memory`: bytes that may be used; what is free when not given.
    - `args`: arrays handed whole to every call. `compiler_options`: (name, value) pairs for XLA.
    - `compiled`: whether `block_fn` is one program to be compiled; otherwise it is called as it is and
      made of compiled programs, between which arrays stay on the device.
    """
    total = _count(runs)
    if block < 1 or (chunk is not None and chunk < 1):
        raise BadInput(f"block and chunk must be at least 1; got block={block}, chunk={chunk}")
    if axis not in (0, -1):
        raise BadInput(f"the run axis must be 0 or -1; got axis={axis}")
    blocks = -(-total // block)
    places = list(devices) if devices is not None else workers()
    if not places:
        raise BadInput("no devices to run on; leave devices=None to use every one there is")

    # Traced by the compiled function if there is one, which then has its trace already.
    program: Any = _program(block_fn, compiler_options) if compiled else block_fn
    shape_of = program.eval_shape if compiled else partial(jax.eval_shape, block_fn)
    shapes = shape_of(jax.ShapeDtypeStruct((block,), jnp.int64), *args)
    _check_shapes(shapes, block, axis)
    per_block = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))
    budget, on_host = _budget(places, memory)
    chunk = _chunk(chunk, blocks, len(places), per_block, budget, total * (per_block / block + 16), on_host)

    index = np.arange(total) if isinstance(runs, int | np.integer) else np.asarray(runs, np.int64)
    padded = np.concatenate([index, np.full(blocks * block - total, index[-1])]).reshape(blocks, block)
    gathered = jax.tree.map(lambda leaf: np.empty((total, *_without(leaf.shape, axis)), leaf.dtype), shapes)

    held = {device: jax.device_put(args, device) for device in dict.fromkeys(places)}

    def call(start: int, device: jax.Device) -> int:
        last = min(start + chunk, blocks)
        # Calls return before they are done, so the device has the next block when it finishes one.
        out = [program(jax.device_put(padded[n], device), *held[device]) for n in range(start, last)]
        for n, block_out in enumerate(out, start):
            into = slice(n * block, min((n + 1) * block, total))

            def put(whole: np.ndarray, part: jax.Array, into: slice = into) -> None:
                whole[into] = np.moveaxis(np.asarray(part), axis, 0)[: into.stop - into.start]

            jax.tree.map(put, gathered, block_out)
        return min(last * block, total) - start * block

    done = 0
    for finished in _spread(call, range(0, blocks, chunk), places):
        done += finished
        if progress is not None:
            progress(done, total)
    return gathered


@lru_cache(maxsize=64)
def _program(block_fn: Callable[..., PyTree], options: tuple[tuple[str, Any], ...]) -> Any:
    # One block to a compiled call. Several in one loop would save some microseconds each, but a compiler
    # that sees the loop rounds the body differently for different lengths.
    return jax.jit(block_fn, compiler_options=dict(options) or None)


def _spread(
    call: Callable[[int, jax.Device], int], starts: Sequence[int], devices: Sequence[jax.Device]
) -> Iterator[int]:
    """Run every call, one thread per device, each taking the next when it is free."""
    waiting = iter(starts)
    with ThreadPoolExecutor(min(len(devices), len(starts)), thread_name_prefix="saltus") as pool:
        at: dict[Future[int], jax.Device] = {}
        # An interrupt or a failing call leaves the pool here: what is running ends, nothing new starts.
        for device, start in zip(devices, waiting, strict=False):
            at[pool.submit(call, start, device)] = device
        while at:
            for future in wait(at, return_when=FIRST_COMPLETED).done:
                device = at.pop(future)
                for start in islice(waiting, 1):
                    at[pool.submit(call, start, device)] = device
                yield future.result()


def _count(runs: int | Sequence[int] | np.ndarray) -> int:
    if isinstance(runs, int | np.integer):
        if not 1 <= runs <= 2**32:
            raise BadInput(f"the number of runs must be between 1 and 2**32; got {runs}")
        return int(runs)
    index = np.asarray(runs)
    if index.ndim != 1 or index.size == 0 or not np.issubdtype(index.dtype, np.integer):
        raise BadInput("runs must be a number of runs or a non-empty list of run indices")
    if index.min() < 0 or index.max() >= 2**32:
        raise BadInput(f"run indices must lie in 0..2**32-1; got {index.min()}..{index.max()}")
    return len(index)


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[1:] if axis == 0 else shape[:-1]


def _check_shapes(shapes: PyTree, block: int, axis: int) -> None:
    for leaf in jax.tree.leaves(shapes):
        if not leaf.shape or leaf.shape[axis] != block:
            raise BadInput(
                f"every result of a block needs the run axis ({block} long) at axis {axis}; got {leaf.shape}"
            )


def _budget(devices: Sequence[jax.Device], memory: int | None) -> tuple[int, bool]:
    """Bytes that may be used on the tightest device, and whether that is the host's own memory."""
    on_host = devices[0].platform == "cpu"
    if memory is not None:
        return memory, on_host
    if on_host:
        return host_memory(), True
    limits = [(d.memory_stats() or {}) for d in devices]
    free = [s["bytes_limit"] - s.get("bytes_in_use", 0) for s in limits if "bytes_limit" in s]
    return (min(free) if free else host_memory()), False


def host_memory() -> int:
    """Bytes of host memory that are free to use."""
    try:
        with open("/proc/meminfo") as lines:
            found = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}
        return found["MemAvailable"]
    except (OSError, KeyError, ValueError):
        try:
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (ValueError, OSError):
            return 2**33


def _chunk(
    asked: int | None, blocks: int, devices: int, per_block: int, budget: int, result: float, on_host: bool
) -> int:
    """Blocks at a time: a few portions per device, and what they hold at once within the budget."""
    sharing = devices if on_host else 1  # the host's memory is one, an accelerator's its own
    room = budget - result if on_host else budget
    if (asked or 1) * per_block * sharing > room or (not on_host and result > host_memory()):
        need = result + (asked or 1) * per_block * sharing
        raise BadInput(
            f"these runs need {need / 2**30:.3g} GiB of memory and {budget / 2**30:.3g} GiB are free; "
            "ask for fewer runs, fewer stored steps or a smaller block"
        )
    if asked is not None:
        return min(asked, blocks)
    even = max(1, blocks // (devices * PORTIONS))
    fits = int(room // (2 * per_block * sharing)) if per_block else even
    return max(1, min(even, fits))
