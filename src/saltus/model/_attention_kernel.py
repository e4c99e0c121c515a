"""Attention over short rows of tokens as one GPU kernel: an instance does one head of one image.

Queries, keys and values are read from where one product wrote them, and their slopes written to where the
next product reads them, so nothing is copied between; scores stay on the chip. Rows have a power of two
tokens, or one more: the first (a class token) is then done apart by sums, since a 65th row would make the
matrix units work on 128.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from saltus._jax import jax, jnp

LEAST = 16  # rows and columns that matrix units take
MOST = 128


def fits(tokens: int, head: int) -> bool:
    """Whether the kernel takes rows of `tokens` tokens and heads of width `head`."""
    n = tokens - tokens % 2
    return LEAST <= n <= MOST and n & (n - 1) == 0 and LEAST <= head <= MOST and head & (head - 1) == 0


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def attend(joined: jax.Array, interpret: bool = False) -> jax.Array:
    """Attention [B, T, heads, head] of queries, keys and values `joined` [B, T, 3, heads, head].

    `interpret`: run the kernel's program without a GPU, slowly.
    """
    return _call(_forward, (joined,), (*joined.shape[:2], *joined.shape[3:]), joined, interpret, 4)


def _begin(joined: jax.Array, interpret: bool) -> tuple[jax.Array, jax.Array]:
    return attend(joined, interpret), joined


def _back(interpret: bool, joined: jax.Array, slope: jax.Array) -> tuple[jax.Array]:
    return (_call(_backward, (joined, slope), joined.shape, joined, interpret, 8),)


attend.defvjp(_begin, _back)


def _call(
    body: Any,
    given: tuple[jax.Array, ...],
    shape: tuple[int, ...],
    joined: jax.Array,
    interpret: bool,
    warps: int,
) -> jax.Array:
    from jax.experimental import pallas as pl

    options: dict[str, Any] = {"interpret": True}
    if not interpret:
        from jax.experimental.pallas import triton

        options = {"compiler_params": triton.CompilerParams(num_warps=warps, num_stages=1)}
    batch, tokens, _, heads, head = joined.shape
    return pl.pallas_call(
        partial(body, tokens % 2, tokens - tokens % 2, head**-0.5),
        out_shape=jax.ShapeDtypeStruct(shape, joined.dtype),
        grid=(batch, heads),
        name=f"saltus_attention{body.__name__}",
        **options,
    )(*given)


class _Parts:
    """Rows of one head: those of the tokens [n, head], and of the token before them [head] if there is one."""

    def __init__(self, ref: Any, batch: Any, heads: Any, first: int, count: int, which: int | None) -> None:
        rows = slice(first, first + count)
        where = (heads, slice(None)) if which is None else (which, heads, slice(None))
        self.rows = ref[(batch, rows, *where)]
        self.first = ref[(batch, 0, *where)].astype(jnp.float32) if first else None

    @property
    def wide(self) -> jax.Array:
        return self.rows.astype(jnp.float32)


def _dot(a: jax.Array, b: jax.Array, over_a: int, over_b: int) -> jax.Array:
    """Products summed over axis `over_a` of a and `over_b` of b, in float32."""
    exact = jax.lax.Precision.DEFAULT if a.dtype == jnp.bfloat16 else jax.lax.Precision.HIGHEST
    dims = (((over_a,), (over_b,)), ((), ()))
    return jax.lax.dot_general(a, b, dims, precision=exact, preferred_element_type=jnp.float32)


def _weights(q: _Parts, k: _Parts, scale: float) -> tuple[Any, Any, Any, Any]:
    """Softmax weights: of rows to rows [n, n] and to the first [n]; of the first to rows [n] and itself."""
    scores = scale * _dot(q.rows, k.rows, 1, 1)
    most = jnp.max(scores, axis=1)
    if q.first is None or k.first is None:
        weights = jnp.exp(scores - most[:, None])
        return weights / jnp.sum(weights, axis=1)[:, None], None, None, None
    to_first = scale * jnp.sum(q.wide * k.first[None, :], axis=1)
    of_first = scale * jnp.sum(k.wide * q.first[None, :], axis=1)
    itself = scale * jnp.sum(q.first * k.first)
    most = jnp.maximum(most, to_first)
    weights, to_first = jnp.exp(scores - most[:, None]), jnp.exp(to_first - most)
    total = jnp.sum(weights, axis=1) + to_first
    top = jnp.maximum(jnp.max(of_first), itself)
    of_first, itself = jnp.exp(of_first - top), jnp.exp(itself - top)
    whole = jnp.sum(of_first) + itself
    return weights / total[:, None], to_first / total, of_first / whole, itself / whole


def _forward(first: int, count: int, scale: float, joined: Any, out: Any) -> None:
    from jax.experimental import pallas as pl

    batch, head = pl.program_id(0), pl.program_id(1)
    q, k, v = (_Parts(joined, batch, head, first, count, which) for which in range(3))
    weights, to_first, of_first, itself = _weights(q, k, scale)
    rows = _dot(weights.astype(v.rows.dtype), v.rows, 1, 0)
    if v.first is not None:
        rows = rows + to_first[:, None] * v.first[None, :]
        own = jnp.sum(of_first[:, None] * v.wide, axis=0) + itself * v.first
        out[batch, 0, head, :] = own.astype(out.dtype)
    out[batch, first : first + count, head, :] = rows.astype(out.dtype)


def _backward(first: int, count: int, scale: float, joined: Any, slope: Any, out: Any) -> None:
    from jax.experimental import pallas as pl

    batch, head = pl.program_id(0), pl.program_id(1)
    q, k, v = (_Parts(joined, batch, head, first, count, which) for which in range(3))
    g = _Parts(slope, batch, head, first, count, None)
    weights, to_first, of_first, itself = _weights(q, k, scale)
    dtype = q.rows.dtype

    def put(which: int, rows: jax.Array, one: jax.Array | None) -> None:
        out[batch, first : first + count, which, head, :] = rows.astype(dtype)
        if one is not None:
            out[batch, 0, which, head, :] = one.astype(dtype)

    of_weights = _dot(g.rows, v.rows, 1, 1)  # slope of each weight
    mean = jnp.sum(weights * of_weights, axis=1)
    if q.first is None or k.first is None or v.first is None or g.first is None:
        of_scores = (scale * weights * (of_weights - mean[:, None])).astype(dtype)
        put(0, _dot(of_scores, k.rows, 1, 0), None)
        put(1, _dot(of_scores, q.rows, 0, 0), None)
        put(2, _dot(weights.astype(dtype), g.rows, 0, 0), None)
        return
    of_to = jnp.sum(g.wide * v.first[None, :], axis=1)
    mean = mean + to_first * of_to
    of_scores = (scale * weights * (of_weights - mean[:, None])).astype(dtype)
    of_to = scale * to_first * (of_to - mean)
    of_of = jnp.sum(v.wide * g.first[None, :], axis=1)
    of_own = jnp.sum(v.first * g.first)
    mean_own = jnp.sum(of_first * of_of) + itself * of_own
    of_of = scale * of_first * (of_of - mean_own)
    of_own = scale * itself * (of_own - mean_own)
    put(
        0,
        _dot(of_scores, k.rows, 1, 0) + of_to[:, None] * k.first[None, :],
        jnp.sum(of_of[:, None] * k.wide, axis=0) + of_own * k.first,
    )
    put(
        1,
        _dot(of_scores, q.rows, 0, 0) + of_of[:, None] * q.first[None, :],
        jnp.sum(of_to[:, None] * q.wide, axis=0) + of_own * q.first,
    )
    put(
        2,
        _dot(weights.astype(dtype), g.rows, 0, 0) + of_first[:, None] * g.first[None, :],
        jnp.sum(to_first[:, None] * g.wide, axis=0) + itself * g.first,
    )
