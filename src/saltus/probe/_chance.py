"""What chance would give: spectra of products of Gaussian matrices, and of random changes of the same size.

The largest singular value of a product of Gaussian factors is known for large matrices (free probability);
the stable ranks that follow are the yardstick for "low rank", since thin factors alone give low ones.
"""

from __future__ import annotations

import math

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput
from saltus.probe._heads import PAIRS, head_matrices
from saltus.probe._products import product_spectrum


def gaussian_edge(c: float) -> float:
    """e(c) = (1 + z)(1 + c z)^2 / z: s_1^2 of A B' over its mean square, A, B [d, r] Gaussian, c = r / d."""
    if not c > 0:
        raise BadInput(f"gaussian_edge: c = r / d must be positive; got {c!r}")
    z = (-c + math.sqrt(c * c + 8 * c)) / (4 * c)
    return (1 + z) * (1 + c * z) ** 2 / z


def gaussian_rank(d: int, r: int) -> float:
    """Stable rank of A B' for Gaussian A, B [d, r], d large."""
    return r / gaussian_edge(r / d)


def gaussian_change_rank(d: int, r: int) -> float:
    """Stable rank of what A B' gains when both Gaussian factors change a little at random, d large."""
    return 2 * r / gaussian_edge(2 * r / d)


def random_change(key: jax.Array, now: jax.Array, start: jax.Array) -> jax.Array:
    """`start` [..., d, r] plus a Gaussian change, of the Frobenius norm that the change to `now` has."""
    noise = jax.random.normal(key, now.shape, now.dtype)
    size = jnp.linalg.norm(now - start, axis=(-2, -1), keepdims=True)
    return start + noise * (size / jnp.linalg.norm(noise, axis=(-2, -1), keepdims=True))


def random_head_products(key: jax.Array, params: object, start: object) -> dict[str, jax.Array]:
    """`head_products` had every matrix changed as much as it did, but at random: the control of low rank."""
    found = {}
    for number, (name, pair) in enumerate(PAIRS.items()):
        then = [head_matrices(start, n) for n in pair]
        keys = jax.random.split(jax.random.fold_in(key, number))
        now = [
            random_change(k, head_matrices(params, n), t) for k, n, t in zip(keys, pair, then, strict=True)
        ]
        found[name] = product_spectrum(*now, *then)
    return found
