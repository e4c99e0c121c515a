"""Spectra of what a product of two weight matrices has gained, from its thin factors.

M = A B' - A0 B0' with A, B [d, r] is [A - A0, A0] [B, B - B0]': of rank 2r at most, whatever d is. The small
differences are taken before anything large is multiplied, so nothing cancels.
"""

from __future__ import annotations

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput

EXACT = jax.lax.Precision.HIGHEST


def product_spectrum(
    a: jax.Array,
    b: jax.Array,
    a0: jax.Array | None = None,
    b0: jax.Array | None = None,
    method: str = "auto",
) -> jax.Array:
    """Singular values of A B' - A0 B0', largest first, batched over leading axes.

    - `a` [..., d, r], `b` [..., d', r]; `a0`, `b0`: the same at the beginning, nothing when None.
    - `method`: "qr" of both factors, then the singular values of R1 R2' [2r, 2r]; "gram", eigenvalues of
      the factors' moments in float64, which accelerators do many of at once; "whole", the matrix itself,
      cheaper once 2r >= d; "auto" chooses.

    **Returns** min(d, d', 2r) values (min(d, d', r) without a beginning).
    """
    left, right = factors(a, b, a0, b0)
    small = min(left.shape[-2], right.shape[-2])
    if method == "auto":
        method = "whole" if left.shape[-1] >= small else "gram" if _accelerated() else "qr"
    fine = jnp.isfinite(left).all((-2, -1)) & jnp.isfinite(right).all((-2, -1))
    left, right = (jnp.where(fine[..., None, None], m, 0) for m in (left, right))
    if method == "gram":
        values = _by_moments(left, right)
    elif method == "qr":
        r1, r2 = jnp.linalg.qr(left, mode="r"), jnp.linalg.qr(right, mode="r")
        values = jnp.linalg.svd(jnp.matmul(r1, _t(r2), precision=EXACT), compute_uv=False)
    elif method == "whole":
        values = jnp.linalg.svd(jnp.matmul(left, _t(right), precision=EXACT), compute_uv=False)
    else:
        raise BadInput(f"product_spectrum: method is auto, qr, gram or whole; got {method!r}")
    return jnp.where(fine[..., None], values[..., : min(small, left.shape[-1])], jnp.nan)


def factors(
    a: jax.Array, b: jax.Array, a0: jax.Array | None = None, b0: jax.Array | None = None
) -> tuple[jax.Array, jax.Array]:
    """[A - A0, A0] and [B, B - B0], in float32 at least."""
    given = [m for m in (a, b, a0, b0) if m is not None]
    if len(given) == 3:
        raise BadInput("product_spectrum: a product's beginning needs both a0 and b0")
    if any(m.ndim < 2 for m in given) or a.shape[-1] != b.shape[-1]:
        raise BadInput(f"product_spectrum: A [..., d, r] and B [..., d', r]; got {a.shape} and {b.shape}")
    if a0 is None or b0 is None:
        return _wide(a), _wide(b)
    if a0.shape != a.shape or b0.shape != b.shape:
        raise BadInput(f"product_spectrum: {a.shape}, {b.shape} began as {a0.shape}, {b0.shape}")
    a, b, a0, b0 = _wide(a), _wide(b), _wide(a0), _wide(b0)
    return jnp.concatenate([a - a0, a0], axis=-1), jnp.concatenate([b, b - b0], axis=-1)


def stable_rank_of(values: jax.Array) -> jax.Array:
    """sum s^2 / s_1^2 of spectra [..., k], largest first; nan where there is nothing."""
    return jnp.sum((values / values[..., :1]) ** 2, axis=-1)


def normalised(values: jax.Array) -> jax.Array:
    """Spectra [..., k] over their largest value."""
    return values / values[..., :1]


def _by_moments(left: jax.Array, right: jax.Array) -> jax.Array:
    """Square roots of the eigenvalues of C' (Q'Q) C, where P'P = C C'."""
    half = left.shape[-1] // 2 if left.shape[-1] > 1 else 1
    p, q = left.astype(jnp.float64), right.astype(jnp.float64)
    # dA B' + A0 dB' is the same with dA and B scaled inversely; so that neither factor has blocks of
    # very different size, which would cost the small values their digits.
    sizes = [jnp.sqrt(jnp.sum(m[..., s] ** 2, (-2, -1))) for m in (p, q) for s in _halves(half)]
    balance = jnp.sqrt(_ratio(sizes[1], sizes[0]) * _ratio(sizes[2], sizes[3]))[..., None, None]
    p = jnp.concatenate([p[..., :half] * balance, p[..., half:]], axis=-1)
    q = jnp.concatenate([q[..., :half] / balance, q[..., half:]], axis=-1)
    first, second = jnp.matmul(_t(p), p, precision=EXACT), jnp.matmul(_t(q), q, precision=EXACT)
    # A nudge of the size of the rounding, so that a factor with dependent columns has its root too.
    trace = jnp.trace(first, axis1=-2, axis2=-1)[..., None, None]
    nudge = jnp.finfo(jnp.float64).eps * trace + jnp.finfo(jnp.float64).tiny
    root = jnp.linalg.cholesky(first + nudge * jnp.eye(first.shape[-1]))
    core = jnp.matmul(_t(root), jnp.matmul(second, root, precision=EXACT), precision=EXACT)
    values = jnp.linalg.eigvalsh((core + _t(core)) / 2)[..., ::-1]
    return jnp.sqrt(jnp.maximum(values, 0)).astype(left.dtype)


def _halves(half: int) -> tuple[slice, slice]:
    return slice(None, half), slice(half, None)


def _ratio(over: jax.Array, under: jax.Array) -> jax.Array:
    fine = (over > 0) & (under > 0)
    return jnp.where(fine, over / jnp.where(fine, under, 1), 1.0)


def _accelerated() -> bool:
    return jax.default_backend() != "cpu"


def _wide(m: jax.Array) -> jax.Array:
    m = jnp.asarray(m)
    return m.astype(jnp.promote_types(m.dtype, jnp.float32))


def _t(m: jax.Array) -> jax.Array:
    return jnp.swapaxes(m, -1, -2)
