"""A loop over steps as one GPU kernel: each run's state stays in registers from the first step to the last.

A loop of compiled steps reads and writes the whole state of every run from memory at each step; on a
GPU that is thirty times the cost of the arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from saltus._jax import jax, jnp

__all__ = ["available", "loop"]

LANES = 128  # runs per kernel instance; one per thread of four warps


def available() -> bool:
    """Whether this JAX can write such kernels."""
    try:
        from jax.experimental.pallas import triton  # noqa: F401
    except ImportError:
        return False
    return True


def loop(
    begun: Any,
    end: Any,
    advance: Callable[[Any, Any, Any], Any],
    carry: Any,
    setup: Any,
    interpret: bool = False,
) -> Any:
    """`carry` after advance(n, carry, setup) for n = begun..end-1.

    carry, setup: pytrees of floating arrays [B], and advance elementwise in them. interpret: run the
    kernel's program without a GPU, slowly.
    """
    from jax.experimental import pallas as pl

    leaves, tree = jax.tree.flatten(carry)
    given, setup_tree = jax.tree.flatten(setup)
    size = leaves[0].size
    lanes = min(LANES, size & -size)  # a power of two that divides B
    bounds = jnp.stack([jnp.asarray(begun, jnp.int32), jnp.asarray(end, jnp.int32)])

    def body(bounds: Any, *refs: Any) -> None:
        fixed = jax.tree.unflatten(setup_tree, [ref[...] for ref in refs[: len(given)]])
        start = jax.tree.unflatten(tree, [ref[...] for ref in refs[len(given) : len(given) + len(leaves)]])
        last = jax.lax.fori_loop(bounds[0], bounds[1], lambda n, c: advance(n, c, fixed), start)
        for ref, value in zip(refs[len(given) + len(leaves) :], jax.tree.leaves(last), strict=True):
            ref[...] = value

    options: dict[str, Any] = {"interpret": True}
    if not interpret:
        from jax.experimental.pallas import triton

        options = {"compiler_params": triton.CompilerParams(num_warps=max(1, lanes // 32))}
    each = pl.BlockSpec((lanes,), lambda i: (i,))
    out = pl.pallas_call(
        body,
        out_shape=[jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves],
        grid=(size // lanes,),
        in_specs=[pl.BlockSpec((2,), lambda i: (0,)), *[each] * (len(given) + len(leaves))],
        out_specs=[each] * len(leaves),
        **options,
    )(bounds, *given, *leaves)
    return jax.tree.unflatten(tree, out)
