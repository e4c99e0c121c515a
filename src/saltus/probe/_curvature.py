"""Sharpness: the largest eigenvalues of the Hessian of the training loss."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from jax.flatten_util import ravel_pytree

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput
from saltus.probe._probe import Probe
from saltus.probe._state import State

DENSE_UP_TO = 128  # parameters: below this a full decomposition is cheaper than iterating


def hessian(objective: Callable[[Any], jax.Array], params: Any) -> jax.Array:
    """The Hessian [P, P] of `objective` in the raveled parameters."""
    flat, unravel = ravel_pytree(params)
    return jax.hessian(lambda p: objective(unravel(p)))(flat)


@lru_cache
def sharpness(
    count: int = 1, *, method: str = "auto", iterations: int = 32, name: str = "sharpness"
) -> Probe:
    """The `count` largest eigenvalues of the Hessian of the training loss, largest first.

    - `method`: dense (the whole Hessian), lanczos (Hessian-vector products only), or auto by size.
    - `iterations`: Lanczos steps; the error falls exponentially with them (Golub & Van Loan, ch. 10).

    Dims: none for `count` 1, else (eigenvalue,).
    """
    if method not in ("auto", "dense", "lanczos"):
        raise BadInput(f"sharpness: method must be auto, dense or lanczos; got {method!r}")
    if count < 1 or iterations < count:
        raise BadInput(f"sharpness: 1 <= count <= iterations; got count={count}, iterations={iterations}")

    def fn(state: State) -> jax.Array:
        flat, unravel = ravel_pytree(state.params)
        size = flat.shape[0]
        if count > size:
            raise BadInput(f"sharpness: {count} eigenvalues asked of a network with {size} parameters")

        def objective(p: jax.Array) -> jax.Array:
            return state.objective(unravel(p))

        if method == "dense" or (method == "auto" and size <= DENSE_UP_TO):
            top = _finite_eigvalsh(jax.hessian(objective)(flat))[::-1][:count]
        else:
            slope = jax.grad(objective)

            def product(v: jax.Array) -> jax.Array:
                return jax.jvp(slope, (flat,), (v,))[1]

            start = jax.random.normal(state.key, flat.shape, flat.dtype)
            top = lanczos(product, start, min(iterations, size))[::-1][:count]
        return top[0] if count == 1 else top

    attrs = {"long_name": "largest Hessian eigenvalue" if count == 1 else "Hessian eigenvalue"}
    return Probe(name, fn, () if count == 1 else ("eigenvalue",), attrs=attrs)


def lanczos(product: Callable[[jax.Array], jax.Array], start: jax.Array, iterations: int) -> jax.Array:
    """Ritz values [iterations], ascending, of a symmetric operator given by its products with vectors.

    If `start` spans fewer directions, the missing values are nan and come first.

    Every new vector is made orthogonal to all earlier ones, twice: without that, rounding brings
    converged eigenvalues back as ghosts.
    """
    tiny = jnp.finfo(start.dtype).eps

    def body(i: jax.Array, carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        basis, alpha, beta, v = carry
        basis = basis.at[i].set(v)
        w = product(v)
        a = v @ w
        size = jnp.sqrt(w @ w)
        for _ in range(2):
            w = w - basis.T @ (basis @ w)
        b = jnp.sqrt(w @ w)
        # An invariant subspace is exhausted: what is left is rounding, and must not be blown up.
        ended = b <= 100 * tiny * size
        v = jnp.where(ended, 0, w / jnp.where(ended, 1, b))
        return basis, alpha.at[i].set(a), beta.at[i].set(jnp.where(ended, 0, b)), v

    n = start.shape[0]
    zeros = jnp.zeros(iterations, start.dtype)
    first = start / jnp.sqrt(start @ start)
    basis = jnp.zeros((iterations, n), start.dtype)
    basis, alpha, beta, _ = jax.lax.fori_loop(0, iterations, body, (basis, zeros, zeros, first))
    # Rows after the end stand for nothing: put them below every Ritz value, then call them nan.
    used = jnp.sum(basis**2, axis=1) > 0.5
    below = -(1 + 2 * jnp.max(jnp.abs(alpha)) + 2 * jnp.max(beta))
    alpha = jnp.where(used, alpha, below)
    ritz = _finite_eigvalsh(jnp.diag(alpha) + jnp.diag(beta[:-1], 1) + jnp.diag(beta[:-1], -1))
    return jnp.where(jnp.arange(iterations) < jnp.sum(~used), jnp.nan, ritz)


def _finite_eigvalsh(matrix: jax.Array) -> jax.Array:
    fine = jnp.isfinite(matrix).all()
    return jnp.where(fine, jnp.linalg.eigvalsh(jnp.where(fine, matrix, 0)), jnp.nan)
