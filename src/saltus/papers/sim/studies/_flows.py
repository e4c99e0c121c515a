"""Ensembles of the symmetric model's exact flow: starts, time step, layout on the device, and its error."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from saltus._lazy import jax, jnp, np
from saltus.papers.sim.ranges import check_signals
from saltus.papers.sim.studies._grid import Grid

__all__ = [
    "Learnt",
    "World",
    "against_solver",
    "block_of",
    "moment",
    "on_host",
    "run_flow",
    "same_spread",
    "unit_starts",
]

# An accelerator's step costs the same up to about this many runs; on a host the engine's own small blocks
# keep a run's state in cache.
WIDEST_BLOCK = 2**17
CHECK_TIMES = 40


class World(NamedTuple):
    """Signals [s] and spreads [s] of a world with d = s."""

    mu: tuple[float, ...]
    sigma: tuple[float, ...]


@dataclass(frozen=True)
class Learnt:
    """A watcher: the step from which on every w_kk is past the level, infinite if one is not at the end.

    For good, not for the first time: while signals are nearly equal a rank-two W can pass 1/2 on three axes
    at once, and later gives one of them up.
    """

    level: float = 0.5

    def begin(self, view: Any) -> Any:
        here = self._least(view)
        return view.time, here, jnp.where(here >= self.level, 0.0, jnp.inf).astype(here.dtype)

    def update(self, state: Any, view: Any) -> Any:
        begun, before, since = state
        here = self._least(view)
        rising = here > before
        part = jnp.where(rising, (here - self.level) / jnp.where(rising, here - before, 1.0), 0.0)
        since = jnp.where(before >= self.level, since, view.step - part * (view.step - begun))
        return view.time, here, jnp.where(here >= self.level, since, jnp.inf)

    def result(self, state: Any, view: Any) -> dict[str, Any]:
        return {"learnt_step": state[2]}

    @staticmethod
    def _least(view: Any) -> Any:
        least = view.diagonal[0]
        for w in view.diagonal[1:]:
            least = jnp.minimum(least, w)
        return least


def moment(world: World) -> Any:
    """a_p = sigma_p^2 + mu_p^2 / s [s], the written second moment."""
    check_signals(world.mu, world.sigma)
    return np.square(world.sigma) + np.square(world.mu) / len(world.mu)


def same_spread(start: str, scale: float) -> float:
    """The scale at which a start has the root mean square of U(0, scale)."""
    return scale / math.sqrt(3.0) if start == "gaussian" else scale


def unit_starts(start: str, runs: int, d: int, width: int, base: int, first: int = 0) -> Any:
    """U(0) [runs, d, width] at scale 1; run i has the key of its own number."""
    from saltus.papers.sim import symmetric

    index = range(first, first + runs)
    return symmetric.starts(index, d, width, start=start, scale=1.0, base=base)


def run_flow(
    a: Any, target: Any, starts: Any, grid: Grid, *, how: str = "flow", **options: Any
) -> dict[str, Any]:
    """Every start [n, d, d'] along the grid, with a [d] or [n, d] the rates of the dynamics.

    `options` as in `symmetric.evolve`.
    """
    from saltus.papers.sim import symmetric

    n = len(starts)
    found = symmetric.evolve(
        a, target, n, how=how, start=starts, eta=grid.eta, steps=grid.steps, paces=grid.paces,
        block=block_of(n), **options,
    )  # fmt: skip
    if "learnt_step" in found:
        found["learnt"] = found.pop("learnt_step") * grid.eta
    return found


def block_of(runs: int) -> int | None:
    """Runs computed together: the engine's own choice on a host, as many as there are on an accelerator.

    A power of two, so that ensembles of nearly equal size share a compiled program.
    """
    from saltus._jax import workers

    if workers()[0].platform == "cpu":
        return None
    return min(1 << (runs - 1).bit_length(), WIDEST_BLOCK)


def on_host() -> contextlib.AbstractContextManager[Any]:
    """Inside, what is not an ensemble (an adaptive solver, a QR of each start) stays off the accelerator."""
    try:
        return jax.default_device(jax.local_devices(backend="cpu")[0])
    except RuntimeError:  # a JAX without its host backend
        return contextlib.nullcontext()


def against_solver(a: Any, target: Any, starts: Any, grid: Grid) -> Any:
    """Largest error of any entry of W along the way, against an adaptive solver at rtol 1e-11 [2, n].

    The second row is the control: the error if each path had been taken for the next start's.
    """
    from saltus.papers.sim.law import two_layer

    at = np.unique(np.round(np.linspace(0, grid.steps, CHECK_TIMES)).astype(int))
    seen = run_flow(a, target, starts, grid, watch=(), at=at)["path_w"]
    with on_host():
        solved = two_layer.flow(starts, a, grid.times(at), rtol=1e-11, atol=1e-14)
        truth = np.asarray(two_layer.gram(solved))
    return np.stack([np.abs(seen - t).max((1, 2, 3)) for t in (truth, np.roll(truth, 1, axis=0))])
