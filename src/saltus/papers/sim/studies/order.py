"""Which concept one linear layer learns first: figures 2(a) and 2(b)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from saltus._lazy import np
from saltus.core import claim, stats
from saltus.core.errors import BadInput
from saltus.core.settings import setting
from saltus.core.study import study
from saltus.papers.sim.studies import _checks, _common, _theory, _trends
from saltus.papers.sim.studies._common import Case, Trained, case_name, learnt

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab

BIASES = (
    "the networks as drawn have biases, so the rates are eigenvalues of the second moment of (x, 1), "
    "and both axes end with the slowest one"
)


@dataclass(frozen=True)
class OneLayerPaths(Trained):
    """Settings and theory of the paths of one linear layer."""

    seeds: int = setting(64, "runs of each setting", low=1)

    def law(self, record: xarray.Dataset) -> xarray.Dataset:
        return _theory.one_layer_law(self, record, bias=self.drawn)

    def rates_claims(self, record: xarray.Dataset, law: xarray.Dataset, names: list[str]) -> Iterator[Claim]:
        """The paper's rate a_k (for steps of this size), and the rate of the law that applies."""
        g, eta = learnt(record), _theory.step_size(self)
        a = [
            _theory.rates(self, record.mu.sel(setting=n).values, record.sigma.sel(setting=n).values)
            for n in names
        ]
        with np.errstate(invalid="ignore", divide="ignore"):
            paper = -np.log1p(-eta * np.asarray(a)) / eta
        own = _trends.fitted_rate(
            record.step.values, law.g_median.sel(setting=names).transpose(..., "axis", "step").values, eta
        )
        yield _checks.rate_claim(
            record, g, names, paper, eta, "rate-a",
            "the end is exponential with rate a_k, at this step size -ln(1 - eta a_k)/eta",
            expected=not self.drawn, because=BIASES if self.drawn else "",
        )  # fmt: skip
        yield _checks.rate_claim(
            record, g, names, own, eta, "rate-law", "the rate read off each path is that read off the law"
        )


@study(
    "sim/fig2a",
    cites="yang2025dynamics",
    figure="2(a)",
    cost="a few seconds on two cores",
    checks=(
        "the concept with the stronger signal is ahead",
        "equal signals run along the diagonal",
        "the end is exponential with rate a_k",
        "the loss falls ever more slowly",
        "each run follows the law from its own start",
    ),
)
@dataclass(frozen=True)
class StrongerFirst(OneLayerPaths):
    """The stronger concept is learnt first.

    One linear layer, equal spreads, the first signal growing past the second. The path of the output at x̂
    bulges towards the axis with the larger a_k = sigma_k^2 + mu_k^2 / (number of clusters). As drawn there
    are biases, a cluster at the origin and a 30 times smaller step: the order is the same, the rates are not
    a_k but the eigenvalues of the second moment of (x, 1).
    """

    mu: tuple[tuple[float, float], ...] = setting(((1.0, 2.0), (2.0, 2.0), (3.0, 2.0)), "signals", above=0)
    sigma: float = setting(0.05, "spread of both clusters, in the unit of the reading", low=0)

    def check(self) -> None:
        super().check()
        if all(a == b for a, b in self.mu):
            raise BadInput("mu needs a pair of different signals, as in mu 1,2")

    def cases(self) -> list[Case]:
        pairs = list(self.mu)
        if not any(a == b for a, b in pairs):
            middle = sum(map(sum, pairs)) / (2 * len(pairs))
            pairs.append((middle, middle))  # the control: equal signals
        return [(pair, (self.sigma, self.sigma)) for pair in pairs]

    def run(self, lab: Lab) -> xarray.Dataset:
        return _common.train_cases(self, lab, self.cases())

    def claims(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        g = learnt(record)
        unequal = [case_name(c) for c in self.cases() if c[0][0] != c[0][1]]
        equal = next(case_name(c) for c in self.cases() if c[0][0] == c[0][1])
        way = {case_name(c): np.sign(c[0][1] - c[0][0]) for c in self.cases()}
        lead = {n: _trends.bulge(g.sel(setting=n).values) for n in [*unequal, equal]}
        right = np.concatenate([np.sign(lead[n]) == way[n] for n in unequal])
        yield claim.above(
            "stronger-first",
            "the path bulges towards the stronger concept (share of runs)",
            stats.share(right),
            0.75,
            control=("equal signals, bulge above the diagonal", stats.share(lead[equal] > 0)),
        )
        widest = max(unequal, key=lambda n: abs(np.mean(lead[n])))
        yield claim.within(
            "equal-on-diagonal",
            "with equal signals the mean path keeps to the diagonal (mean bulge)",
            stats.mean(lead[equal]),
            (-0.1, 0.1),
            control=(widest, stats.mean(lead[widest])),
        )
        yield from self.rates_claims(record, law, unequal)
        yield from _checks.slows_down(record)
        yield from _checks.follows_law(record, g, law)

    def draw(self, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
        from saltus.papers.sim.studies import _pictures

        return _pictures.signals(self, record, law)


@study(
    "sim/fig2b",
    cites="yang2025dynamics",
    figure="2(b)",
    cost="15 s on two cores",
    checks=(
        "with equal spreads the stronger signal is ahead",
        "a diverse enough weaker signal is ahead instead",
        "the lead changes hands where a_1 = a_2",
        "little diversity needs many more steps",
        "the end is exponential with rate a_k",
        "the loss falls ever more slowly",
        "each run follows the law from its own start",
    ),
)
@dataclass(frozen=True)
class DiverseFirst(OneLayerPaths):
    """The more diverse concept is learnt first, once its a_k is the larger.

    One linear layer, fixed signals, the spread of the weaker concept growing. The lead changes hands where
    a_1 = a_2, which a finer sweep around the predicted spread finds to a few per cent; (sigma^2 + mu^2)/s,
    which the main text prints once, puts it 40% too high. As drawn the biases change every rate, and yet not
    that place.
    """

    mu: tuple[float, float] = setting((1.0, 2.0), "signals, the second the stronger", above=0)
    sigma_1: tuple[float, ...] = setting(
        (0.05, 0.1, 0.5, 1.0, 2.0), "spreads of concept 1, in the unit of the reading", low=0
    )
    sigma_2: float = setting(0.05, "spread of concept 2, in the unit of the reading", low=0)
    sweep: tuple[float, ...] = setting(
        (0.5, 0.7, 0.85, 1.0, 1.15, 1.3, 1.5),
        "finer spreads of concept 1, in units of where a_1 = a_2",
        above=0,
    )
    presets: ClassVar = {"reading": {"as-drawn": {"sweep": (0.3, 0.5, 0.65, 0.8, 0.95, 1.1, 1.3)}}}

    def check(self) -> None:
        super().check()
        if self.mu[1] <= self.mu[0]:
            raise BadInput("the second signal must be the stronger here, as in mu 1,2")
        if len(self.sigma_1) < 2 or list(self.sigma_1) != sorted(set(self.sigma_1)):
            raise BadInput("sigma-1 needs two spreads or more in ascending order, as in 0.05,2")
        if len(self.sweep) < 2 or list(self.sweep) != sorted(set(self.sweep)):
            raise BadInput("sweep needs two factors or more in ascending order, as in 0.8,1,1.2")

    def predicted(self, wrong: bool = False) -> float:
        """The spread of concept 1 at which a_1 = a_2, in the unit of the reading.

        wrong: by (sigma^2 + mu^2) / s, which the main text prints once (Sec. 4.1), and not by eq. 4.1.
        """
        clusters = 1 if wrong else 2 + self.drawn
        gap = (self.mu[1] ** 2 - self.mu[0] ** 2) / clusters
        return self.sigma_2 + gap if self.drawn else float((self.sigma_2**2 + gap) ** 0.5)

    def cases(self) -> list[Case]:
        return [(self.mu, (x, self.sigma_2)) for x in self.sigma_1]

    def finer(self) -> list[Case]:
        return [(self.mu, (x * self.predicted(), self.sigma_2)) for x in self.sweep]

    def run(self, lab: Lab) -> xarray.Dataset:
        return _common.train_cases(self, lab, self.cases() + self.finer())

    def bulges(self, g: Any, cases: list[Case]) -> Any:
        """[setting, seed]"""
        return np.stack([_trends.bulge(g.sel(setting=case_name(c)).values) for c in cases])

    def claims(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        g = learnt(record)
        names = [case_name(c) for c in self.cases()]
        least, most = self.bulges(g, [self.cases()[0], self.cases()[-1]])
        yield claim.above(
            "stronger-first",
            f"at sigma_1 = {self.sigma_1[0]:g} the path runs on the side of concept 2 (median bulge)",
            stats.median(least),
            0.0,
            control=(f"sigma_1 = {self.sigma_1[-1]:g}", stats.median(most)),
        )
        yield claim.below(
            "diverse-first",
            f"at sigma_1 = {self.sigma_1[-1]:g} the path runs on the side of concept 1 (median bulge)",
            stats.median(most),
            0.0,
            control=(f"sigma_1 = {self.sigma_1[0]:g}", stats.median(least)),
        )
        yield self.crossing(g, law)
        yield self.many_more_steps(record, g)
        yield from self.rates_claims(record, law, names)
        yield from _checks.slows_down(record.sel(setting=names))
        yield from _checks.follows_law(
            record.sel(setting=names), g.sel(setting=names), law.sel(setting=names)
        )

    def by_law(self, law: xarray.Dataset) -> Any:
        """The law's bulge [setting, seed] along the sweep, averaged over a start and its opposite."""
        return (self.bulges(law.g, self.finer()) + self.bulges(law.g_mirror, self.finer())) / 2

    def without_start(self, g: Any, law: xarray.Dataset) -> Any:
        """The runs' bulge [setting, seed] along the sweep, the odd part of the start's share taken off.

        A start and its opposite are equally likely, so the mean stays; the scatter shrinks several times.
        """
        odd = self.bulges(law.g, self.finer()) - self.by_law(law)
        return self.bulges(g, self.finer()) - odd

    def crossing(self, g: Any, law: xarray.Dataset) -> Claim:
        spreads = np.asarray([c[1][0] for c in self.finer()])
        seen = self.without_start(g, law)
        by_law = _trends.root(spreads, self.by_law(law).mean(axis=1))
        return claim.within(
            "crossing",
            f"the mean bulge changes sign where a_1 = a_2, at sigma_1 = {self.predicted():.4g} "
            f"(the law's: {by_law:.4g}; ratio)",
            _trends.crossing(spreads, seen, self.predicted()),
            (0.9, 1.1),
            control=(
                f"(sigma^2 + mu^2)/s, which puts it at {self.predicted(True):.4g}",
                _trends.crossing(spreads, seen, self.predicted(True)),
            ),
        )

    def many_more_steps(self, record: xarray.Dataset, g: Any) -> Claim:
        """Steps until both outputs are within 10%; a run that never is counts with the steps it had."""

        def steps(case: Case) -> Any:
            slower = g.sel(setting=case_name(case)).min("axis").values
            done = _trends.passage(record.step.values, slower, np.full(slower.shape[0], 0.9))
            return np.where(np.isnan(done), record.step.values[-1], done)

        first, second, last = (steps(self.cases()[i]) for i in (0, 1, -1))
        return claim.above(
            "many-more-steps",
            f"sigma_1 = {self.sigma_1[0]:g} needs many more steps to 90% than {self.sigma_1[-1]:g} (ratio)",
            stats.median(first / last),
            3.0,
            control=(f"than sigma_1 = {self.sigma_1[1]:g}", stats.median(first / second)),
        )

    def draw(self, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
        from saltus.papers.sim.studies import _pictures

        return _pictures.spreads(self, record, law)
