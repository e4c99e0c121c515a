"""What is watched at every step of every run, inside the compiled loop, without storing a path.

A watcher is a frozen value with `begin(view)`, `update(state, view)` and `result(state, view)`, all
elementwise over the runs. Steps are counted in the working precision; "never" is infinity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from saltus._jax import jnp
from saltus.papers.sim.symmetric.algebra import Matrix, positive

__all__ = ["Cone", "Descents", "Diverged", "Hits", "Lowest", "Rises", "View", "Watcher"]

State = Any


class View(NamedTuple):
    """One step of B runs: its number (its time in units of eta), W, loss at x̂ and training loss; d: the
    entries' arrays [B]."""

    step: Any
    w: Matrix
    loss: Any
    train: Any

    @property
    def time(self) -> Any:
        """The number of the step for every run [B], as a watcher's state."""
        return self.step + jnp.zeros_like(self.loss)

    @property
    def diagonal(self) -> tuple[Any, ...]:
        return tuple(self.w[i][i] for i in range(len(self.w)))


class Watcher(Protocol):
    """What `evolve` asks of a watcher; the results are named arrays [..., B]."""

    def begin(self, view: View) -> State: ...
    def update(self, state: State, view: View) -> State: ...
    def result(self, state: State, view: View) -> dict[str, Any]: ...


def _slack(asked: float, like: Any) -> float:
    """The asked slack, but never within what rounding alone does in this precision."""
    return max(asked, 8 * float(jnp.finfo(like.dtype).eps))


def _first(known: Any, happens: Any, step: Any) -> Any:
    """The number of the first step at which it happens; steps only grow, so the least is the first."""
    return jnp.where(happens, jnp.minimum(known, step), known)


@dataclass(frozen=True)
class Descents:
    """Descents of the loss at x̂: falling legs of its zigzag with hysteresis theta L(0).

    Results: `descents` [theta, B]. The count equals that of `law.descents.legs` on the stored curve.
    """

    theta: tuple[float, ...] = (0.001, 0.01)

    def begin(self, view: View) -> State:
        # Per threshold: the furthest point of this leg, the leg's sense (+1 rising), turns so far. The
        # curve is read with the leg's sign, so that one comparison serves both senses.
        one = jnp.ones_like(view.loss)
        return view.loss, tuple((view.loss, one, jnp.zeros_like(one)) for _ in self.theta)

    def update(self, state: State, view: View) -> State:
        first, legs = state

        def leg(state: State, theta: float) -> State:
            furthest, sense, turns = state
            signed = sense * view.loss
            furthest = jnp.where(signed > furthest, signed, furthest)
            turned = furthest - signed > theta * first
            return (
                jnp.where(turned, -signed, furthest),
                jnp.where(turned, -sense, sense),
                jnp.where(turned, turns + 1, turns),
            )

        return first, tuple(leg(s, t) for s, t in zip(legs, self.theta, strict=True))

    def result(self, state: State, view: View) -> dict[str, Any]:
        # The first leg is taken to rise, so turns fall, rise, fall, ...
        return {"descents": jnp.stack([jnp.ceil(turns / 2).astype(jnp.int32) for _, _, turns in state[1]])}


@dataclass(frozen=True)
class Hits:
    """When each w_kk first reaches each level, interpolated linearly within the step.

    Results: `hit` [level, d, B], in steps.
    """

    levels: tuple[float, ...] = (0.5,)

    def begin(self, view: View) -> State:
        def at_once(level: float) -> tuple[Any, ...]:
            return tuple(jnp.where(w >= level, 0.0, jnp.inf).astype(w.dtype) for w in view.diagonal)

        return view.time, view.diagonal, tuple(at_once(level) for level in self.levels)

    def update(self, state: State, view: View) -> State:
        begun, before, hits = state

        def hit(known: Any, level: float, was: Any, is_: Any) -> Any:
            within = jnp.where(is_ > was, (is_ - level) / (is_ - was), 0.0) * (view.step - begun)
            return jnp.where((is_ >= level) & (known == jnp.inf), view.step - within, known)

        return (
            view.time,
            view.diagonal,
            tuple(
                tuple(hit(*each) for each in zip(row, [level] * len(row), before, view.diagonal, strict=True))
                for row, level in zip(hits, self.levels, strict=True)
            ),
        )

    def result(self, state: State, view: View) -> dict[str, Any]:
        return {"hit": jnp.stack([jnp.stack(row) for row in state[2]])}


@dataclass(frozen=True)
class Lowest:
    """The smallest value of each w_kk so far, and the first step at which any is negative.

    Results: `lowest` [d, B], `negative_step` [B].
    """

    def begin(self, view: View) -> State:
        return view.diagonal, jnp.full_like(view.loss, jnp.inf)

    def update(self, state: State, view: View) -> State:
        lowest, first = state
        # A comparison, not a minimum: what is not a number changes nothing.
        lowest = tuple(jnp.where(w < low, w, low) for w, low in zip(view.diagonal, lowest, strict=True))
        negative = view.diagonal[0] < 0
        for w in view.diagonal[1:]:
            negative = negative | (w < 0)
        return lowest, _first(first, negative, view.step)

    def result(self, state: State, view: View) -> dict[str, Any]:
        return {"lowest": jnp.stack(state[0]), "negative_step": state[1]}


@dataclass(frozen=True)
class Diverged:
    """The first step with the loss at x̂ above `factor` L(0), and the first at which it is not finite.

    Results: `diverged_step` [B] (a loss that is not finite counts), `nonfinite_step` [B].
    """

    factor: float = 1e6

    def begin(self, view: View) -> State:
        never = jnp.full_like(view.loss, jnp.inf)
        return self.factor * view.loss, never, never

    def update(self, state: State, view: View) -> State:
        limit, diverged, nonfinite = state
        diverged = _first(diverged, ~(view.loss <= limit), view.step)
        return limit, diverged, _first(nonfinite, ~(view.loss < jnp.inf), view.step)

    def result(self, state: State, view: View) -> dict[str, Any]:
        return {"diverged_step": state[1], "nonfinite_step": state[2]}


@dataclass(frozen=True)
class Rises:
    """Steps at which the training loss rose by more than `slack` of its start, and its largest rise.

    Results: `train_rises` [B]; `train_rise` [B], in units of the start and never below 0. The slack is at
    least 8 units of rounding.
    """

    slack: float = 1e-12

    def begin(self, view: View) -> State:
        none = jnp.zeros_like(view.train)
        return view.train, view.train, none, none

    def update(self, state: State, view: View) -> State:
        first, before, count, most = state
        rise = view.train - before
        count = jnp.where(rise > _slack(self.slack, first) * first, count + 1, count)
        return first, view.train, count, jnp.where(rise > most, rise, most)

    def result(self, state: State, view: View) -> dict[str, Any]:
        return {"train_rises": state[2].astype(jnp.int32), "train_rise": state[3] / state[0]}


@dataclass(frozen=True)
class Cone:
    """The first step at which W has an eigenvalue below -slack: it has left the cone of PSD matrices.

    Results: `indefinite_step` [B]. The slack is at least 8 units of rounding.
    """

    slack: float = 1e-12

    def begin(self, view: View) -> State:
        return jnp.full_like(view.loss, jnp.inf)

    def update(self, state: State, view: View) -> State:
        return _first(state, ~positive(view.w, _slack(self.slack, view.loss)), view.step)

    def result(self, state: State, view: View) -> dict[str, Any]:
        return {"indefinite_step": state}
