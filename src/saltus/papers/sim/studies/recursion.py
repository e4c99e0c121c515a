"""When the printed recursion on W leaves the cone of positive semidefinite matrices, and diverges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from saltus._lazy import np, xr
from saltus.core import claim, stats
from saltus.core.errors import BadInput
from saltus.core.settings import reading, setting
from saltus.core.study import study
from saltus.papers.sim.studies import _cone, _flows
from saltus.papers.sim.studies._flows import World

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab


@study(
    "sim/recursion",
    cites="yang2025dynamics",
    figure="",
    cost="under a minute on two cores; --scale full: 65536 starts a setting, minutes on a GPU",
    checks=(
        "the recursion takes many starts out of the cone, gradient descent on U none",
        "at d' = s the share falls only as the square root of the step",
        "with a column more it falls as the step",
        "the linear phase says which starts leave",
        "and how many",
        "what leaves diverges",
        "it is truncation, not rounding: single precision changes hardly any fate",
        "smaller starts do not help",
    ),
)
@dataclass(frozen=True)
class Recursion:
    """Small steps cure the recursion on W only slowly: the share of lost starts falls as their square root.

    Recursion D.2 drops eta^2 M W M from gradient descent on U, and W can lose its positive eigenvalues: an
    axis with a negative one runs away. Shares of starts that leave the cone, get a negative diagonal entry,
    and diverge, in the world of figure 8, against step size, width d', start size and precision; beside them
    the prediction of the linear phase from each start alone, and gradient descent on U.
    """

    reading: str = reading()
    scale: str = setting("default", "number of starts", choices=("default", "full"))
    mu: tuple[float, ...] = setting((1.0, 1.5, 2.2), "signals, ascending", above=0)
    sigma: float = setting(0.05, "standard deviation of every cluster", low=0)
    etas: tuple[float, ...] = setting((0.03, 0.01, 0.003, 0.001), "step sizes, in the paper's clock", above=0)
    eta: float = setting(0.01, "step size of everything else", above=0)
    widths: tuple[int, ...] = setting((3, 4, 6), "widths d'", low=1)
    size: float = setting(0.1, "starts are U(0, size)", above=0, high=1)
    sizes: tuple[float, ...] = setting((0.3, 0.1, 0.01, 0.001), "sizes swept", above=0, high=1)
    runs: int = setting(2048, "starts of each setting", low=6)
    extra: float = setting(30.0, "time after the start's own, in units of 1/(2 a_1)", above=0)
    base: int = setting(0, "key that all starts share", low=0, high=2**32 - 1)

    presets: ClassVar = {
        "reading": {"as-drawn": {"etas": (0.01, 0.003, 0.001)}},
        "scale": {
            "full": {
                "runs": 2**16,
                "etas": (0.03, 0.01, 0.003, 0.001, 0.0003),
                "widths": (3, 4, 5, 6),
                "sizes": (0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0001),
            }
        },
    }

    def check(self) -> None:
        if not 2 <= len(self.mu) <= 6 or sorted(set(self.mu)) != list(self.mu):
            raise BadInput("mu needs two to six different signals in ascending order, as in 1,1.5,2.2")
        if len(set(self.etas)) < max(2, len(self.etas)):
            raise BadInput("etas needs two different step sizes or more, as in 0.01,0.001")
        s = len(self.mu)
        if s not in self.widths or s + 1 not in self.widths or len(set(self.widths)) < len(self.widths):
            raise BadInput(f"widths needs {s} and {s + 1}, each once: their exponents are compared")
        if len(set(self.sizes)) < len(self.sizes):
            raise BadInput("sizes must each be given once")
        limit = 1 / float(np.max(self.rates()))
        if max(*self.etas, self.eta) >= limit:
            raise BadInput(f"steps must be below {limit:.3g}, where gradient descent on U is stable")

    @property
    def power(self) -> int:
        return 2 if self.reading == "as-drawn" else 1

    def rates(self) -> Any:
        return _flows.moment(World(self.mu, (self.sigma,) * len(self.mu))) ** self.power

    def gd_etas(self) -> tuple[float, ...]:
        """The step sizes at which gradient descent is run beside: the coarse ones, where it is hardest."""
        return tuple(sorted(self.etas, reverse=True)[:2])

    def run(self, lab: Lab) -> xarray.Dataset:
        lab.show.say(f"  {_cone.run_steps(self):.2g} steps of one start")
        return _cone.compute(self, lab)

    def law(self, record: xarray.Dataset) -> xarray.Dataset:
        """The exponent (d' - s + 1)/2 of the share in eta, for each width."""
        from saltus.papers.sim.law import cone

        s = len(self.mu)
        each = [cone.exponent(s, int(w)) if w >= s else np.nan for w in record.width.values]
        return xr.Dataset({"exponent": ("width", each)}, coords={"width": record.width})

    def exponent(self, record: xarray.Dataset, width: int) -> stats.Estimate:
        """The exponent fitted to the shares that leave the cone."""
        return _cone.slope(record.eta.values, record.left.sel(width=width).values, self.runs)

    def claims(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        s, n = len(self.mu), self.runs
        coarse = max(self.etas)
        same, more = self.exponent(record, s), self.exponent(record, s + 1)

        def of(name: str, eta: float, width: int = s) -> stats.Estimate:
            return stats.share_of(int(record[name].sel(width=width, eta=eta)), n)

        yield claim.above(
            "leaves",
            f"starts that the recursion takes out of the cone at eta = {coarse:g}, d' = s (share)",
            of("left", coarse),
            0.2,
            control=(
                "gradient descent on U, same starts and step",
                stats.share_of(int(record.gd_left.sel(width=s, gd_eta=coarse)), n),
            ),
        )
        yield claim.within(
            "square-root",
            "exponent of that share in eta at d' = s, by theory 1/2",
            same,
            (0.35, 0.65),
            control=(f"d' = {s + 1}", more),
        )
        yield claim.within(
            "next-exponent",
            f"exponent of that share in eta at d' = {s + 1}, by theory 1",
            more,
            (0.7, 1.3),
            control=(f"d' = {s}", same),
        )
        total = n * len(self.etas)
        yield claim.above(
            "which",
            "starts whose fate is the one the linear phase predicts, d' = s, all steps (share)",
            stats.share_of(int(record.agree.sel(width=s).sum()), total),
            0.95,
            control=(
                "predicted from another start",
                stats.share_of(int(record.agree_other.sel(width=s).sum()), total),
            ),
        )
        yield claim.within(
            "how-many",
            "starts that leave over starts predicted to, d' = s, all steps (ratio)",
            self.ratio(record, s, s),
            (0.85, 1.15),
            control=(f"predicted for d' = {s + 1}", self.ratio(record, s, s + 1)),
        )
        gone, stayed = (
            stats.share_of(int(record.fate_diverged.sel(group=g)), int(record.fate_starts.sel(group=g)))
            for g in ("left", "stayed")
        )
        yield claim.above(
            "diverges",
            f"of the starts that leave at eta = {self.eta:g}, those that diverge (share)",
            gone,
            0.9,
            control=("of the starts that stay", stayed),
        )
        single, finer = (
            stats.share_of(int(record.precise_changed.sel(way_of=k)), n) for k in ("float32", "finer")
        )
        yield claim.below(
            "not-rounding",
            f"starts whose fate (negative diagonal) changes in single precision, eta = {self.eta:g} (share)",
            single,
            0.01,
            control=("at a third of the step", finer),
        )
        small = min(self.sizes)
        yield claim.above(
            "smaller-starts",
            f"change of the share that leaves when the same starts have size {small:g}, not {self.size:g}",
            _cone.paired(record.size_changed.sel(size=small).values, n),
            0.0,
            control=(
                "when the step is a third instead",
                _cone.paired(record.finer_changed.values, n),
            ),
        )

    def ratio(self, record: xarray.Dataset, width: int, predicted_for: int) -> stats.Estimate:
        """Starts that left over starts that were to, with the binomial error of the first."""
        seen = float(record.left.sel(width=width).sum())
        said = float(record.predicted.sel(width=predicted_for).sum())
        if said == 0:
            return stats.Estimate(float("nan"), -np.inf, np.inf, self.runs)
        half = 1.96 * float(np.sqrt(max(seen, 1.0))) / said
        return stats.Estimate(seen / said, seen / said - half, seen / said + half, self.runs)

    def draw(self, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
        from saltus.papers.sim.studies import _cone_pictures

        return _cone_pictures.recursion(self, record, law)
