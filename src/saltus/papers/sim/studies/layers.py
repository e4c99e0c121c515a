"""The order of learning with two layers: figures 11 (linear) and 12 (ReLU)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from saltus._lazy import np, xr
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

SLOWER = 100


def correlation(seen: Any, law: xarray.DataArray) -> Any:
    """Over settings, of each run's bulge with the law's; seen [setting, seed]."""
    said = _trends.bulge(law.values)[:, None]
    off, said = seen - seen.mean(axis=0), said - said.mean()
    with np.errstate(invalid="ignore", divide="ignore"):
        return (off * said).sum(axis=0) / np.sqrt((off**2).sum(axis=0) * (said**2).sum())


CHECKS = (
    "the concept with the stronger signal is ahead",
    "a diverse enough weaker signal is ahead instead",
    "the loss falls ever more slowly",
    "bulges vary over the settings as those of one layer",
)


@dataclass(frozen=True)
class TwoLayerPaths(Trained):
    """Both panels: one with varied spreads, one with varied signals."""

    sigma_1: tuple[float, ...] = setting(
        (0.05, 0.1, 0.5, 1.0, 2.0),
        "spreads of concept 1 in the first panel, in the unit of the reading",
        low=0,
    )
    mu_left: tuple[float, float] = setting((1.0, 2.0), "signals of the first panel", above=0)
    mu: tuple[tuple[float, float], ...] = setting(
        ((1.0, 2.0), (2.0, 2.0), (3.0, 2.0)), "signals of the second panel", above=0
    )
    sigma: float = setting(0.05, "every other spread, in the unit of the reading", low=0)
    depth: int = setting(2, "layers", low=1)
    width: int = setting(64, "width of the hidden layers", low=1)

    activation: ClassVar[str] = "linear"

    def check(self) -> None:
        super().check()
        if all(a == b for a, b in self.mu):
            raise BadInput("mu needs a pair of different signals, as in mu 1,2")
        if len(self.sigma_1) < 2 or list(self.sigma_1) != sorted(set(self.sigma_1)):
            raise BadInput("sigma-1 needs two spreads or more in ascending order, as in 0.05,2")

    def network(self) -> dict[str, Any]:
        return {"depth": self.depth, "width": self.width, "activation": self.activation}

    def left(self) -> list[Case]:
        return [(self.mu_left, (x, self.sigma)) for x in self.sigma_1]

    def right(self) -> list[Case]:
        pairs = list(self.mu)
        if not any(a == b for a, b in pairs):
            middle = sum(map(sum, pairs)) / (2 * len(pairs))
            pairs.append((middle, middle))  # the control: equal signals
        return [(pair, (self.sigma, self.sigma)) for pair in pairs]

    def run(self, lab: Lab) -> xarray.Dataset:
        return _common.train_cases(self, lab, self.left() + self.right())

    def law(self, record: xarray.Dataset) -> xarray.Dataset:
        """One layer on the same data, from a start at zero: where its path runs, not when.

        `g_median`, and `g_blind` of data with the least spread whatever the setting [setting, step, axis].
        """
        # The clock of one layer is another, so its path is drawn from end to end and at steps small
        # enough to be the theorem's flow.
        looks = _common.look_at(40 * SLOWER * int(record.step.values[-1]), 600)
        seen, blind = [], []
        for mu, sigma in zip(record.mu.values, record.sigma.values, strict=True):
            least = np.full(2, min(*self.sigma_1, self.sigma))
            seen.append(_theory.growth(self, mu, sigma, looks, self.drawn, SLOWER))
            blind.append(_theory.growth(self, mu, least, looks, self.drawn, SLOWER))
        dims = ("setting", "look", "axis")
        data = xr.Dataset(
            {"g_median": (dims, np.stack(seen)), "g_blind": (dims, np.stack(blind)), "look": ("look", looks)},
            coords={"setting": record.setting, "axis": record.axis},
        )
        data.look.attrs.update(
            long_name="step of one layer at a hundredth of the learning rate", units="step"
        )
        data.g_median.attrs.update(long_name="learnt share by one layer, median over starts", units="1")
        data.g_blind.attrs.update(long_name="the same if every spread were the least", units="1")
        return data

    def claims(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        g = learnt(record)
        lead = {str(n): _trends.bulge(g.sel(setting=n).values) for n in record.setting.values}
        uneven = [c for c in self.right() if c[0][0] != c[0][1]]
        equal = next(case_name(c) for c in self.right() if c[0][0] == c[0][1])
        right = [np.sign(lead[case_name(c)]) == np.sign(c[0][1] - c[0][0]) for c in uneven]
        yield claim.above(
            "stronger-first",
            "the path bulges towards the stronger concept (share of runs)",
            stats.share(np.concatenate(right)),
            0.75,
            control=("equal signals, bulge above the diagonal", stats.share(lead[equal] > 0)),
        )
        least, most = (lead[case_name(self.left()[i])] for i in (0, -1))
        yield claim.below(
            "diverse-first",
            f"at sigma_1 = {self.sigma_1[-1]:g} the path runs on the side of concept 1 (median bulge)",
            stats.median(most),
            0.0,
            control=(f"sigma_1 = {self.sigma_1[0]:g}", stats.median(least)),
        )
        yield from _checks.slows_down(record)
        seen = np.stack([lead[str(n)] for n in record.setting.values])
        yield claim.above(
            "same-trend",
            "bulges vary over the settings as one layer's by theory (correlation, median over runs)",
            stats.median(correlation(seen, law.g_median)),
            0.9,
            control=("theory that ignores the spread", stats.median(correlation(seen, law.g_blind))),
        )

    def draw(self, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
        from saltus.papers.sim.studies import _pictures

        return _pictures.layers(self, record, law)


@study("sim/fig11", cites="yang2025dynamics", figure="11", cost="10 s on two cores", checks=CHECKS)
@dataclass(frozen=True)
class TwoLinearLayers(TwoLayerPaths):
    """Two linear layers learn concepts in the order one layer does.

    The two panels of figure 2(a, b) again with two linear layers. Theory is that of one layer on the same
    data, as a path without its clock.
    """


@study("sim/fig12", cites="yang2025dynamics", figure="12", cost="30 s on two cores", checks=CHECKS)
@dataclass(frozen=True)
class TwoReluLayers(TwoLayerPaths):
    """Two layers with a ReLU between them learn concepts in the order one linear layer does.

    The two panels of figure 2(a, b) again with a ReLU network. The paper's prose numbers the linear and the
    ReLU figure the other way round than its captions; the captions are followed here. The order is the same,
    but paths bulge further than those of linear layers, and where clusters are narrow they stop short of x̂.
    """

    activation: ClassVar[str] = "relu"
