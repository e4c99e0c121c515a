"""How many times the loss at the test point falls, and how often, over many starts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from saltus.core import claim, stats
from saltus.core.errors import BadInput
from saltus.core.settings import reading, setting
from saltus.core.study import study
from saltus.papers.sim.studies import _counts
from saltus.papers.sim.studies._counts import Case, share
from saltus.papers.sim.studies._flows import World

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab

# The published worlds of figures 5, 8, 9, 10, in the paper's text.
PUBLISHED = {
    "fig5": World((1.0, 1.5), (0.05, 0.05)),
    "fig8": World((1.0, 1.5, 2.2), (0.05, 0.05, 0.05)),
    "fig9": World((1.0, 1.5, 2.2, 2.7), (0.05, 0.05, 0.05, 0.5)),
    "fig10": World((0.7, 1.7, 3.0), (0.05, 0.05, 0.05)),
}
STIFFEST = 200.0  # ratio of rates up to which steps are short enough for all and still few


@study(
    "sim/census",
    cites="yang2025dynamics",
    figure="",
    version=3,
    cost="3 min on two cores, 6 min as drawn; --starts 2048 gives a first look in seconds",
    checks=(
        "no start shows more descents than there are concepts",
        "with d' < s columns, some starts show more than d'",
        "two descents or more are common from non-negative starts",
        "at s = 2 the second descent needs w_12(0) > 0",
        "smaller starts weaken the second descent",
        "separate signals make it frequent",
        "a descent for every concept becomes rare as s grows",
        "two descents or more stay common as s grows",
        "they do so when neighbouring signals keep a constant ratio, too",
        "squaring A, as the figures were drawn, makes three descents common",
        "halving the time step changes no count",
        "the flow is integrated to a stated accuracy",
    ),
)
@dataclass(frozen=True)
class Census:
    """Repeated descents are common from non-negative starts and not from Gaussian ones.

    Every start of the two-layer symmetric model is followed along its exact flow until all is learnt, and
    the descents of the loss at x̂ are counted with hysteresis: against the number of concepts (mu = 1, 1.5, 2,
    ..., and mu = 1, 1.5, 1.5^2, ... where the rates differ by no more than a factor of 200), the published
    worlds, the size of the start, the ratio of two signals and the width d'. The reading says which dynamics
    the claims are about: A, or A squared as drawn. Both are compared but for the number of concepts.
    """

    reading: str = reading()
    starts: int = setting(2**17, "starts of each setting", low=1)
    concepts: tuple[int, ...] = setting((2, 3, 4, 5, 6), "numbers of concepts s", low=2, high=6)
    spacing: float = setting(0.5, "difference of neighbouring signals; the weakest is 1", above=0)
    constant: float = setting(1.5, "ratio of neighbouring signals where that is held constant", above=1)
    sigma: float = setting(0.05, "standard deviation of every cluster", low=0)
    size: float = setting(
        0.1, "starts are U(0, size), or Gaussian with the same mean square", above=0, high=1
    )
    sizes: tuple[float, ...] = setting(
        (0.3, 0.1, 0.01, 0.001, 0.0001), "sizes swept at s = 2", above=0, high=1
    )
    ratios: tuple[float, ...] = setting((1.1, 1.25, 1.5, 2.0, 3.0, 5.0), "ratios mu_2 / mu_1 swept", above=1)
    widths: tuple[int, ...] = setting((1, 2, 3, 4, 6, 12), "widths d' swept at s = 3", low=1)
    theta: tuple[float, ...] = setting((0.001, 0.01), "least leg of a descent, in units of L(0)", above=0)
    stride: float = setting(
        0.2,
        "time step in units of 1/a_k while concept k is learnt, if that is stable",
        above=0,
        high=1,
    )
    extra: float = setting(20.0, "log of the rarest start still followed to the end, squared", above=0)
    checked: int = setting(4096, "starts whose counts are checked at half the time step", low=1)
    solved: int = setting(32, "starts checked against an adaptive solver", low=1)
    base: int = setting(0, "key that all starts share", low=0, high=2**32 - 1)

    def check(self) -> None:
        if len(self.theta) < 2 or list(self.theta) != sorted(set(self.theta)):
            raise BadInput("theta needs two thresholds or more in ascending order, as in 0.001,0.01")
        for name, least in (("concepts", 2), ("sizes", 2), ("ratios", 2), ("widths", 1)):
            if len(set(getattr(self, name))) < max(least, len(getattr(self, name))):
                raise BadInput(f"{name} needs at least {least} different values")

    @property
    def power(self) -> int:
        return 2 if self.reading == "as-drawn" else 1

    def cases(self) -> list[Case]:
        """Every setting of the census, with A and with A squared but for the sweep of concepts."""
        found: list[Case] = []
        for start in ("uniform", "gaussian"):
            for s in self.concepts:
                found.append(Case("concepts", s, self.spaced(s), start, self.size, s, self.power))
            for s in self.kept():
                found.append(Case("constant ratio", s, self.scaled(s), start, self.size, s, self.power))
        for power in (1, 2):
            for name, world in PUBLISHED.items():
                s = len(world.mu)
                found.append(Case(name, s, world, "uniform", self.size, s, power))
            for size in self.sizes:
                found.append(Case("size", size, PUBLISHED["fig5"], "uniform", size, 2, power))
            for ratio in self.ratios:
                world = World((1.0, ratio), (self.sigma,) * 2)
                found.append(Case("ratio", ratio, world, "uniform", self.size, 2, power))
            for width in self.widths:
                found.append(Case("width", width, PUBLISHED["fig8"], "uniform", self.size, width, power))
        return found

    def spaced(self, s: int) -> World:
        return World(tuple(1 + self.spacing * k for k in range(s)), (self.sigma,) * s)

    def scaled(self, s: int) -> World:
        return World(tuple(self.constant**k for k in range(s)), (self.sigma,) * s)

    def kept(self) -> list[int]:
        """The numbers of concepts that are counted at a constant ratio."""
        return [s for s in self.concepts if self.constant ** (2 * self.power * (s - 1)) <= STIFFEST]

    def run_steps(self) -> float:
        """Steps of one start, over all starts: what the computation costs."""
        return float(sum(c.grid(self).steps for c in self.cases())) * self.starts

    def run(self, lab: Lab) -> xarray.Dataset:
        lab.show.say(f"  {self.run_steps():.2g} steps of one start, each a Runge-Kutta step of order 4")
        return _counts.count(self, lab)

    def law(self, record: xarray.Dataset) -> None:
        """No theory of the paper says how often."""

    def claims(self, record: xarray.Dataset, law: None) -> Iterator[Claim]:
        p, low = self.power, self.theta[0]
        first, last = min(self.concepts), max(self.concepts)
        size, small = (
            max(self.sizes, key=lambda x: -abs(x - 0.1)),
            min(self.sizes, key=lambda x: abs(x - 1e-3)),
        )

        def of(family: str, x: float, least: int, start: str = "uniform", power: int = p, theta: float = low,
               sign: int | None = None) -> stats.Estimate:  # fmt: skip
            return share(record, family, x, start, power, theta, least, sign)

        yield claim.below(
            "at-most-s",
            "starts with more descents than concepts, over all settings (share)",
            _counts.too_many(record),
            1e-3,
            control=(
                "gradient descent with steps past its stability limit, s = 3",
                stats.share(record.unstable.values > 3),
            ),
        )
        if {1, 2} <= set(self.widths):
            written = self.reading == "as-written"
            yield claim.above(
                "more-than-width",
                f"at s = 3 with d' = 2, starts with three descents, theta {low:.2%} (share)",
                of("width", 2, 3),
                1e-3,
                control=("with d' = 1, starts with two", of("width", 1, 2)),
                expected=written,
                because="" if written else "with A squared they are rarer, 4 of 8192",
            )
        yield claim.above(
            "non-negative",
            f"two descents or more at s = {first} from non-negative starts, theta {low:.2%} (share)",
            of("concepts", first, 2),
            0.5,
            control=("Gaussian starts of the same size", of("concepts", first, 2, "gaussian")),
        )
        if 2 in self.concepts:
            yield claim.below(
                "sign",
                f"two descents at s = 2 from Gaussian starts with w_12(0) < 0, theta {low:.2%} (share)",
                of("concepts", 2, 2, "gaussian", sign=-1),
                0.05,
                control=("with w_12(0) > 0", of("concepts", 2, 2, "gaussian", sign=1)),
            )
        yield claim.below(
            "smaller-starts",
            f"two descents at start size {small:g}, theta {self.theta[1]:.2%} (share)",
            of("size", small, 2, theta=self.theta[1]),
            0.15,
            control=(f"start size {size:g}", of("size", size, 2, theta=self.theta[1])),
        )
        near, far = min(self.ratios), min(self.ratios, key=lambda x: abs(math.log(x / 2)))
        yield claim.above(
            "separation",
            f"two descents at mu_2 / mu_1 = {far:g}, theta {low:.2%} (share)",
            of("ratio", far, 2),
            0.8,
            control=(f"mu_2 / mu_1 = {near:g}", of("ratio", near, 2)),
        )
        yield claim.below(
            "one-each-is-rare",
            f"{last} descents at s = {last} from non-negative starts, theta {low:.2%} (share)",
            of("concepts", last, last),
            0.1,
            control=(f"{first} descents at s = {first}", of("concepts", first, first)),
        )
        yield claim.above(
            "two-stay-common",
            f"two descents or more at s = {last} from non-negative starts, theta {low:.2%} (share)",
            of("concepts", last, 2),
            0.5,
            control=("Gaussian starts of the same size", of("concepts", last, 2, "gaussian")),
        )
        if kept := self.kept():
            yield claim.above(
                "two-at-constant-ratio",
                f"two descents or more at s = {max(kept)} with neighbouring signals in the ratio "
                f"{self.constant:g}, theta {low:.2%} (share)",
                of("constant ratio", max(kept), 2),
                0.8,
                control=(
                    "Gaussian starts of the same size",
                    of("constant ratio", max(kept), 2, "gaussian"),
                ),
            )
        yield claim.above(
            "as-drawn",
            f"three descents in the world of figure 8 with A squared, theta {low:.2%} (share)",
            of("fig8", 3, 3, power=2),
            0.4,
            control=("with A", of("fig8", 3, 3, power=1)),
        )
        changed = record.recount != record.recount.sel(by="flow")
        yield claim.below(
            "time-step",
            f"starts whose count changes at half the time step, theta {low:.2%} (share over both dynamics)",
            stats.share(changed.sel(by="half").values),
            0.02,
            control=(
                "Euler's method at four times the time step",
                stats.share(changed.sel(by="euler").values),
            ),
        )
        yield claim.below(
            "solver",
            "largest error of an entry of W along the way against an adaptive solver, s = 3 (both dynamics)",
            stats.worst(record.solver_error.sel(of="flow").values),
            1e-3,
            control=("another start's path", stats.worst(record.solver_error.sel(of="other").values)),
        )

    def draw(self, record: xarray.Dataset, law: None) -> Figure:
        from saltus.papers.sim.studies import _count_pictures

        return _count_pictures.census(self, record)
