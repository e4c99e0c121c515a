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
        keys = jax.random.split(jax.random.fold_in(key, number))
        then = head_matrices(start, pair[0]), head_matrices(start, pair[1])
        left = random_change(keys[0], head_matrices(params, pair[0]), then[0])
        right = random_change(keys[1], head_matrices(params, pair[1]), then[1])
        found[name] = product_spectrum(left, right, *then)
    return found
