"""What the studies of the toy share: its settings, and runs that are computed once in a process."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from saltus._lazy import np, xr
from saltus.core.settings import setting

if TYPE_CHECKING:
    import xarray

    from saltus.papers.rank.law.flow import Flow
    from saltus.papers.rank.law.greedy import Staircase
    from saltus.papers.rank.law.objective import Problem
    from saltus.papers.rank.world import Toy

__all__ = ["PAPER", "Toys", "describe", "followed", "padded", "settled", "stairs"]

PAPER: dict[str, Any] = {"dim": 50, "tokens": 10, "samples": 1000, "teachers": 1, "atol": 1e-4}
SLACK = 1.15  # runs go on for so much longer than the last stage that counts


@dataclass(frozen=True)
class Toys:
    """Teachers, and how exactly students are followed."""

    scale: str = setting("default", "size of the toy", choices=("default", "paper"))
    dim: int = setting(8, "dimension d of a token; there are 2 d coordinates", low=1, high=400)
    tokens: int = setting(6, "tokens n in a sample", low=1)
    samples: int = setting(200, "samples N", low=1)
    teachers: int = setting(8, "draws of data, teacher and start", low=1)
    first: int = setting(0, "number of the first draw", low=0, high=2**20)
    sharp: bool = setting(False, "logits of the teacher as they come, not divided by sqrt(d)")
    learnt: float = setting(0.01, "share of the loss that is left at the last stage that counts", above=0, high=0.9)
    atol: float = setting(1e-5, "error of a step of the flow, in the logarithm of u + v", above=0, high=1e-2)

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
def staircase(toy: Toy) -> Staircase:
    """The whole of Algorithm 1."""
    from saltus.papers.rank.law import greedy

    return greedy.run(problem(toy))


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


def counted(toy: Toy, learnt: float) -> Staircase:
    """The stages that count, 0 to K."""
    from saltus.papers.rank.law.greedy import Staircase

    found = staircase(toy)
    return Staircase(found.stages[: last_stage(found, learnt) + 1], found.end)


def horizon(found: Staircase) -> float:
    """How long a run goes on, in rescaled time."""
    return float(max(SLACK * found.stacked("T")[-1], 1e-3))


def stairs(toy: Toy, learnt: float) -> xarray.Dataset:
    """All of Algorithm 1 for one toy; `counts`: the last stage that counts."""
    found = staircase(toy)
    one = ("stage",)
    data: dict[str, Any] = {
        name: (one, np.asarray(found.stacked(name), float))
        for name in ("T", "C", "least", "winner", "sign", "wait", "runner_up", "residual", "gap")
    }
    data["level"] = (one, found.stacked("loss"))
    data["tied"] = (one, np.asarray([float(len(s.tied)) for s in found.stages]))
    data["left"] = (one, np.asarray([float(len(s.left)) for s in found.stages]))
    data["saddle"] = (("stage", "coordinate"), found.stacked("m"))
    data["b"] = (("stage", "coordinate"), found.stacked("b"))
    data["last"] = ((), last_stage(found, learnt))
    data["least_log"] = ((), counted(toy, learnt).least_log)
    data["ended"] = ((), found.end == "no winner")
    return xr.Dataset(data, coords={"stage": np.arange(len(found.stages))})


def padded(parts: list[Any]) -> xarray.Dataset:
    """Runs with their own numbers of stages, put together; what a run does not have is nan."""
    return xr.concat(parts, "run", join="outer", data_vars="all").assign_coords(run=np.arange(len(parts)))


def settled(record: Any, power: float) -> Any:
    """For every pair of stages that count, whether T_k + C_k / L puts the later one later [pairs]."""
    from saltus.papers.rank.law.flow import log_inverse

    due = (record["T"] + record.C / log_inverse(power)).transpose("run", "stage").values
    used = ((record.stage >= 1) & (record.stage <= record["last"])).transpose("run", "stage").values
    with np.errstate(invalid="ignore"):
        return (np.diff(due, axis=1) > 0)[used[:, 1:] & used[:, :-1]]


NAMES: dict[str, tuple[str, str]] = {
    "T": ("time T_k of stage k, Algorithm 1", "rescaled time"),
    "C": ("constant C_k: T_k(alpha) = T_k + C_k / log(1/alpha)", "time"),
    "least": ("smallest eigenvalue of the Hessian in u on the support", "1"),
    "winner": ("coordinate that leaves the saddle", "index"),
    "sign": ("sign of its product", "1"),
    "wait": ("waiting time of the winner", "rescaled time"),
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
