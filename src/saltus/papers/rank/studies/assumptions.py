"""The assumptions of Theorem 4.1, checked at every stage of many toys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from saltus._lazy import np, xr
from saltus.core import claim, stats
from saltus.core.settings import setting
from saltus.core.study import study
from saltus.papers.rank.studies import _toys
from saltus.papers.rank.studies._toys import Toys, finite

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab


@study(
    "rank/assumptions",
    cites="boixadsera2023rank",
    figure="Assumptions 4.3-4.5",
    cost="half a minute on two cores; --scale paper: minutes",
    version=2,
    checks=(
        "winners are unique (control: two coordinates that are alike)",
        "every saddle is a strict minimum on its support (control: two heads that do the same)",
        "it is left at half the smallest eigenvalue (control: at all of it)",
        "noisy starts of a transition end at the same saddle (control: the wrong sign)",
    ),
)
@dataclass(frozen=True)
class Assumptions(Toys):
    """The theorem's assumptions hold at every stage of the toy, for starts that are small enough.

    L_min, above which log(1/alpha) must be for stages to come in order, says that. A small gap between
    winner and runner-up says nothing about a given alpha.
    """

    deltas: tuple[float, ...] = setting((0.01, 0.05, 0.2), "sizes of the noise in u", above=0, high=10)

    def run(self, lab: Lab) -> xarray.Dataset:
        parts = {f"teacher {r}": partial(self.one, r) for r in range(self.teachers)}
        data = _toys.padded(lab.keep_all(parts, "teachers")).assign_coords(delta=list(self.deltas))
        data = data.assign(alike())
        return _toys.describe(
            data,
            gap_winner=("waiting time of the runner-up over the winner's, less 1", "1"),
            returns=("rate of return to the saddle along its slowest direction", "1 / time"),
            spread=("distance of a noisy transition's end from the next saddle, in sqrt |m|", "1"),
            flipped=("the same with the wrong sign of the new coordinate", "1"),
            unbalanced=("smallest difference of |u(0)| and |v(0)|", "1"),
            leavers=("smallest gradient of a coordinate that left", "1"),
            delta=("size of the noise in u", "1"),
            tie_gap=("gap of the winner where two coordinates are alike", "1"),
            flat_least=("smallest eigenvalue where two heads do the same", "1"),
        )

    def one(self, run: int) -> xarray.Dataset:
        """One teacher: every stage that counts."""
        from saltus.papers.rank.law import assumptions
        from saltus.papers.rank.world import normals

        toy = self.toy(run)
        problem, found = _toys.problem(toy), _toys.counted(toy, self.learnt, self.atol)
        stages = range(len(found.stages) - 1)
        first = assumptions.nondegenerate(problem, found)
        spread = np.full((len(stages), len(self.deltas)), np.nan)
        flipped = np.full(len(stages), np.nan)
        for k in stages:
            for d, delta in enumerate(self.deltas):
                noise = normals(40_000 + 1000 * toy.run + 10 * k + d, (problem.size,))
                noise *= delta / np.linalg.norm(noise)
                spread[k, d] = assumptions.restarted(problem, found, k, noise)
                if d == 0:
                    flipped[k] = assumptions.restarted(problem, found, k, noise, flip=True)
        rates = [assumptions.relaxation(problem, s) for s in found.stages]
        data = xr.Dataset(
            {
                "gap_winner": ("stage", first.gaps[: len(stages)]),
                "spread": (("stage", "delta"), spread),
                "flipped": ("stage", flipped),
                "unbalanced": ((), first.unbalanced),
                "leavers": ((), first.leavers if np.isfinite(first.leavers) else np.nan),
            },
            coords={"stage": np.arange(len(stages))},
        )
        returns = xr.Dataset({"returns": ("stage", rates)}, coords={"stage": np.arange(len(rates))})
        return xr.merge([_toys.stairs(toy, self.learnt, self.atol), data, returns], join="outer")

    def law(self, record: xarray.Dataset) -> xarray.Dataset:
        """Half the smallest eigenvalue: the rate of return."""
        rate = record.least / 2
        rate.attrs.update(long_name="half the smallest eigenvalue on the support", units="1 / time")
        return xr.Dataset({"rate": rate})

    def claims(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        stages = _toys.counting(record)
        yield claim.above(
            "unique-winner",
            "4.3: no two coordinates wait equally long (relative gap, smallest of all stages).",
            stats.least(finite(record.gap_winner.values)),
            1e-9,
            control=("two coordinates that are alike", stats.exact(float(record.tie_gap))),
        )
        yield claim.above(
            "strict-minimum",
            "4.4: every saddle is a strict minimum on its support (smallest eigenvalue of all stages).",
            stats.least(finite(record.least.where(stages).values)),
            1e-6,
            control=("two heads that do the same", stats.exact(float(record.flat_least))),
        )
        seen = record.returns.where(stages)
        yield claim.within(
            "return-rate",
            "A plateau is returned to at half the smallest eigenvalue (measured over said, median over "
            "stages).",
            stats.median(finite((seen / law.rate).values)),
            (0.95, 1.05),
            control=("the whole eigenvalue", stats.median(finite((seen / law.rate / 2).values))),
        )
        yield claim.above(
            "robust",
            "4.5: transitions from noisy starts end at the same saddle, to 1e-4 (share of starts).",
            stats.share(finite(record.spread.values) < 1e-4),
            0.9,
            control=(
                "the new coordinate with the wrong sign",
                stats.share(finite(record.flipped.values) < 1e-4),
            ),
        )

    def draw(self, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
        from saltus.papers.rank.studies import _assumption_pictures

        return _assumption_pictures.assumptions(self, record, law)


def alike() -> dict[str, float]:
    """What the checkers say where the assumptions fail: two equal coordinates, and two that only their
    sum counts."""
    from saltus.papers.rank.law import greedy
    from saltus.papers.rank.law.objective import Problem, Quadratic

    u0, v0 = np.asarray([1.0, 0.8]), np.asarray([0.2, 0.3])
    apart = Problem(Quadratic(), (np.eye(2), np.asarray([1.0, 1.0])), u0, v0)
    same = Problem(Quadratic(), (np.ones((2, 2)), np.asarray([1.0, 1.0])), u0, v0)
    first = greedy.run(apart).stages[0]
    flat = greedy.run(same).stages[-1]
    return {"tie_gap": first.runner_up / first.wait - 1, "flat_least": flat.least}
