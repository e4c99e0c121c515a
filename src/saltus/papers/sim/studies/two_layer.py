"""The symmetric two-layer model itself: its flow, its steps and the terms of its velocity (eq. 4.3, D.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from saltus._lazy import np, xr
from saltus.core import claim, stats
from saltus.core.errors import BadInput
from saltus.core.settings import setting
from saltus.core.study import study
from saltus.papers.sim.studies._symmetric import Symmetric

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab

WAYS = ("gd", "recursion", "flow")  # of which "flow" is RK4 with the same step


@study(
    "sim/two-layer",
    cites="yang2025dynamics",
    cost="8 s on two cores",
    checks=(
        "gradient descent on U approaches the exact flow as its step to the power 1 (control: RK4)",
        "small-step gradient descent follows the flow (control: the largest step)",
        "growth, suppression and noise add up to the velocity (control: without noise)",
        "the velocity is half of what gradient flow on U gives W (control: half the clock)",
        "a single axis is logistic (control: starts that are not diagonal)",
    ),
)
@dataclass(frozen=True)
class TwoLayerModel(Symmetric):
    """Steps on U approach the exact flow at first order; the velocity splits into three terms.

    The exact flow of U by an adaptive solver, and gradient descent on U, recursion D.2 and RK4 with a range
    of steps from the same starts: the largest distance of W along the way, and the power of the step that it
    goes with.
    """

    eta: float = setting(0.01, "the small step, in the paper's clock", above=0)
    etas: tuple[float, ...] = setting((0.08, 0.04, 0.02, 0.01, 0.005), "steps compared, halving", above=0)
    horizon: float = setting(10.0, "how long, in the paper's clock", above=0)
    starts: int = setting(128, "starts", low=8)
    random: int = setting(64, "random Jacobians for the split", low=6)

    def check(self) -> None:
        super().check()
        if len(self.etas) < 3 or list(self.etas) != sorted(set(self.etas), reverse=True):
            raise BadInput("etas needs three steps or more, in descending order, as in 0.04,0.02,0.01")
        if self.eta not in self.etas:
            raise BadInput(f"eta must be one of etas, {', '.join(f'{x:g}' for x in self.etas)}")

    def run(self, lab: Lab) -> xarray.Dataset:
        U0 = self.draw_starts(self.starts)
        with lab.progress("starts") as tick:
            exact = lab.keep("exact", partial(self.exact, U0))
            tick(1, 1 + len(WAYS))
            parts = []
            for number, how in enumerate(WAYS):
                parts.append(lab.keep(how, partial(self.stepped, how, U0, exact)))
                tick(number + 2, 1 + len(WAYS))
        data = exact.merge(xr.concat(parts, "how")).merge(self.velocities())
        for name, words, unit in (
            ("exact", "W along the exact flow of U", "1"),
            ("diagonal", "W along the exact flow, from diagonal starts", "1"),
            ("distance", "largest distance of any entry of W from the exact flow", "1"),
            ("shown", "W of the first start by gradient descent at the small step", "1"),
            ("split_gap", "growth - suppression - noise - V, largest entry over that of V", "1"),
            ("noiseless_gap", "the same without noise", "1"),
            ("clock_gap", "dW/dt by gradient flow on U - 2 V, largest entry over that of 2 V", "1"),
            ("slow_gap", "the same with V for 2 V", "1"),
            ("time", "time in the paper's clock", "time"),
            ("eta", "step in the paper's clock", "time"),
        ):
            data[name].attrs.update(long_name=words, units=unit)
        return data

    def exact(self, U0: Any) -> xarray.Dataset:
        from saltus.papers.sim.law import two_layer
        from saltus.papers.sim.studies import _census

        diagonal = _census.twins(self, U0)[0]
        time = np.linspace(0.0, self.horizon, 26)
        path = two_layer.gram(two_layer.flow(np.concatenate([U0, diagonal]), self.rates(), time))
        dims = ("time", "row", "col")
        return xr.Dataset(
            {
                "exact": (("start", *dims), np.asarray(path[: len(U0)])),
                "diagonal": (("twin", *dims), np.asarray(path[len(U0) :])),
            },
            coords={"start": np.arange(len(U0)), "time": time},
        )

    def stepped(self, how: str, U0: Any, exact: xarray.Dataset) -> xarray.Dataset:
        """Distance from the exact flow for every step size [how, eta, start]."""
        from saltus.papers.sim import symmetric as engine

        far, shown = [], exact.exact.values[0]
        for eta in self.etas:
            at = np.unique(np.round(exact.time.values / eta).astype(int))
            found = engine.evolve(
                self.moment(), self.target(), len(U0), how=how, eta=eta, steps=int(at[-1]), at=at,
                start=U0, power=self.power, watch=(),
            )  # fmt: skip
            far.append(abs(found["path_w"] - exact.exact.values).max((1, 2, 3)))
            shown = found["path_w"][0] if eta == self.eta else shown
        return xr.Dataset(
            {
                "distance": (("how", "eta", "start"), np.stack(far)[None]),
                "shown": (("how", "time", "row", "col"), shown[None]),
            },
            coords={"how": [how], "eta": list(self.etas)},
        )

    def velocities(self) -> xarray.Dataset:
        """The split and the clock, at random Jacobians of several sizes [jacobian]."""
        from saltus.papers.sim.law import two_layer

        rng = np.random.default_rng(self.base)
        gaps: list[list[float]] = []
        for n in range(self.random):
            d, width = 2 + n % 4, 1 + n % 7
            U, a = rng.standard_normal((d, width)), rng.uniform(0.1, 3.0, d)
            W = U @ U.T
            V = np.asarray(two_layer.velocity(W, a))
            growth, suppression, noise = (np.asarray(x) for x in two_layer.split(W, a))
            # dU/dt = -dL/dU for L of eq. 4.1, by central differences of the loss.
            slope, h = np.zeros_like(U), 1e-6
            for place in np.ndindex(U.shape):
                move = np.zeros_like(U)
                move[place] = h
                ahead, behind = (_loss((U + s * move) @ (U + s * move).T, a) for s in (1, -1))
                slope[place] = (ahead - behind) / (2 * h)
            flow = -(slope @ U.T + U @ slope.T)
            size = abs(V).max()
            gaps.append(
                [
                    abs(growth - suppression - noise - V).max() / size,
                    abs(growth - suppression - V).max() / size,
                    abs(flow - 2 * V).max() / (2 * size),
                    abs(flow - V).max() / size,
                ]
            )
        names = ("split_gap", "noiseless_gap", "clock_gap", "slow_gap")
        return xr.Dataset({n: ("jacobian", v) for n, v in zip(names, np.transpose(gaps), strict=True)})

    def law(self, record: xarray.Dataset) -> xarray.Dataset:
        """The logistic of every axis from its own entry of W(0) [start or twin, time, axis]."""
        from saltus.papers.sim.law import two_layer

        a, data = self.rates(), {}
        for name, dim in (("exact", "start"), ("diagonal", "twin")):
            own = np.diagonal(record[name].values[:, 0], axis1=1, axis2=2)
            said = two_layer.logistic(record.time.values[None, :, None], own[:, None, :], a)
            data[name] = ((dim, "time", "axis"), np.asarray(said))
        found = xr.Dataset(data, coords={"time": record.time})
        for name in data:
            found[name].attrs.update(long_name="logistic from the axis' own entry of W(0)", units="1")
        return found

    def claims(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        order = {how: self.orders(record, how) for how in WAYS}
        yield claim.within(
            "first-order",
            "Gradient descent on U is off the flow by its step to the power 1 (fitted power, median).",
            stats.median(order["gd"]),
            (0.9, 1.1),
            control=("RK4, of order 4", stats.median(order["flow"])),
        )
        near, far = (record.distance.sel(how="gd", eta=x).values for x in (self.eta, self.etas[0]))
        yield claim.below(
            "small-steps",
            f"At η = {self.eta:g} no entry is ever over 0.01 from the flow (largest distance, median).",
            stats.median(near),
            0.01,
            control=(f"η = {self.etas[0]:g}", stats.median(far)),
        )
        yield claim.below(
            "split",
            "Growth less suppression less noise is the velocity (relative gap, largest).",
            stats.worst(record.split_gap.values),
            1e-12,
            control=("without noise", stats.worst(record.noiseless_gap.values)),
        )
        yield claim.below(
            "clock",
            "Gradient flow of U moves W by twice V (relative gap, largest).",
            stats.worst(record.clock_gap.values),
            1e-6,
            control=("by V, as the text has it", stats.worst(record.slow_gap.values)),
        )
        gaps = [
            abs(np.diagonal(record[n].values, axis1=2, axis2=3) - law[n].values).max((1, 2))
            for n in ("diagonal", "exact")
        ]
        yield claim.below(
            "logistic",
            "From diagonal starts every axis is logistic (gap, largest).",
            stats.worst(gaps[0]),
            1e-7,
            control=("the same formula from other starts", stats.worst(gaps[1])),
        )

    def orders(self, record: xarray.Dataset, how: str) -> Any:
        """The power of the step that the distance goes with, by least squares, for each start."""
        y = np.log(np.maximum(record.distance.sel(how=how).values, 1e-300))
        x = np.log(record.eta.values)
        x = x - x.mean()
        return x @ (y - y.mean(0)) / (x @ x)

    def draw(self, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
        from saltus.papers.sim.studies import _two_layer_pictures

        return _two_layer_pictures.model(self, record, law)


def _loss(W: Any, a: Any) -> float:
    """1/2 tr((W - I) A (W - I)^T), eq. 4.1."""
    return float((((W - np.eye(len(a))) ** 2) * a).sum() / 2)
