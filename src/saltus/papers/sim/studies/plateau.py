"""Figure 10: failing to generalise, a plateau where U has enough columns, a trap where it has too few."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from saltus._lazy import np, xr
from saltus.core import claim, stats
from saltus.core.errors import BadInput
from saltus.core.settings import setting
from saltus.core.study import study
from saltus.papers.sim.studies._symmetric import DRAWN, Symmetric

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab

LONG_STEP = 0.5  # largest step of the long flow in time constants of the fastest axis: 0.1% of a time
TAIL = 0.8  # the tail of a distribution of times begins at this quantile


@study(
    "sim/fig10",
    cites="yang2025dynamics",
    figure="10",
    cost="8 s on two cores",
    checks=(
        "where the figure ends, a tenth of the starts have learnt nothing of concept 1 (control: long after)",
        "with d' >= s every start generalises in the end (control: d' = s - 1)",
        "with d' = s - 1 the loss ends at half of mu_1 squared (control: d' = s)",
        "the plateau ends at ln(1/sigma_1)/(2 a_1) (control: w_11(0) for the Schur complement)",
        "late starts are as many as exp(-a_1 (d' - s + 1) t) has it (control: one column more)",
        "the flow keeps the diagonal of W positive (control: recursion D.2)",
    ),
)
@dataclass(frozen=True)
class Plateau(Symmetric):
    """The failure to generalise is a very long plateau, unless U has fewer columns than concepts.

    The paper shows w_11 suppressed at once and never growing. Under the flow of U with d' >= s every start
    learns all concepts: w_11 falls to its Schur complement and passes 1/2 at a time known in closed form.
    The published picture, with A squared, ends before that. With d' < s the weakest concepts are never
    learnt. The recursion on W, which the picture was drawn with, leaves the PSD cone from many starts and
    then diverges.
    """

    mu: tuple[float, ...] = setting((0.7, 1.7, 3.0), "signal strength of each concept", above=0)
    sigma: tuple[float, ...] = setting((0.05,) * 3, "standard deviation along each concept axis", low=0)
    scale: float = setting(0.1, "entries of U(0) are uniform between 0 and this", above=0)
    horizon: float = setting(100.0, "where the figure ends, in the paper's clock", above=0)
    long: float = setting(150.0, "how long starts are followed", above=0)
    widths: tuple[int, ...] = setting((2, 3, 4), "columns d' of U compared", low=1, high=12)
    below: float = setting(
        0.1, "a concept counts as not learnt at all while w_kk is less", above=0, drawing=True
    )

    presets: ClassVar[dict[str, Any]] = {"reading": {"as-drawn": {**DRAWN, "long": 500.0}}}

    def check(self) -> None:
        super().check()
        if self.dim != self.s or self.width:
            raise BadInput("here dim is the number of concepts, and widths says how many columns U has")
        if not {self.s - 1, self.s, self.s + 1} <= set(self.widths) or len(set(self.widths)) < len(
            self.widths
        ):
            raise BadInput(f"widths must hold {self.s - 1}, {self.s} and {self.s + 1}, each once")
        if self.long < self.horizon:
            raise BadInput("long must not end before horizon")
        if list(self.mu) != sorted(self.mu) or self.s < 2:
            raise BadInput("give two or more values of mu in ascending order, the weakest concept first")

    def start_of(self, width: int) -> Any:
        from saltus.papers.sim import symmetric

        return symmetric.starts(self.starts, self.dim, width, scale=self.scale, base=self.base)

    def run(self, lab: Lab) -> xarray.Dataset:
        with lab.progress("starts") as tick:
            flows = []
            for number, width in enumerate(self.widths):
                flows.append(lab.keep(f"flow, {width} columns", partial(self.follow, width)))
                tick(number + 1, len(self.widths) + 2)
            other = lab.keep("recursion", self.recursion)
            tick(len(self.widths) + 1, len(self.widths) + 2)
            data = xr.concat(flows, "columns").merge(other)
            data["shown"] = ((), self.pick(data))
            path = lab.keep("path", partial(self.path, int(data.shown)))
            tick(len(self.widths) + 2, len(self.widths) + 2)
        data = data.merge(path)
        data["U0"] = (("start", "axis", "column"), self.start_of(self.s))
        data = data.assign_coords(start=np.arange(self.starts), axis=np.arange(1, self.dim + 1))
        for name, words, unit in (
            (
                "half_time",
                "time at which w_kk passes 1/2 under the flow, infinite if not before the end",
                "time",
            ),
            ("late_loss", "loss at the test point at the end of the long run", "1"),
            ("end", "diagonal of W where the figure ends, under the flow", "1"),
            ("recursion_end", "the same under the recursion", "1"),
            ("negative_at", "first time with a negative diagonal entry, infinite if never", "time"),
            ("diverged_at", "first time with a loss above a million of its start, infinite if never", "time"),
            ("recursion_negative_at", "the same under the recursion", "time"),
            ("U0", "start", "1"),
            ("shown", "start whose path is shown", "1"),
            ("W", "Jacobian along the path shown", "1"),
            ("loss", "loss at the test point along the path shown", "1"),
            ("time", "time in the paper's clock", "time"),
        ):
            data[name].attrs.update(long_name=words, units=unit)
        return data

    def follow(self, width: int) -> xarray.Dataset:
        """The flow from starts with so many columns, to the end of the long run."""
        from saltus.papers.sim import symmetric as engine

        # Columns of zeros stay zero: with them every width is one and the same compiled program.
        U0 = np.pad(self.start_of(width), ((0, 0), (0, 0), (0, max(self.widths) - width)))
        step = min(0.05, LONG_STEP / float(self.rates().max()))
        steps, at = max(1, round(self.long / step)), max(1, round(self.horizon / step))
        found = engine.evolve(
            self.moment(), self.target(), self.starts, how="flow", eta=step, steps=steps, power=self.power,
            start=U0, watch=(engine.Hits((0.5,)), engine.Lowest()), at=[min(at, steps)],
        )  # fmt: skip
        negative = step * found["negative_step"][None, :, None]
        return xr.Dataset(
            {
                "half_time": (("columns", "start", "axis"), found["hit"][None, :, 0]),
                "late_loss": (("columns", "start"), found["loss"][None]),
                "end": (("columns", "start", "axis"), _diagonal(found["path_w"][:, 0])[None]),
                "negative_at": (("columns", "start", "how"), negative),
            },
            coords={"columns": [width], "how": ["flow"]},
        )

    def recursion(self) -> xarray.Dataset:
        """D.2 on W (or gradient descent on U, if asked for) from the same starts, to the figure's end."""
        from saltus.papers.sim import symmetric as engine

        how = "gd" if self.dynamics == "gd" else "recursion"
        found = engine.evolve(
            self.moment(), self.target(), self.starts, how=how, eta=self.eta, power=self.power,
            steps=max(1, round(self.horizon / self.eta)), start=self.start_of(self.s),
            watch=(engine.Lowest(), engine.Diverged()),
        )  # fmt: skip
        return xr.Dataset(
            {
                "recursion_end": (("start", "axis"), _diagonal(found["w"])),
                "recursion_negative_at": ("start", self.eta * found["negative_step"]),
                "diverged_at": ("start", self.eta * found["diverged_step"]),
            }
        )

    def networks(self, record: xarray.Dataset) -> Any:
        """Starts whose W is still a U U^T as far as its diagonal tells [start]; under the flow, all."""
        if self.dynamics == "flow":
            return np.ones(record.sizes["start"], bool)
        return ~np.isfinite(record.recursion_negative_at.values) & ~np.isfinite(record.diverged_at.values)

    def unlearnt(self, record: xarray.Dataset) -> Any:
        """Whether nothing of concept 1 is learnt where the figure ends [start], of starts in `networks`."""
        flow = self.dynamics == "flow"
        ended = record.end.sel(columns=self.s) if flow else record.recursion_end
        return (ended.values[:, 0] < self.below) & self.networks(record)

    def pick(self, data: xarray.Dataset) -> int:
        """The first start of which nothing of concept 1 is learnt in the figure, else the slowest."""
        late = self.unlearnt(data)
        if late.any():
            return int(np.argmax(late))
        return int(np.argmax(data.half_time.sel(columns=self.s).values[:, 0]))

    def path(self, number: int) -> xarray.Dataset:
        found = self.evolve(self.start_of(self.s)[number : number + 1], self.dynamics, self.long, self.looks)
        return xr.Dataset(
            {"W": (("time", "row", "col"), found["path_w"][0]), "loss": ("time", found["path_loss"][0])},
            coords={"time": found["time"]},
        )

    def law(self, record: xarray.Dataset) -> xarray.Dataset:
        """Closed forms: time of every axis, the same without interaction, end of the loss, tail exponents."""
        from saltus.papers.sim.law import hitting

        a, widths = self.rates(), record.columns.values
        starts = [self.start_of(int(w)) for w in widths]
        own = np.stack([np.sum(U**2, axis=2) for U in starts])
        ends = [np.asarray(hitting.end_loss(U, a, np.asarray(self.mu))) for U in starts]
        data = xr.Dataset(
            {
                "half_time": (
                    ("columns", "start", "axis"),
                    np.stack([np.asarray(hitting.half_time(U, a)) for U in starts]),
                ),
                "blind": (("columns", "start", "axis"), -np.log(own) / (2 * a)),
                "late_loss": (("columns", "start"), np.stack(ends)),
                "falloff": ("columns", [float(hitting.tail_exponent(a, int(w))) for w in widths]),
            },
            coords={"columns": widths, "start": record.start, "axis": record.axis},
        )
        for name, words, unit in (
            ("half_time", "time at which w_kk passes 1/2", "time"),
            ("blind", "the same from w_kk(0)", "time"),
            ("late_loss", "loss at the test point in the end", "1"),
            ("falloff", "rate at which the share of starts not yet learnt falls", "1/time"),
        ):
            data[name].attrs.update(long_name=words, units=unit)
        return data

    def claims(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        s, drawn = self.s, self.reading == "as-drawn"
        full, few = record.sel(columns=s), record.sel(columns=s - 1)
        took = full.half_time.values[:, 0]
        in_time = took <= self.long
        yield claim.above(
            "stuck",
            f"At the figure's end, t = {self.horizon:g}, w_11 < {self.below:g} in 10% of starts or more.",
            stats.share(self.unlearnt(record)[self.networks(record)]),
            0.1,
            control=(f"not half learnt by t = {self.long:g}, under the flow", stats.share(~in_time)),
            expected=drawn,
            because="" if drawn else "with A the plateau ends sooner; the published picture needs A squared",
        )
        yield claim.above(
            "no-trap",
            f"With d' = s the flow learns every concept by t = {self.long:g} (99% of starts or more).",
            stats.share(np.isfinite(full.half_time.values).all(1)),
            0.99,
            control=(f"d' = {s - 1}", stats.share(np.isfinite(few.half_time.values).all(1))),
        )
        left = self.mu[0] ** 2 / 2
        yield claim.below(
            "trap",
            f"With d' = s - 1 the loss ends at mu_1^2 / 2 = {left:.3g} (relative error, median).",
            stats.median(abs(few.late_loss.values / left - 1)),
            0.01,
            control=("d' = s", stats.median(abs(full.late_loss.values / left - 1))),
        )
        said, blind = (law[name].sel(columns=s).values[:, 0] for name in ("half_time", "blind"))
        yield claim.below(
            "time-to-generalise",
            "w_11 passes 1/2 at ln(1/σ_1)/(2 a_1), σ_1 its Schur complement (relative error, median).",
            stats.median(abs(said / took - 1)[in_time]),
            0.03,
            control=("w_11(0) for σ_1", stats.median(abs(blind / took - 1)[in_time])),
        )
        rate = tail_rate(np.minimum(took, self.long), float(law.falloff.sel(columns=s)))
        wide = tail_rate(np.minimum(took, self.long), float(law.falloff.sel(columns=s + 1)))
        yield claim.within(
            "tail",
            "The share still on the plateau falls like exp(-a_1 (d' - s + 1) t) (fitted over predicted).",
            rate,
            (0.7, 1.4),
            control=(f"the prediction of {s + 1} columns", wide),
        )
        yield claim.below(
            "cone",
            "Under the flow of U the diagonal of W never turns negative (share of starts).",
            stats.share(np.isfinite(full.negative_at.values)),
            0.005,
            control=(
                "recursion D.2 on W, same starts",
                stats.share(np.isfinite(record.recursion_negative_at)),
            ),
        )

    def draw(self, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
        from saltus.papers.sim.studies import _plateau_pictures

        return _plateau_pictures.plateau(self, record, law)


def _diagonal(W: Any) -> Any:
    return np.diagonal(W, axis1=1, axis2=2)


def tail_rate(took: Any, predicted: float) -> stats.Estimate:
    """The rate of the exponential tail of times [start], over the predicted one."""

    def rate(values: Any) -> float:
        start = np.quantile(values, TAIL)
        rest = values[values > start] - start
        return 1 / rest.mean() / predicted if rest.size else np.nan

    return stats.bootstrap(took, rate, draws=500)
