"""When the network has not generalised by a given time: what is a plateau, and what is a trap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from saltus._lazy import np
from saltus.core import claim, stats
from saltus.core.errors import BadInput
from saltus.core.settings import reading, setting
from saltus.core.study import study
from saltus.papers.sim.studies import _failures
from saltus.papers.sim.studies._flows import World

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab

CONCEPTS = 3


@study(
    "sim/failures",
    cites="yang2025dynamics",
    figure="",
    version=2,
    cost="1.7 million trainings, 2 min on two cores (4 min as drawn)",
    checks=(
        "with d' < s columns, no network ever learns every concept",
        "it ends as the projection on its d' strongest axes",
        "with d' >= s every network learns: the failure of figure 10 is a plateau",
        "by the time of the published figure most networks have not learnt",
        "the plateau ends at ln(1/sigma_1) / (2 a_1), sigma_1 the Schur complement of the start",
        "the chance of a longer one falls as exp(-a_1 (d' - s + 1) t)",
        "one law for every ratio, start and width gives the measured map",
        "depth makes the plateau longer",
        "the flow is integrated to a stated accuracy",
    ),
)
@dataclass(frozen=True)
class Failures:
    """With fewer columns than concepts a network is trapped; with as many it only takes its time.

    A map of the probability that the symmetric model has not learnt every concept (each w_kk past 1/2 for
    good) by a given time, over the ratio of neighbouring signals, the size of the start and the width d';
    the contours of the law are drawn on it. As drawn puts A squared in the place of A. Plain linear networks
    of 2, 3, 4 layers are measured beside, over the size of the start; there is no law for their plateau here.
    """

    reading: str = reading()
    strongest: float = setting(
        3.0, "strongest signal of the map; the others are 1/ratio and 1/ratio^2 of it", above=0
    )
    ratio: tuple[float, float] = setting(
        (1.2, 3.0), "least and largest ratio of neighbouring signals", above=1
    )
    size: tuple[float, float] = setting((0.001, 0.3), "least and largest size of the start", above=0, high=1)
    ratios: int = setting(21, "ratios of the map", low=2)
    sizes: int = setting(17, "sizes of the map, evenly in the logarithm", low=2)
    widths: tuple[int, ...] = setting((1, 2, 3, 4, 6), "widths d'", low=1)
    start: str = setting("uniform", "entries of U(0)", choices=("uniform", "gaussian"))
    runs: int = setting(640, "trainings in each cell of the map", low=1)
    horizon: float = setting(100.0, "time the trainings of the map are followed", above=0)
    time: float = setting(30.0, "time at which the map is drawn and judged", above=0)
    times: int = setting(24, "further times at which the map is kept", low=1)
    mu: tuple[float, float, float] = setting(
        (0.7, 1.7, 3.0), "signals of the one world followed to the end", above=0
    )
    published: float = setting(100.0, "time the published figure 10 ends", above=0)
    long: float = setting(300.0, "time that world is followed", above=0)
    long_size: float = setting(0.1, "size of its starts", above=0, high=1)
    long_runs: int = setting(2**16, "its trainings for each width, and four times as many at d' = s", low=2)
    sigma: float = setting(0.05, "standard deviation of every cluster", low=0)
    depths: tuple[int, ...] = setting((2, 3, 4), "depths of plain linear networks", low=2)
    deep_sizes: tuple[float, ...] = setting((0.03, 0.1, 0.2, 0.4, 0.8), "sizes of their starts", above=0)
    deep_horizon: float = setting(100.0, "time they are followed", above=0)
    deep_width: int = setting(3, "their width", low=CONCEPTS)
    deep_runs: int = setting(2048, "their trainings, for each depth and size", low=1)
    stride: float = setting(
        0.4,
        "time step in units of 1/a_k while concept k is learnt, if that is stable",
        above=0,
        high=1,
    )
    law_runs: int = setting(2**18, "starts from which the law's distribution is drawn", low=1000)
    solved: int = setting(32, "starts checked against an adaptive solver", low=1)
    base: int = setting(0, "key that all starts share", low=0, high=2**32 - 1)

    presets: ClassVar = {
        "reading": {"as-drawn": {"time": 100.0, "long": 600.0, "deep_horizon": 300.0}},
    }

    def check(self) -> None:
        for name in ("ratio", "size"):
            low, high = getattr(self, name)
            if not low < high:
                raise BadInput(f"{name} needs a smaller and a larger number, as in 0.1,0.3")
        if len(set(self.widths)) < len(self.widths) or len(set(self.depths)) < len(self.depths):
            raise BadInput("widths and depths must each be given once")
        if not any(w < CONCEPTS for w in self.widths) or CONCEPTS not in self.widths:
            raise BadInput(
                f"widths need {CONCEPTS} and one below it, so that a trap and a plateau are compared"
            )
        if self.time > self.horizon or self.published > self.long:
            raise BadInput("time must not pass horizon, nor published long")
        if sorted(set(self.mu)) != list(self.mu):
            raise BadInput("mu must be ascending, as in 0.7,1.7,3")

    @property
    def power(self) -> int:
        return 2 if self.reading == "as-drawn" else 1

    def grid_ratios(self) -> Any:
        return np.linspace(*self.ratio, self.ratios)

    def grid_sizes(self) -> Any:
        return np.geomspace(*self.size, self.sizes)

    def grid_times(self) -> Any:
        return np.unique(np.append(np.geomspace(self.horizon / 50, self.horizon, self.times), self.time))

    def world(self, ratio: float) -> World:
        mu = (self.strongest / ratio**2, self.strongest / ratio, self.strongest)
        return World(mu, (self.sigma,) * CONCEPTS)

    def followed(self) -> World:
        return World(self.mu, (self.sigma,) * CONCEPTS)

    def followed_runs(self, width: int) -> int:
        """Trainings of the followed world: more where the tail of its times is fitted."""
        return self.long_runs * (4 if width == CONCEPTS else 1)

    def run(self, lab: Lab) -> xarray.Dataset:
        cost = _failures.cost(self)
        lab.show.say(f"  {cost.trainings:.3g} trainings, {cost.run_steps:.2g} steps of one of them")
        return _failures.compute(self, lab)

    def law(self, record: xarray.Dataset) -> xarray.Dataset:
        """The map's probability by the law, `late` and, without the Schur complement, `late_diagonal`."""
        return _failures.law(self, record)

    def gaps(self, record: xarray.Dataset, law: xarray.Dataset, name: str = "late") -> Any:
        """Measured less predicted probability at `time`, in the cells with d' >= s that learn at times."""
        at = dict(width=[w for w in self.widths if w >= CONCEPTS], time=self.time)
        measured = (record.late / record.runs).sel(at)
        open_ = (measured > 0) & (measured < 1)  # elsewhere nearly any law is right
        return (measured - law[name].sel(at)).values[open_.values]

    def claims(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        s = CONCEPTS
        thin = max(w for w in self.widths if w < s)
        never = {
            w: stats.share_of(int(record.long_never.sel(width=w)), self.followed_runs(w)) for w in self.widths
        }
        yield claim.above(
            "trap",
            f"with d' = {thin} < s, networks that have not learnt by t = {self.long:g} (share)",
            never[thin],
            0.99,
            control=(f"d' = {s}", never[s]),
        )
        gap, other = (abs(record.end_loss / law[k] - 1) for k in ("end_loss", "end_loss_fewer"))
        yield claim.below(
            "projection",
            f"with d' = {thin} the loss at x̂ ends at half the missing mu^2 (relative error, median)",
            stats.median(gap.sel(width=thin).values),
            0.01,
            control=("if one axis more were missing", stats.median(other.sel(width=thin).values)),
        )
        yield claim.below(
            "plateau",
            f"with d' = s = {s}, networks that have not learnt by t = {self.long:g} (share)",
            never[s],
            0.01,
            control=(f"d' = {thin}", never[thin]),
        )
        late = {
            w: stats.share_of(int(record.long_late.sel(width=w)), self.followed_runs(w)) for w in self.widths
        }
        drawn = self.reading == "as-drawn"
        yield claim.above(
            "published-failure",
            f"with d' = s = {s}, networks that have not learnt by t = {self.published:g} (share)",
            late[s],
            0.5,
            control=(f"by t = {self.long:g}", never[s]),
            expected=drawn,
            because=""
            if drawn
            else "with A all starts have learnt by t = 100; the published picture needs A squared",
        )
        yield claim.below(
            "half-time",
            f"end of the plateau against ln(1/sigma_1)/(2 a_1), d' = {s} (relative error, median)",
            stats.median(abs(record.long_time / record.predicted.sel(by="schur") - 1).sel(width=s).values),
            0.03,
            control=(
                "the diagonal entry for the Schur complement",
                stats.median(
                    abs(record.long_time / record.predicted.sel(by="diagonal") - 1).sel(width=s).values
                ),
            ),
        )
        yield claim.within(
            "tail",
            f"rate at which longer plateaus become rare, over a_1 (d' - s + 1), d' = {s}",
            _failures.tail(record, law, s, s),
            (0.8, 1.25),
            control=("the rate of one column more", _failures.tail(record, law, s, s + 1)),
        )
        yield claim.below(
            "map",
            f"law against probability at t = {self.time:g} where it is not 0 or 1, d' >= s (mean distance)",
            stats.mean(abs(self.gaps(record, law))),
            0.1,
            control=(
                "the diagonal entry for the Schur complement",
                stats.mean(abs(self.gaps(record, law, "late_diagonal"))),
            ),
        )
        size = min(self.deep_sizes, key=lambda x: abs(x - 0.1))
        deep = {
            n: stats.share_of(int(record.deep_late.sel(depth=n, deep_size=size)), self.deep_runs)
            for n in self.depths
        }
        yield claim.above(
            "depth",
            f"plain networks of {max(self.depths)} layers from U(0, {size:g}) not learnt by "
            f"t = {self.deep_horizon:g} (share)",
            deep[max(self.depths)],
            0.9,
            control=(f"{min(self.depths)} layers", deep[min(self.depths)]),
        )
        error = record.solver_error
        yield claim.below(
            "solver",
            "largest error of an entry of W along the way against an adaptive solver",
            stats.worst(error.sel(of="flow").values),
            1e-3,
            control=("another start's path", stats.worst(error.sel(of="other").values)),
        )

    def draw(self, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
        from saltus.papers.sim.studies import _failure_pictures

        return _failure_pictures.failures(self, record, law)
