"""One call to train a real network: data on the device, looks at chosen steps, a checkpoint to go on from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput
from saltus.descent import at as moments_of
from saltus.descent._how import Steps
from saltus.descent._world import cross_entropy
from saltus.descent.network import _checkpoint
from saltus.descent.network._engine import Engine, compiled, rate_table, scale_of
from saltus.descent.network._table import Table
from saltus.probe import as_probe

PyTree = Any


@dataclass(frozen=True, eq=False)
class Fit:
    """What a training gave.

    - `steps` [K] looked at; `seen`: what was seen there, by name [members, K, ...].
    - `seeds`, `scales` [members]; `diverged_at` [members]: the step whose loss was not finite, -1 if none.
    - `params`, `start`: parameters at the end and at the beginning, members stacked first if several.
    - `epoch` [K]: passes over the data made at `steps`; `step`: updates made, less than asked if stopped.
    """

    steps: np.ndarray
    epoch: np.ndarray
    seen: dict[str, np.ndarray]
    seeds: np.ndarray
    scales: np.ndarray
    diverged_at: np.ndarray
    params: PyTree
    start: PyTree
    step: int


def fit(
    model: Any,
    table: Table,
    how: Steps,
    *,
    seeds: int | Sequence[int] = (0,),
    scales: Sequence[float] | None = None,
    test: Table | None = None,
    watch: Sequence[Any] = (),
    at: moments_of.At | None = None,
    loss: Callable[[jax.Array, jax.Array], jax.Array] = cross_entropy,
    dtype: str = "float32",
    evaluate: int = 2048,
    keep: Path | str | None = None,
    every: int | None = None,
    base: int = 0,
    progress: Callable[[int, int], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Fit:
    """Train a network and look at it along the way.

    - `model`: anything with `init(key)` and `apply(params, x)`; `how`: a descent such as `adam(...)`.
    - `seeds`: each its own initial values and order of the data; `scales`: values for the model's field
      `scale` (its own unless said), every one with every seed: same draws, same order. Members are computed together.
    - `watch`: probes or functions of a `State`, whose `start` holds the initial parameters; `at`: when
      (64 log-spaced steps unless said). Always seen: loss and accuracy on the first `evaluate` training
      points and on `test`, and `loss_batches`, the mean over the batches since the last look.
    - `loss(output, target)`: of one point; `dtype`: of the parameters, which the model may compute
      with fewer bits from.
    - `keep`: a checkpoint file, written every `every` steps (at looks unless said) and when done; if it
      exists, training goes on from it, to the same bits.
    - `progress(done, total)` in steps; `stop()`: asked between stretches, true leaves early.
    """
    if not isinstance(how, Steps):
        raise BadInput(f"how must be a descent in steps such as descent.adam(...); got {how!r}")
    if not how.drop_last:
        raise BadInput("network.fit leaves out an epoch's last, shorter batch: say drop_last=True")
    plan = how.plan(len(table))
    probes = tuple(as_probe(w) for w in watch)
    steps = (at or moments_of.log()).steps(plan.total)
    of_seeds = np.atleast_1d(np.arange(seeds) if isinstance(seeds, int) else np.asarray(seeds))
    pairs = [(s, k) for k in (scales or (scale_of(model),)) for s in of_seeds.tolist()]
    keys, of_scales = members_of(pairs, base)
    engine = Engine(model, how, plan, loss, probes, dtype, len(pairs) > 1)
    tables = {"train": Table(table.x[:evaluate], table.y[:evaluate], table.mean, table.std).arrays()}
    if test is not None:
        tables["test"] = test.arrays()

    begin, advance, look = compiled(engine)
    whole, rates = table.arrays(), rate_table(how, plan.total)
    carry, start = begin(keys, of_scales)
    start = jax.tree.map(jnp.copy, start)  # the carry is given away at every call
    clock = np.asarray(how.clock(steps), float)
    seen: list[dict[str, Any]] = []
    step, mark = 0, _mark(model, how, plan, pairs, base, dtype, steps)
    if keep is not None and Path(keep).exists():
        held = _checkpoint.read(Path(keep), mark, (carry, start))
        (carry, start), seen, step = held.state, held.seen, held.step
    stops = sorted({*steps.tolist(), *range(every or plan.total, plan.total, every or plan.total)})

    def view(now: int, batches: int) -> None:
        found = look(carry, start, jnp.int32(now), jnp.asarray(clock[len(seen)]), keys, tables)
        mean = np.where(batches, np.asarray(carry.loss) / max(batches, 1), np.nan)
        seen.append(jax.tree.map(np.asarray, found | {"loss_batches": mean}))

    if not seen and steps[0] == 0:
        view(0, 0)
    for goal in [s for s in stops if s > step]:
        if stop is not None and stop():
            break
        carry = advance(carry, jnp.int32(step), jnp.int32(goal), keys, rates, whole)
        step = goal
        if goal in steps:
            view(goal, goal - int(steps[len(seen) - 1] if seen else 0))
            carry = carry._replace(loss=jnp.zeros_like(carry.loss))
        if progress is not None:
            progress(goal, plan.total)
        if keep is not None and (goal in steps if every is None else goal % every == 0 or goal == plan.total):
            _checkpoint.write(Path(keep), mark, step, (carry, start), seen)
    stacked = _stacked(seen, engine.many)
    return Fit(
        steps[: len(seen)],
        steps[: len(seen)] / plan.per_epoch,
        stacked,
        np.asarray([s for s, _ in pairs]),
        np.asarray([np.nan if k is None else k for _, k in pairs]),
        np.atleast_1d(np.asarray(carry.diverged_at)),
        carry.params,
        start,
        step,
    )


def members_of(pairs: Sequence[tuple[int, float | None]], base: int) -> tuple[jax.Array, jax.Array | None]:
    """Keys and scales of the (seed, scale) pairs, without an axis when there is one pair only."""
    seeds = np.asarray([s for s, _ in pairs], np.uint32)
    keys = jax.vmap(lambda s: jax.random.fold_in(jax.random.key(base), s))(seeds)
    scales = None if pairs[0][1] is None else jnp.asarray([k for _, k in pairs])
    if len(pairs) > 1:
        return keys, scales
    return keys[0], None if scales is None else scales[0]


def _mark(*setup: Any) -> str:
    """What must be the same for a checkpoint to be gone on from."""
    with np.printoptions(threshold=np.inf):
        return repr(setup)


def _stacked(seen: list[dict[str, Any]], many: bool) -> dict[str, np.ndarray]:
    """By name [members, K, ...]; a probe that gives a dict gives several variables, as `name_key`."""
    found: dict[str, list[np.ndarray]] = {}
    for one in seen:
        for name, value in one.items():
            parts = {f"{name}_{k}": v for k, v in value.items()} if isinstance(value, dict) else {name: value}
            for key, array in parts.items():
                found.setdefault(key, []).append(np.asarray(array))
    axis = 1 if many else 0
    return {k: np.stack(v, axis) if many else np.stack(v, axis)[None] for k, v in found.items()}
