"""Softmax attention over heads, by whichever way suits the device."""

from __future__ import annotations

from collections.abc import Callable

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput, nearest
from saltus.model import _attention_kernel

Attend = Callable[[jax.Array, jax.Array, jax.Array, bool], jax.Array]


def _plain(q: jax.Array, k: jax.Array, v: jax.Array, causal: bool) -> jax.Array:
    exact = None if q.dtype != jnp.bfloat16 else jax.lax.Precision.DEFAULT
    scores = jnp.einsum("bthe,bshe->bhts", q, k, precision=exact)  # [B, H, T, T]
    weights = _softmax(scores, q.shape[-1], causal).astype(v.dtype)
    return jnp.einsum("bhts,bshe->bthe", weights, v, precision=exact)


def _softmax(scores: jax.Array, width: int, causal: bool) -> jax.Array:
    """Rows of softmax(scores / sqrt(width)), in float32 at least."""
    scores = scores.astype(jnp.promote_types(scores.dtype, jnp.float32)) / width**0.5
    if causal:
        later = jnp.tril(jnp.ones(scores.shape[-2:], bool))
        scores = jnp.where(later, scores, jnp.finfo(scores.dtype).min)
    return jax.nn.softmax(scores, axis=-1)


def _cudnn(q: jax.Array, k: jax.Array, v: jax.Array, causal: bool) -> jax.Array:
    return jax.nn.dot_product_attention(q, k, v, is_causal=causal, implementation="cudnn")


_WAYS: dict[str, Attend] = {"plain": _plain, "cudnn": _cudnn}
WAYS = (
    "plain",  # the matrices of scores are formed: any device, any precision
    "cudnn",  # NVIDIA GPUs with 16-bit numbers only: scores never leave the chip
    "kernel",  # our own for NVIDIA GPUs: not causal, rows of 2^n or 2^n + 1 tokens, heads 2^n wide
)


def check(way: str, tokens: int | None = None, head: int | None = None) -> None:
    """Whether there is such a way, and whether it takes rows of `tokens` tokens (None: causal ones)."""
    if way not in WAYS:
        raise BadInput(f"unknown attention {way!r}{nearest(way, WAYS)} (known: {', '.join(WAYS)})")
    if way == "kernel" and (tokens is None or head is None or not _attention_kernel.fits(tokens, head)):
        raise BadInput(
            f"attention='kernel' does not take {tokens or 'causal'} tokens and heads of {head}; "
            "use plain or cudnn"
        )


def attend(way: str, q: jax.Array, k: jax.Array, v: jax.Array, causal: bool = False) -> jax.Array:
    """Attention of queries to keys and values, each [B, T, heads, width]: the same shape again."""
    return _WAYS[way](q, k, v, causal)


def attend_joined(joined: jax.Array, causal: bool = False) -> jax.Array:
    """Attention [B, T, heads, head] of queries, keys and values [B, T, 3, heads, head], by the kernel."""
    assert not causal, "refused when the model was made"
    return _attention_kernel.attend(joined, jax.default_backend() == "cpu")
