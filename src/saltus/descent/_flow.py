"""Exact gradient flow, d params/dt = -grad L(params), by adaptive solvers with a stated tolerance."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput, nearest
from saltus.descent.stop import LossBelow, Rule

PyTree = Any

SOLVERS = (
    "Tsit5",  # order 5: the default for smooth, not stiff flows
    "Dopri8",  # order 8: tight tolerances
    "Kvaerno5",  # implicit: rates that differ by orders of magnitude
)


@dataclass(frozen=True, kw_only=True)
class Flow:
    """Gradient flow on all of the data until time `until`; use `flow`.

    - `rtol`, `atol`: relative and absolute error allowed in each solver step.
    - `solver`: Tsit5, Dopri8 or Kvaerno5 (stiff); `max_steps`: solver steps before giving up.
    """

    until: float
    rtol: float = 1e-8
    atol: float = 1e-10
    solver: str = "Tsit5"
    max_steps: int = 1_000_000

    def __post_init__(self) -> None:
        for name in ("until", "rtol", "atol"):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise BadInput(f"flow: {name} must be a positive number; got {value!r}")
        if self.rtol < 1e-14:
            raise BadInput(f"flow: rtol={self.rtol:g} is below what float64 can resolve; use rtol >= 1e-14")
        if self.solver not in SOLVERS:
            hint = nearest(self.solver, SOLVERS)
            raise BadInput(f"unknown solver {self.solver!r}{hint} (known: {', '.join(SOLVERS)})")
        if not isinstance(self.max_steps, int) or self.max_steps < 1:
            raise BadInput(f"flow: max_steps must be a whole number >= 1; got {self.max_steps!r}")


def flow(
    until: float,
    *,
    rtol: float = 1e-8,
    atol: float = 1e-10,
    solver: str = "Tsit5",
    max_steps: int = 1_000_000,
) -> Flow:
    """Exact gradient flow until time `until`; arguments as in `Flow`."""
    return Flow(until=until, rtol=rtol, atol=atol, solver=solver, max_steps=max_steps)


def check_rules(rules: Sequence[Rule]) -> None:
    for rule in rules:
        if not isinstance(rule, LossBelow):
            raise BadInput(f"a flow has no steps to count: {type(rule).__name__} is for descents in steps")


def follow(
    how: Flow,
    objective: Callable[[PyTree], jax.Array],
    params: PyTree,
    rules: Sequence[Rule],
    times: np.ndarray,
    look: Callable[[PyTree, jax.Array], PyTree],
) -> tuple[PyTree, jax.Array, jax.Array, jax.Array]:
    """One run: what `look(params, time)` saw at each of `times` [K]; when it failed or stopped (nan: never);
    and how many solver steps it took.

    The solver steps onto every one of `times`, so nothing is interpolated.
    """
    import diffrax

    slope = jax.grad(objective)
    highest = max((rule.value for rule in rules if isinstance(rule, LossBelow)), default=None)
    event = None
    if highest is not None:
        event = diffrax.Event(lambda t, y, args, **_: objective(y) < highest)
    controller = diffrax.ClipStepSizeController(
        diffrax.PIDController(rtol=how.rtol, atol=how.atol), step_ts=jnp.asarray(times)
    )
    inside = times[times > 0]
    at_moments = (
        diffrax.SubSaveAt(ts=jnp.asarray(inside), fn=lambda t, y, _: look(y, t)) if len(inside) else None
    )
    at_end = diffrax.SubSaveAt(t1=True, fn=lambda t, y, _: (t, y))
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, args: jax.tree.map(jnp.negative, slope(y))),
        getattr(diffrax, how.solver)(),
        t0=0.0,
        t1=how.until,
        dt0=None,
        y0=params,
        stepsize_controller=controller,
        saveat=diffrax.SaveAt(subs=[at_end] if at_moments is None else [at_end, at_moments]),
        max_steps=how.max_steps,
        event=event,
        throw=False,
    )
    end_time, end = jax.tree.map(lambda leaf: leaf[0], solution.ys[0])
    failed = (solution.result != diffrax.RESULTS.successful) & (
        solution.result != diffrax.RESULTS.event_occurred
    )
    stopped = solution.result == diffrax.RESULTS.event_occurred

    seen = jax.tree.map(lambda leaf: leaf[None], look(params, jnp.asarray(0.0))) if times[0] == 0 else None
    if len(inside):
        reached = jnp.asarray(inside) <= end_time
        kept = look(end, end_time)

        def frozen(saved: jax.Array, last: jax.Array) -> jax.Array:
            return jnp.where(reached.reshape(-1, *[1] * last.ndim), saved, last)

        later = jax.tree.map(frozen, solution.ys[1], kept)
        seen = later if seen is None else jax.tree.map(lambda a, b: jnp.concatenate([a, b]), seen, later)
    never = jnp.nan
    return (
        seen,
        jnp.where(failed, end_time, never),
        jnp.where(stopped, end_time, never),
        solution.stats["num_accepted_steps"],
    )
