"""Norms, spectra and ranks of weight matrices picked by a pattern such as `layers.*.weight`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput
from saltus.probe._paths import find, is_glob
from saltus.probe._probe import Probe
from saltus.probe._state import State


def norm(pattern: str = "**", *, name: str = "norm") -> Probe:
    """Frobenius norm of each parameter matched: dims (matrix,)."""
    return _per_matrix(name, pattern, _frobenius, (), 0, "Frobenius norm")


def singular_values(pattern: str, *, name: str = "singular_values") -> Probe:
    """Singular values of each matrix matched, largest first: dims (matrix, index).

    Matrices with fewer singular values than the largest are padded with nan.
    """
    return _per_matrix(name, pattern, _singular_values, ("index",), 2, "singular value")


def stable_rank(pattern: str, *, name: str = "stable_rank") -> Probe:
    """||W||_F^2 / ||W||_2^2 of each matrix matched: dims (matrix,).

    Between 1 and the rank; unlike the rank it moves continuously (Rudelson & Vershynin, 2007).
    """
    return _per_matrix(name, pattern, _stable_rank, (), 2, "stable rank")


@lru_cache
def weights(pattern: str = "**", *, name: str = "weights") -> Probe:
    """The parameters themselves: one variable per match, or one alone when the pattern is a full path."""

    def fn(state: State) -> Any:
        found = find(state.params, pattern)
        if not is_glob(pattern):
            return next(iter(found.values()))
        return {path.replace(".", "_"): leaf for path, leaf in found.items()}

    return Probe(name, fn, attrs={"long_name": f"parameters {pattern}"})


@lru_cache
def _per_matrix(
    name: str,
    pattern: str,
    measure: Callable[[jax.Array], jax.Array],
    dims: tuple[str, ...],
    ndim: int,
    long_name: str,
) -> Probe:
    """One value or vector per parameter matched, stacked along `matrix` if the pattern is a glob."""

    def matched(params: Any) -> dict[str, jax.Array]:
        found = find(params, pattern)
        if ndim:
            found = {path: leaf for path, leaf in found.items() if leaf.ndim == ndim}
            if not found:
                raise BadInput(f"{name}: no parameter that matches {pattern!r} is a matrix")
        return found

    def fn(state: State) -> jax.Array:
        values = [measure(leaf) for leaf in matched(state.params).values()]
        if not is_glob(pattern):
            return values[0]
        if dims:
            longest = max(v.shape[0] for v in values)
            values = [jnp.pad(v, (0, longest - v.shape[0]), constant_values=jnp.nan) for v in values]
        return jnp.stack(values)

    if not is_glob(pattern):
        return Probe(name, fn, dims, attrs={"long_name": f"{long_name} of {pattern}"})
    return Probe(
        name, fn, ("matrix", *dims), lambda p: {"matrix": list(matched(p))}, attrs={"long_name": long_name}
    )


def _frobenius(leaf: jax.Array) -> jax.Array:
    return jnp.sqrt(jnp.sum(leaf**2))


def _singular_values(matrix: jax.Array) -> jax.Array:
    # A matrix that is no longer finite has no spectrum; the decomposition itself need not say so.
    safe = jnp.where(jnp.isfinite(matrix).all(), matrix, 0)
    values = jnp.linalg.svd(safe, compute_uv=False)
    return jnp.where(jnp.isfinite(matrix).all(), values, jnp.nan)


def _stable_rank(matrix: jax.Array) -> jax.Array:
    s = _singular_values(matrix)
    # Scaled first, so that squares of tiny or huge values neither vanish nor overflow.
    return jnp.sum((s / s[0]) ** 2)
