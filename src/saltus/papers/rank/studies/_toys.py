"""What the studies of the toy share: its settings, and runs that are computed once in a process."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from saltus._lazy import np, xr
from saltus.core.settings import setting

if TYPE_CHECKING:
    import xarray

    from saltus.papers.rank.law.flow import Flow
    from saltus.papers.rank.law.greedy import Staircase
    from saltus.papers.rank.law.objective import Problem
    from saltus.papers.rank.world import Toy

__all__ = [
    "PAPER", "Toys", "counting", "describe", "early", "finite", "followed", "grown", "in_order", "late",
    "limit", "middles", "padded", "rise_times", "settled", "stairs",
]  # fmt: skip

PAPER: dict[str, Any] = {"dim": 50, "tokens": 10, "samples": 1000, "teachers": 1}
SLACK = 1.15  # runs go on for so much longer than the last stage that counts


@dataclass(frozen=True)
class Toys:
    """Teachers, and how exactly students are followed."""

    scale: str = setting("default", "size of the toy", choices=("default", "paper"))
    dim: int = setting(8, "dimension d of a token; there are 2 d coordinates", low=1, high=400)
    tokens: int = setting(6, "tokens n in a sample", low=1)
    samples: int = setting(200, "samples N", low=1)
    teachers: int = setting(12, "draws of data, teacher and start", low=1)
    first: int = setting(0, "number of the first draw", low=0, high=2**20)
    sharp: bool = setting(False, "logits of the teacher as they come, not divided by sqrt(d)")
    learnt: float = setting(
        0.01, "share of the loss that is left at the last stage that counts", above=0, high=0.9
    )
    atol: float = setting(1e-4, "error of a step of the flow, in the logarithm of u + v", above=0, high=1e-2)

    presets: ClassVar[dict[str, Any]] = {"scale": {"paper": PAPER}}

    def toy(self, run: int) -> Toy:
        from saltus.papers.rank.world import Toy

        return Toy(self.dim, self.tokens, self.samples, self.first + run, self.sharp)

    def note(self) -> str:
        """The small print under a figure."""
        words = f"{self.scale}: one head, d = {self.dim}, {self.tokens} tokens, {self.samples} samples; "
        words += f"{self.teachers} teacher{'s' if self.teachers > 1 else ''}"
        return words + ("; teacher's logits not divided by √d" if self.sharp else "")


@lru_cache(maxsize=128)
def problem(toy: Toy) -> Problem:
    return toy.problem()


@lru_cache(maxsize=128)
def staircase(toy: Toy, atol: float) -> Staircase:
    """The whole of Algorithm 1: `atol` is seen in the C_k alone, times and saddles are exact to rounding."""
    from saltus.papers.rank.law import greedy

    return greedy.run(problem(toy), atol=atol)


@lru_cache(maxsize=128)
def followed(toy: Toy, power: float, until: float, atol: float) -> Flow:
    """The flow from alpha = 10^-power."""
    from saltus.papers.rank.law import flow

    return flow.simulate(problem(toy), flow.log_inverse(power), until, atol=atol)


def last_stage(found: Staircase, learnt: float) -> int:
    """The first stage whose saddle has at most that share of the loss at 0; the last one without such."""
    loss = found.stacked("loss")
    low = np.flatnonzero(loss <= learnt * loss[0])
    return int(low[0]) if low.size else len(loss) - 1


def counted(toy: Toy, learnt: float, atol: float) -> Staircase:
    """The stages that count, 0 to K."""
    from saltus.papers.rank.law.greedy import Staircase

    found = staircase(toy, atol)
    return Staircase(found.stages[: last_stage(found, learnt) + 1], found.end)


def horizon(found: Staircase) -> float:
    """How long a run goes on, in rescaled time."""
    return float(max(SLACK * found.stacked("T")[-1], 1e-3))


def stairs(toy: Toy, learnt: float, atol: float) -> xarray.Dataset:
    """All of Algorithm 1 for one toy; `last`: the last stage that counts."""
    found = staircase(toy, atol)
    one = ("stage",)
    data: dict[str, Any] = {
        name: (one, np.asarray(found.stacked(name), float))
        for name in ("T", "C", "least", "winner", "sign", "wait", "runner_up", "residual", "gap")
    }
    data["rate"] = (one, [abs(float(s.g[s.winner])) if np.isfinite(s.wait) else np.nan for s in found.stages])
    data["level"] = (one, found.stacked("loss"))
    data["tied"] = (one, np.asarray([float(len(s.tied)) for s in found.stages]))
    data["left"] = (one, np.asarray([float(len(s.left)) for s in found.stages]))
    data["saddle"] = (("stage", "coordinate"), found.stacked("m"))
    data["b"] = (("stage", "coordinate"), found.stacked("b"))
    data["last"] = ((), last_stage(found, learnt))
    data["least_log"] = ((), counted(toy, learnt, atol).least_log)
    data["ended"] = ((), found.end == "no winner")
    return xr.Dataset(data, coords={"stage": np.arange(len(found.stages))})


def padded(parts: list[Any]) -> xarray.Dataset:
    """Runs with their own numbers of stages, put together; what a run does not have is nan."""
    return xr.concat(parts, "run", join="outer", data_vars="all").assign_coords(run=np.arange(len(parts)))


def counting(record: Any) -> Any:
    """The stages that count [run, stage]: from the first to the one with little loss left."""
    return (record.stage >= 1) & (record.stage <= record["last"])


def settled(record: Any, power: float, stages: Any) -> Any:
    """For every two successive `stages` of a run, whether T_k + C_k / L puts the later one later [pairs]."""
    from saltus.papers.rank.law.flow import log_inverse

    return in_order(record["T"] + record.C / log_inverse(power), stages)


def in_order(rises: Any, stages: Any) -> Any:
    """Whether each of `stages` comes after the one before it [pairs]; one that never comes does not."""
    out: list[Any] = []
    for time, used in zip(*(x.transpose("run", "stage").values for x in (rises, stages)), strict=True):
        with np.errstate(invalid="ignore"):
            out.extend(np.diff(time[used]) > 0)
    return np.asarray(out, bool)


def late(seen: Any, due: Any, stages: Any) -> Any:
    """Relative error of stage times [stages]; a stage that never comes is infinitely late."""
    off = abs(seen / due - 1).transpose("run", "stage").values[stages.transpose("run", "stage").values]
    return np.where(np.isfinite(off), off, 1e9)


def middles(rises: Any) -> Any:
    """The middle of each plateau between two half-rises [K - 1]."""
    return (rises[1:] + rises[:-1]) / 2


def rise_times(flow: Flow, found: Staircase, rises: Any) -> Any:
    """Time from 10% to 90% of the new product, around each half-rise [K]."""
    out = []
    for before, stage, half in zip(found.stages[:-1], found.stages[1:], rises, strict=True):
        m = float(stage.m[before.winner])
        end = flow.passes(before.winner, 0.9 * m, half) if np.isfinite(half) and m else np.nan
        # The last time below 10%: coordinates may have come and gone before.
        span = np.linspace(max(0.0, 2 * half - end) if np.isfinite(end) else 0.0, half, 400)
        if not np.isfinite(end):
            out.append(np.nan)
            continue
        low = np.flatnonzero(flow.product(before.winner, span) / m < 0.1)
        out.append(end - (span[low[-1]] if low.size else span[0]))
    return np.asarray(out)


def early(record: Any, at_rise: Any, power: float, stages: Any, apart: float = 0.0) -> Any:
    """How much of its new value the next winner has when a stage is half risen [pairs].

    **Arguments:** `at_rise` [run, stage, coordinate]: products at half-rises; `apart`: only stages due
    so many time constants 1 / |g| apart.
    """
    from saltus.papers.rank.law.flow import log_inverse

    L = log_inverse(power)
    found = []
    for r in range(record.sizes["run"]):
        one = record.isel(run=r)
        used = np.flatnonzero(stages.isel(run=r).values)
        seen, saddle = (x.transpose("stage", "coordinate").values for x in (at_rise.isel(run=r), one.saddle))
        T, C, winner = (one[n].values for n in ("T", "C", "winner"))
        for k, after in pairwise(used):
            i = int(winner[after - 1])
            gap = (T[after] + C[after] / L - T[k] - C[k] / L) * L
            new = saddle[after, i]
            if gap * one.rate.values[after - 1] > apart and new != 0 and np.isfinite(seen[k, i]):
                found.append(seen[k, i] / new)
    return np.abs(np.asarray(found))


def grown(record: Any) -> Any:
    """The coordinates in the support of a saddle that counts [run, coordinate]."""
    return ((record.saddle.fillna(0) != 0) & counting(record)).any("stage").transpose("run", "coordinate")


def limit(record: Any) -> xarray.Dataset:
    """Products and loss of the limit at the looks of a record: those of the last saddle."""
    rows = []
    for r in range(record.sizes["run"]):
        one = record.isel(run=r)
        T = one["T"].values
        place = np.searchsorted(T[np.isfinite(T)], one.time.values, side="right") - 1
        rows.append(one[["saddle", "level"]].isel(stage=xr.DataArray(place, dims="look")).drop_vars("stage"))
    found = xr.concat(rows, "run").rename(saddle="products", level="loss")
    found["products"].attrs.update(long_name="products u v of the limit", units="1")
    found["loss"].attrs.update(long_name="loss of the limit", units="1")
    return found


def finite(values: Any) -> Any:
    """The numbers that exist, as a vector."""
    values = np.asarray(values, float).ravel()
    return values[np.isfinite(values)]


NAMES: dict[str, tuple[str, str]] = {
    "T": ("time T_k of stage k, Algorithm 1", "rescaled time"),
    "C": ("constant C_k: T_k(alpha) = T_k + C_k / log(1/alpha)", "time"),
    "least": ("smallest eigenvalue of the Hessian in u on the support", "1"),
    "winner": ("coordinate that leaves the saddle", "index"),
    "sign": ("sign of its product", "1"),
    "wait": ("waiting time of the winner", "rescaled time"),
    "rate": ("gradient that pulls the winner, |g|", "1 / time"),
    "runner_up": ("waiting time of the second", "rescaled time"),
    "residual": ("largest gradient on the support at the saddle", "1"),
    "gap": ("largest difference of the flow's end from Newton's point", "1"),
    "level": ("loss at the saddle", "1"),
    "tied": ("other coordinates with the winner's waiting time", "coordinates"),
    "left": ("coordinates that left the support on the way to the saddle", "coordinates"),
    "saddle": ("products u v at the saddle", "1"),
    "b": ("log_alpha (u + v) of Algorithm 1", "1"),
    "last": ("last stage that counts", "stage"),
    "least_log": ("L_min, over the stages that count", "log(1/alpha)"),
    "ended": ("whether Algorithm 1 came to its end", "1"),
    "stage": ("stage of Algorithm 1", "stage"),
    "half_rise": ("rescaled time at which the new product is half its new value", "rescaled time"),
    "time": ("rescaled time", "t / log(1/alpha)"),
    "loss": ("loss", "1"),
    "products": ("products u v", "1"),
    "middle": ("products u v in the middle of a plateau", "1"),
    "power": ("-log10(alpha)", "1"),
}


def describe(data: xarray.Dataset, **more: tuple[str, str]) -> xarray.Dataset:
    """The same dataset, every variable with its meaning and its unit."""
    for name, (words, unit) in {**NAMES, **more}.items():
        if name in data.variables:
            data[name].attrs.update(long_name=words, units=unit)
    return data
