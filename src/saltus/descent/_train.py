"""One call from (model, world, descent) to labelled arrays, over seeds and settings."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from saltus._jax import jax
from saltus._lazy import xr
from saltus.core.errors import BadInput
from saltus.descent import _label, _over, _program
from saltus.descent import at as moments
from saltus.descent._ensemble import run_many
from saltus.descent._flow import Flow, check_rules
from saltus.descent._how import Steps
from saltus.descent._world import half_squared_error
from saltus.descent.stop import Rule
from saltus.probe import as_probe
from saltus.probe import loss as watch_loss

Loss = Callable[[jax.Array, jax.Array], jax.Array]


# For tiny systems of ours loops become kernels of several outputs (see saltus._jax); of an exact flow on
# somebody's network XLA's compiler dies of that, and the process with it.
ANYBODYS = (("xla_disable_hlo_passes", "cpu_multi_output_fusion"),)


def train(
    model: Any,
    world: Any,
    how: Steps | Flow,
    *,
    seeds: int | Iterable[int] = range(32),
    watch: Any = (watch_loss,),
    at: moments.At | None = None,
    loss: Loss | None = None,
    stop: Rule | Sequence[Rule] | None = None,
    over: Mapping[str, Sequence[Any]] | None = None,
    dtype: str = "float64",
    block: int | None = None,
    chunk: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    base: int = 0,
) -> xr.Dataset:
    """Train every seed at every setting and watch: a dataset with dims (swept..., seed, step, ...).

    - `model`: anything with `init(key)` and `apply(params, x)`; `world`: anything with
      `sample(key) -> (x [N, n_in], y [N, ...])`; `how`: a descent, or a flow (dim `time` for `step`).
    - `seeds`: each draws its own initial weights, data and batches, from its own number and `base`
      alone: seed 7 is the same by itself and among ten thousand.
    - `watch`: probes or functions of a `State`; `at`: when to evaluate them (log-spaced unless said).
    - `loss(output, target)`: the loss of one point; half the squared error unless said.
    - `stop`: rules from `descent.stop`; a stopped run keeps the state it stopped in.
    - `over`: values for fields of the descent, model or world by name (`lr`, `world.sigma`), every
      combination of them. Real numbers share one compiled program; sizes are compiled one by one.
    - `dtype`: float64 or float32, of parameters and data.
    - `block`: runs computed together, chosen for the device unless said; `chunk`: blocks per call.

    The variables `diverged_at` and `stopped_at` hold the step (for a flow, the time) at which a run's
    loss ceased to be finite or a stop rule fired; -1 (nan) if never.
    """
    if not isinstance(how, Steps | Flow):
        raise BadInput(f"how must be a descent such as descent.sgd(...) or descent.flow(...); got {how!r}")
    for part, method in ((model, "apply"), (model, "init"), (world, "sample")):
        if not callable(getattr(part, method, None)):
            raise BadInput(f"{type(part).__name__} has no {method}(); see saltus.descent.train")
    if loss is not None and not callable(loss):
        raise BadInput(f"loss is a function of one output and one target; got {loss!r}")
    if dtype not in ("float64", "float32") or (isinstance(how, Flow) and dtype != "float64"):
        raise BadInput(f"dtype is float64 or float32 (a flow: float64 only); got {dtype!r}")
    probes = tuple(as_probe(w) for w in (watch if isinstance(watch, list | tuple) else [watch]))
    _distinct(probes)
    rules = _rules(stop)
    if isinstance(how, Flow):
        check_rules(rules)
    numbers = _seeds(seeds)
    parts = {"how": how, "model": model, "world": world}
    swept = _over.axes(over, parts)

    def datasets(swept: Sequence[_over.Axis]) -> xr.Dataset:
        separate = [a for a in swept if not a.traced]
        pieces = []
        for values in itertools.product(*(a.values for a in separate)):
            now = dict(parts)
            for a, value in zip(separate, values, strict=True):
                now[a.owner] = replace(now[a.owner], **{a.field: value})
            together = tuple(a for a in swept if a.traced)
            setup = _program.Setup(
                now["how"], now["model"], now["world"], probes, at, loss or half_squared_error, rules, dtype
            )
            pieces.append(_one_program(setup, together, numbers, block, chunk, progress, base))
        return _label.joined(pieces, separate, _over.names(swept))

    try:
        found = datasets(swept)
    except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError):
        # A model or world that needs plain numbers: compile its settings one by one.
        if not any(a.traced and a.owner != "how" for a in swept):
            raise
        found = datasets([replace(a, traced=a.traced and a.owner == "how") for a in swept])
    order = [_over.names(swept)[a.key] for a in swept]
    found = found.transpose(*order, "seed", ...)
    settings = {k: repr(v) for k, v in parts.items()} | {"loss": getattr(loss, "__name__", repr(loss))}
    if loss is None:
        settings["loss"] = half_squared_error.__name__
    found.attrs = settings | {"stop": repr(rules), "dtype": dtype, "base": base}
    return found


def _one_program(
    setup: _program.Setup,
    swept: tuple[_over.Axis, ...],
    seeds: np.ndarray,
    block: int | None,
    chunk: int | None,
    progress: Callable[[int, int], None] | None,
    base: int,
) -> xr.Dataset:
    program = _program.prepared(setup, tuple((a.owner, a.field) for a in swept))
    values = tuple(np.asarray(a.values, float) for a in swept)
    shape = (*(len(a.values) for a in swept), len(seeds))
    moments, plan = program.moments(values)
    size = program.block(values) if block is None else block
    seen = run_many(
        program.block_fn,
        int(np.prod(shape)),
        block=size,
        chunk=chunk,
        progress=progress,
        args=program.arguments(base, seeds, values),
        compiler_options=ANYBODYS,
    )
    seen = jax.tree.map(lambda leaf: leaf.reshape(*shape, *leaf.shape[1:]), seen)
    return _label.dataset(setup, swept, values, seeds, moments, plan, program.params(values), seen)


def _distinct(probes: Sequence[Any]) -> None:
    names = [p.name for p in probes]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise BadInput(f"watch: two probes are called {', '.join(twice)}; give one of them another name=")


def _rules(stop: Rule | Sequence[Rule] | None) -> tuple[Rule, ...]:
    rules: tuple[Any, ...] = (
        () if stop is None else tuple(stop) if isinstance(stop, list | tuple) else (stop,)
    )
    for rule in rules:
        if not callable(getattr(rule, "update", None)):
            raise BadInput(f"stop takes rules such as descent.stop.loss_below(1e-3); got {rule!r}")
    return rules


def _seeds(seeds: int | Iterable[int]) -> np.ndarray:
    if isinstance(seeds, int | np.integer) and not isinstance(seeds, bool):
        if seeds > 2**32:
            raise BadInput(f"seeds: there are 2**32 of them; got {seeds}")
        listed = np.arange(seeds)
    elif isinstance(seeds, Iterable):
        listed = np.asarray(list(seeds))
    else:
        raise BadInput(f"seeds: a number of seeds or a list of whole numbers is needed; got {seeds!r}")
    if listed.ndim != 1 or not listed.size or listed.dtype.kind not in "iu":
        raise BadInput("seeds: a number of seeds or a non-empty list of whole numbers is needed")
    if listed.min() < 0 or listed.max() >= 2**32:
        raise BadInput(f"seeds must lie in 0..2**32-1; got {listed.min()}..{listed.max()}")
    if len(np.unique(listed)) < len(listed):
        raise BadInput("seeds: the same seed is given twice")
    return listed.astype(np.int64)
