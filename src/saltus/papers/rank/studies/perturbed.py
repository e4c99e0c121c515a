"""Training pushed off its path and let go: figures 3, 10 and 11."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from saltus._lazy import np, xr
from saltus.core import claim, stats
from saltus.core.settings import setting
from saltus.core.study import study
from saltus.papers.rank.studies import _pushes, _toys
from saltus.papers.rank.studies._toys import Toys

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab
    from saltus.papers.rank.law.flow import Flow
    from saltus.papers.rank.law.greedy import Staircase
    from saltus.papers.rank.world import Toy

BACK = 0.02  # largest difference of a product at which a run counts as back
ROOM = 12.0  # time constants: for coming back, and between that and the next stage
LONGEST = 3000.0  # saddles that take longer to come back to are passed over
CODES = {"random": 0, "transition": 1, "new": 2}
WHY = (
    "noise on u and on v apart moves u² - v², which the flow keeps: products come back, and the weights "
    "are then on "
    "another hyperbola"
)
FEW = (
    "nearly all are back, and a few not yet: with as many pushes as this the interval reaches just below "
    "the threshold"
)
RANDOM = (
    "pushed at a random time, products come back (control: dormant coordinates pushed as well)",
    "pushed in the middle of a transition, they come back too (control: the same)",
    "the weights themselves come back (control: the same)",
)
NEW = ("pushed where a coordinate becomes large, products end where they would (control: the same)",)


@dataclass(frozen=True)
class Perturbed(Toys):
    """Pushes of the flow from alpha = 10^-power, and the time it has to come back."""

    power: float = setting(32.0, "training starts at alpha = 10^-power", above=0.3, high=150)
    pushes: int = setting(
        8, "pushes of each kind and teacher, where a plateau has room to come back in", low=1, high=1000
    )
    spread: float = setting(0.05, "standard deviation of a push at a random time", above=0, high=10)
    small: float = setting(
        0.01, "standard deviation of a push where a coordinate becomes large", above=0, high=10
    )
    large: float = setting(1e-5, "weights above this are pushed", above=0, high=1)
    duration: float = setting(
        30.0, "time to come back, not rescaled; longer where a saddle is slower", above=0, high=LONGEST
    )

    kinds: ClassVar[tuple[str, ...]] = ("random", "transition", "new")

    def run(self, lab: Lab) -> xarray.Dataset:
        parts = {f"teacher {r}": partial(self.one, r) for r in range(self.teachers)}
        data = xr.concat(lab.keep_all(parts, "teachers"), "run", join="outer")
        data = data.assign_coords(run=np.arange(self.teachers))
        return _toys.describe(
            data,
            moment=("when the weights are pushed", "rescaled time"),
            duration=("time to come back", "time, not rescaled"),
            off=("largest difference of a product from the path not pushed", "1"),
            kind=("0 at a random time, 1 mid-transition, 2 where a coordinate becomes large", "1"),
            all=("whether dormant coordinates were pushed as well", "1"),
            push=("number of the push", "1"),
            off_weights=("largest difference of |u| or |v| at the end", "1"),
            pushed=("products u v after the push", "1"),
            plain=("products u v without it", "1"),
            share=("time since the push over all of it", "1"),
        )

    def one(self, run: int) -> xarray.Dataset:
        """One teacher: every push, and its control with dormant coordinates pushed as well."""
        parts = [self.pushed(self.toy(run), kind) for kind in CODES]
        data = xr.concat(parts, "push")
        return data.assign_coords(push=np.arange(data.sizes["push"]))

    def pushed(self, toy: Toy, kind: str) -> xarray.Dataset:
        from saltus.papers.rank.world import normals

        found = _toys.counted(toy, self.learnt, self.atol)
        flow = _toys.followed(toy, self.power, _toys.horizon(found), self.atol)
        rises = flow.half_rises(found.stages)
        cases = {"random": self.random_cases, "transition": self.middle_cases, "new": self.new_cases}[kind]
        rows = []
        for number, (when, lasts) in enumerate(cases(toy, found, rises, flow)):
            noise = normals(20_000 + 1000 * toy.run + 300 * CODES[kind] + number, (2, flow.problem.size))
            noise *= self.small if kind == "new" else self.spread
            for everything in (False, True):
                made = _pushes.push(flow, when, lasts, noise, everything, self.large, self.atol)
                facts = dict(kind=CODES[kind], moment=when, duration=lasts, all=everything)
                rows.append(made.assign({name: float(value) for name, value in facts.items()}))
        if not rows:  # no plateau has room: one row in which all is nan, for the shape
            blank = _pushes.push(
                flow, 0.0, 1.0, np.zeros((2, flow.problem.size)), False, self.large, self.atol
            )
            facts = dict.fromkeys(("kind", "moment", "duration", "all"), np.nan)
            rows = [(blank * np.nan).assign(facts)]
        return xr.concat(rows, "push")

    def random_cases(self, toy: Toy, found: Staircase, rises: Any, flow: Flow) -> list[tuple[float, float]]:
        """Random times with room before the next stage, and the time to come back."""
        from statistics import NormalDist

        from saltus.papers.rank.world import normals

        good = rises[np.isfinite(rises)]
        if not good.size:
            return []
        low, high = float(good.min()), flow.until
        at = [NormalDist().cdf(float(z)) for z in normals(30_000 + toy.run, (20 * self.pushes,))]
        cases = [(t, self.room(t, found, rises, flow)) for t in (low + x * (high - low) for x in at)]
        return [case for case in cases if case[1]][: self.pushes]

    def middle_cases(self, toy: Toy, found: Staircase, rises: Any, flow: Flow) -> list[tuple[float, float]]:
        """Middles of transitions with room before the next stage; several pushes of each, when there are
        few."""
        cases = [(t, self.room(t, found, rises, flow)) for t in map(float, rises[np.isfinite(rises)])]
        return ([case for case in cases if case[1]] * self.pushes)[: self.pushes]

    def room(self, when: float, found: Staircase, rises: Any, flow: Flow) -> float:
        """The time to come back in: `duration`, or what the saddle's slowest direction needs when that
        is longer.

        0 if the next stage is nearer than that and what may move it, O(1) / |g|.
        """
        later = [k for k, t in enumerate(rises) if t > when + 1e-12 or not np.isfinite(t)]
        k = later[0] if later else len(rises)
        stage = found.stages[k]
        lasts = float(max(self.duration, 2 * ROOM / max(stage.least, 1e-6)))
        if lasts > LONGEST:
            return 0.0
        if not later or not np.isfinite(rises[k]):
            return lasts
        return lasts if (rises[k] - when) * flow.L > lasts + ROOM / abs(float(stage.g[stage.winner])) else 0.0

    def new_cases(self, toy: Toy, found: Staircase, rises: Any, flow: Flow) -> list[tuple[float, float]]:
        """Where the winner of a stage with room first becomes large, up to the middle of its new plateau."""
        cases = []
        times = np.linspace(0.0, flow.until, 20_000)
        size = flow.size(times)
        for k in range(len(rises) - 1):
            big = size[:, found.stages[k].winner] > np.log(self.large)
            if not (np.isfinite(rises[k : k + 2]).all() and big.any()):
                continue
            when, end = float(times[np.argmax(big)]), float((rises[k] + rises[k + 1]) / 2)
            after = found.stages[k + 1]
            slowest = min(abs(float(after.g[after.winner])), after.least / 2)
            if end > when and (rises[k + 1] - rises[k]) * flow.L > 2 * ROOM / slowest:
                cases.append((when, (end - when) * flow.L))
        return (cases * self.pushes)[: self.pushes]  # several pushes of each, when there are few

    def claims(self, record: xarray.Dataset, law: None) -> Iterator[Claim]:
        back = (record.off.isel(share=-1) < BACK).values
        everything = record["all"].values == 1
        kind = record.kind.values
        weights = (record.off_weights < BACK).values

        def pair(hits: Any, name: str) -> tuple[Any, Any]:
            chosen = kind == CODES[name]
            return stats.share(hits[chosen & ~everything]), stats.share(hits[chosen & everything])

        if "random" in self.kinds:
            seen, control = pair(back, "random")
            yield claim.above(
                "returns",
                f"Pushed by {self.spread:g} at a random time, all products are back to {BACK:g} after "
                f"{self.duration:g} (share of pushes with room before the next stage).",
                seen,
                0.9,
                control=("all coordinates pushed, dormant ones too", control),
                expected=False,
                because=FEW,
            )
            seen, control = pair(back, "transition")
            yield claim.above(
                "returns-in-transition",
                "Pushed in the middle of a transition, they are back as well (share).",
                seen,
                0.9,
                control=("all coordinates pushed, dormant ones too", control),
            )
            seen, control = pair(weights, "random")
            yield claim.above(
                "weights-return",
                "The weights u and v themselves are back (share).",
                seen,
                0.9,
                control=("all coordinates pushed, dormant ones too", control),
                expected=False,
                because=WHY,
            )
        if "new" in self.kinds:
            seen, control = pair(back, "new")
            yield claim.above(
                "same-end",
                f"Pushed by {self.small:g} where a coordinate passes {self.large:g}, products are where "
                f"they would "
                "have been in the middle of its plateau (share of plateaus with room).",
                seen,
                0.9,
                control=("all coordinates pushed, dormant ones too", control),
            )

    def law(self, record: xarray.Dataset) -> None:
        return None

    def draw(self, record: xarray.Dataset, law: None) -> Figure:
        from saltus.papers.rank.studies import _perturbed_pictures

        return _perturbed_pictures.pushes(self, record)


COST = "under a minute on two cores; --scale paper: minutes"


@study("rank/fig3", cites="boixadsera2023rank", figure="3", cost=COST, version=2, checks=RANDOM + NEW)
@dataclass(frozen=True)
class Assumptions44And45(Perturbed):
    """Pushed off a plateau or at the start of a transition, nearly all products come back; weights cannot."""


@dataclass(frozen=True)
class View(Perturbed):
    """Pushes of figure 3, some kinds of them."""

    def run(self, lab: Lab) -> xarray.Dataset:
        record = lab.record_of(Assumptions44And45(**vars(self)))
        mine = record.kind.isin([CODES[name] for name in self.kinds])
        return record.isel(push=np.flatnonzero(mine.any("run"))).where(mine)


@study("rank/fig10", cites="boixadsera2023rank", figure="10", cost=COST, version=2, checks=RANDOM)
@dataclass(frozen=True)
class RandomTimes(View):
    """Pushed at random times, nearly all products come back, unless dormant coordinates are pushed too."""

    kinds: ClassVar[tuple[str, ...]] = ("random", "transition")


@study("rank/fig11", cites="boixadsera2023rank", figure="11", cost=COST, version=2, checks=NEW)
@dataclass(frozen=True)
class NewCoordinates(View):
    """Pushed where a coordinate becomes large, training is early or late, and ends at the same saddle."""

    kinds: ClassVar[tuple[str, ...]] = ("new",)
