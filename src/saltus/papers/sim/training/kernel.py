"""A reduced linear training as one GPU kernel: a run's layers stay in registers from first step to last.

A loop of compiled steps launches some twenty kernels a step, and each reads and writes every layer of every
run; here a step reads one k x k moment. One kernel instance is one run, so a run does not depend on how
many there are. What is done is `linear.step`, with the k rows of every product as arrays of their own.

Inside, a vector [h] is [h / 16, 16] and a matrix [h', h] is [h' / 16, h / 16, 16, 16]. A compiler that lays
out an array for a GPU's threads gives the last axes to neighbouring threads; so each holds a small block of
a matrix, and sums along its rows and its columns both take few exchanges between threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from saltus._jax import jax, jnp

__all__ = ["Rows", "Trainings", "available", "fits", "train"]

WARPS = 8  # 64 x 64 numbers of float64 are 32 registers a thread: three layers and a product's terms fit
TILE = 16
SIZES = (16, 32, 64)
MOST_LAYERS, MOST_ROWS, MOST_POINTS = 5, 6, 32

Rows = tuple[jax.Array, ...]  # k vectors


class Trainings(NamedTuple):
    """B runs.

    - `first` [B, k, h], `weights` [B, out, in] and `biases` [B, out] (or none) of the later layers.
    - `goal` [B, k, d]: what the last product should become; `moments` [B, N, k, k]: of the batches, in
      turn; `rate` [B]: 2 c times the step size.
    - `points` [k, P]: where a loss that is not finite is looked for, P a power of two.
    - `kept` [U]: ascending numbers of steps; `own` [B]: 1 for runs to be computed, 0 for others.
    """

    first: jax.Array
    weights: tuple[jax.Array, ...]
    biases: tuple[jax.Array, ...]
    goal: jax.Array
    moments: jax.Array
    rate: jax.Array
    points: jax.Array
    kept: jax.Array
    own: jax.Array


def available() -> bool:
    """Whether this JAX can write such kernels."""
    try:
        from jax.experimental.pallas import triton  # noqa: F401
    except ImportError:
        return False
    return True


def fits(depth: int, dim: int, width: int, rows: int, points: int) -> bool:
    """Whether a network is of a size that such a kernel holds."""
    sizes = (dim, width) if depth > 1 else (dim,)
    return (
        all(size in SIZES for size in sizes)
        and depth <= MOST_LAYERS
        and rows <= MOST_ROWS
        and points <= MOST_POINTS
    )


def train(runs: Trainings, interpret: bool = False) -> tuple[jax.Array, jax.Array]:
    """Errors R of the last product [B, U, k, d] after the kept steps; first step lost [B, P], -1 if none.

    A step is lost at a point when the loss there is not finite; looked for up to the last kept step.
    `interpret`: run the kernel's program without a GPU, slowly.
    """
    from jax.experimental import pallas as pl

    count, k = runs.first.shape[:2]
    d = runs.goal.shape[-1]
    given, tree = jax.tree.flatten(_tiled(runs))

    def body(*refs: Any) -> None:
        _one(pl.program_id(0), jax.tree.unflatten(tree, refs[: len(given)]), *refs[len(given) :])

    options: dict[str, Any] = {"interpret": True}
    if not interpret:
        from jax.experimental.pallas import triton

        options = {"compiler_params": triton.CompilerParams(num_warps=_warps(runs), num_stages=1)}
    errors, lost = pl.pallas_call(
        body,
        out_shape=[
            jax.ShapeDtypeStruct((count, len(runs.kept), k, *_tiles(d)), runs.goal.dtype),
            jax.ShapeDtypeStruct((count, runs.points.shape[1]), jnp.int32),
        ],
        grid=(count,),
        name="saltus_linear_training",
        **options,
    )(*given)
    return errors.reshape(*errors.shape[:-2], d), lost


def _tiles(size: int) -> tuple[int, int]:
    tile = min(size, TILE)
    return size // tile, tile


def _tiled(runs: Trainings) -> Trainings:
    def vector(a: jax.Array) -> jax.Array:
        return a.reshape(*a.shape[:-1], *_tiles(a.shape[-1]))

    def matrix(a: jax.Array) -> jax.Array:
        return a.reshape(len(a), *_tiles(a.shape[1]), *_tiles(a.shape[2])).swapaxes(2, 3)

    return runs._replace(
        first=vector(runs.first),
        weights=tuple(map(matrix, runs.weights)),
        biases=tuple(map(vector, runs.biases)),
        goal=vector(runs.goal),
    )


def _warps(runs: Trainings) -> int:
    largest = max((w.shape[1] * w.shape[2] for w in runs.weights), default=64)
    return max(1, min(WARPS, largest // 256))


def _one(run: Any, at: Trainings, seen: Any, lost_at: Any) -> None:
    """One run, from references to what all runs are given and to what they give."""
    k, batches = at.first.shape[1], at.moments.shape[1]
    goal = tuple(at.goal[run, i, :, :] for i in range(k))
    points = tuple(at.points[i, :] for i in range(k))
    rate, own = at.rate[run], at.own[run]
    state = (
        tuple(at.first[run, i, :, :] for i in range(k)),
        tuple(w[run, :, :, :, :] for w in at.weights),
        tuple(b[run, :, :] for b in at.biases),
    )

    def look(n: Any, error: Rows, lost: Any) -> Any:
        at_points = sum(p[:, None, None] * row[None] for p, row in zip(points, error, strict=True))
        loss = jnp.sum(jnp.sum(at_points * at_points, axis=1), axis=1) / 2
        fine = loss < jnp.asarray(jnp.inf, loss.dtype)  # false for what is not a number, too
        return jnp.where(fine, lost, jnp.where(lost < 0, n, lost))

    def step(n: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        state, lost = carry
        batch = jax.lax.rem(n, jnp.int32(batches))
        moment = [[at.moments[run, batch, i, j] for j in range(k)] for i in range(k)]
        rows = _products(state)
        error = _minus(rows[-1], goal)
        lost = look(n, error, lost)
        back = tuple(rate * sum(m * row for m, row in zip(moment[i], error, strict=True)) for i in range(k))
        return _moved(state, rows, back), lost

    def stretch(number: Any, carry: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        begun, state, lost = carry
        end = at.kept[number] * own
        state, lost = jax.lax.fori_loop(begun, end, step, (state, lost))
        for i, row in enumerate(_minus(_products(state)[-1], goal)):
            seen[run, number, i, :, :] = row
        return end, state, lost

    none = jnp.full(points[0].shape, -1, jnp.int32)
    zero, all_kept = jnp.int32(0), jnp.int32(at.kept.shape[0])
    end, state, lost = jax.lax.fori_loop(zero, all_kept, stretch, (zero, state, none))
    lost_at[run, :] = look(end, _minus(_products(state)[-1], goal), lost)


def _sums(terms: jax.Array, side: int) -> jax.Array:
    """Sums [in] of a tiled matrix over its outputs (side 0), or [out] over its inputs (side 1)."""
    # First over whole tiles, which one thread has; then within them.
    return jnp.sum(jnp.sum(terms, axis=side), axis=1 + side)


def _minus(a: Rows, b: Rows) -> Rows:
    return tuple(x - y for x, y in zip(a, b, strict=True))


def _products(state: tuple[Rows, Rows, Rows]) -> list[Rows]:
    """H_l = W_l H_{l-1} + b_l e^T for every layer: k rows each."""
    first, weights, biases = state
    products = [first]
    for number, weight in enumerate(weights):
        rows = [_sums(weight * row[None, :, None, :], 1) for row in products[-1]]
        if biases:
            rows[-1] = rows[-1] + biases[number]
        products.append(tuple(rows))
    return products


def _moved(state: tuple[Rows, Rows, Rows], products: list[Rows], back: Rows) -> tuple[Rows, Rows, Rows]:
    """The state after one step, from the step's change of the last product's rows, `back`."""
    first, weights, biases = state
    moved: list[jax.Array] = []
    shifted: list[jax.Array] = []
    for number in reversed(range(len(weights))):
        weight = weights[number]
        pairs = zip(back, products[number], strict=True)
        change = sum(b[:, None, :, None] * row[None, :, None, :] for b, row in pairs)
        moved.insert(0, weight - change)
        if biases:
            shifted.insert(0, biases[number] - back[-1])
        back = tuple(_sums(b[:, None, :, None] * weight, 0) for b in back)
    return _minus(first, back), tuple(moved), tuple(shifted)
