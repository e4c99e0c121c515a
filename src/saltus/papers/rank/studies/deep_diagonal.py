"""Diagonal transformers with several layers and heads: Example 3.2 trained and predicted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

from saltus._lazy import np, xr
from saltus.core import claim, stats
from saltus.core.settings import setting
from saltus.core.study import study
from saltus.papers.rank.studies import _toys
from saltus.papers.rank.studies._toys import finite

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab
    from saltus.papers.rank.law.objective import Problem

LOOKS = 400
FLAT = (
    "saddles of heads that tie are flat, C_k is then as large as log(1/alpha) itself, and at this start "
    "stages are not yet in the order of Algorithm 1"
)
NARROW = "in narrow plateaus the network is not yet at the saddle: the interval reaches above the threshold"
TIES = (
    "at θ = 0 every head of a layer attends evenly, so values of all its heads are pulled alike: the "
    "first winner is "
    "tied, and Assumption 4.3 never holds"
)


@study(
    "rank/deep-diagonal",
    cites="boixadsera2023rank",
    figure="Example 3.2",
    cost="half a minute on two cores",
    version=2,
    checks=(
        "the first winner is alone (control: one more head)",
        "saddles of one head a layer are strict minima (control: several heads)",
        "stages come at T_k + C_k / log(1/alpha), those of tied heads too (control: at T_k)",
        "in the middle of a plateau the network is at the saddle (control: at half-rises)",
        "the first coordinate is of w_V w_O (control: later ones)",
    ),
)
@dataclass(frozen=True)
class DeepDiagonal:
    """With one head a layer deep diagonal transformers follow Algorithm 1; with several they begin tied.

    L layers with residuals and smooth feed-forward layers that are not trained; a teacher of the same
    kind. With one head a layer all is as for one head. With two, heads of a layer are alike at theta =
    0: their coordinates wait equally long and rise together, which Algorithm 1 follows here by
    activating ties at once.
    """

    scale: str = setting("default", "size", choices=("default", "paper"))
    dim: int = setting(4, "dimension d of a token", low=1, high=200)
    layers: int = setting(2, "layers L", low=1, high=12)
    heads: int = setting(2, "heads H of the second network (the first has one)", low=2, high=12)
    hidden: int = setting(8, "width of the feed-forward layers", low=1)
    tokens: int = setting(4, "tokens n in a sample", low=2)
    samples: int = setting(64, "samples N", low=1)
    teachers: int = setting(6, "draws of data, frozen layers, teacher and start", low=1)
    learnt: float = setting(0.05, "share of the loss left at the last stage that counts", above=0, high=0.9)
    power: float = setting(32.0, "training starts at alpha = 10^-power", above=0.3, high=3000)
    atol: float = setting(1e-4, "error of a step of the flow, in the logarithm of u + v", above=0, high=1e-2)

    presets: ClassVar[dict[str, Any]] = {
        "scale": {"paper": {"dim": 16, "layers": 3, "samples": 200, "hidden": 32}}
    }

    def widths(self) -> tuple[int, int]:
        """Heads a layer of the two networks."""
        return (1, self.heads)

    def run(self, lab: Lab) -> xarray.Dataset:
        parts = {
            f"{h} heads, teacher {r}": partial(self.one, h, r)
            for r in range(self.teachers)
            for h in self.widths()  # side by side: each compiles programs of its own
        }
        made = lab.keep_all(parts, "networks")
        rows = [_toys.padded(made[i :: len(self.widths())]) for i in range(len(self.widths()))]
        data = xr.concat(rows, "heads", join="outer", data_vars="all").assign_coords(
            heads=list(self.widths())
        )
        return _toys.describe(
            data,
            apart=("largest difference of products from the saddle, in the middle of a plateau", "1"),
            apart_rising=("the same at half-rises", "1"),
            first_gap=("waiting time of the runner-up over the first winner's, less 1", "1"),
            more_gap=("the same with one more head a layer", "1"),
            value_first=("whether the winner is a coordinate of w_V w_O", "1"),
            heads=("heads a layer", "heads"),
        )

    def problem(self, heads: int, run: int) -> Problem:
        """A student of the same kind as its teacher, with the same frozen layers."""
        return _problem(self.dim, self.layers, heads, self.hidden, self.tokens, self.samples, run)

    def start(self, heads: int, run: int) -> Any:
        """The gradient at theta = 0 [p]."""
        from saltus._lazy import jnp

        problem = self.problem(heads, run)
        return _programs(problem.objective)[0](jnp.zeros(problem.size), problem.data)

    def one(self, heads: int, run: int) -> xarray.Dataset:
        from saltus.papers.rank.law import flow as flows
        from saltus.papers.rank.law import greedy

        problem = self.problem(heads, run)
        # The last stages take most of the time and learn next to nothing.
        found = greedy.run(problem, enough=self.learnt, atol=self.atol)
        K = len(found.stages) - 1
        until = _toys.horizon(found)
        path = flows.simulate(problem, flows.log_inverse(self.power), until, atol=self.atol)
        rises = path.half_rises(found.stages)
        middle = _toys.middles(rises)
        saddles = found.stacked("m")
        apart = abs(path.products(np.nan_to_num(middle)) - saddles[1:-1]).max(-1)
        rising = abs(path.products(np.nan_to_num(rises)) - saddles[1:]).max(-1)
        times = np.linspace(0.0, until, LOOKS)
        winners = np.asarray([s.winner for s in found.stages])
        kinds = winners // self.dim % 2
        data = xr.Dataset(
            {
                "half_rise": ("stage", rises),
                "apart_rising": ("stage", np.where(np.isfinite(rises), rising, np.nan)),
            },
            coords={"stage": np.arange(1, K + 1)},
        )
        plateau = xr.Dataset(
            {"apart": ("stage", np.where(np.isfinite(middle), apart, np.nan))},
            coords={"stage": np.arange(1, K)},
        )
        facts = xr.Dataset(
            {
                "T": ("stage", found.stacked("T")),
                "C": ("stage", found.stacked("C")),
                "level": ("stage", found.stacked("loss")),
                "least": ("stage", found.stacked("least")),
                "tied": ("stage", [float(len(s.tied)) for s in found.stages]),
                "left": ("stage", [float(len(s.left)) for s in found.stages]),
                "value_first": ("stage", np.where(winners >= 0, kinds == 1, np.nan)),
                "first_gap": ((), first_gap(found.stages[0].g)),
                "more_gap": ((), first_gap(self.start(heads + 1, run))),
                "last": ((), K),
                "time": ("look", times),
                "loss": ("look", path.losses(times)),
            },
            coords={"stage": np.arange(K + 1)},
        )
        return xr.merge([facts, data, plateau], join="outer")

    def law(self, record: xarray.Dataset) -> xarray.Dataset:
        """When each stage is due."""
        due = record["T"] + record.C / (self.power * np.log(10.0))
        due.attrs.update(long_name="T_k + C_k / log(1/alpha)", units="rescaled time")
        return xr.Dataset({"due": due})

    def claims(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        stages = _toys.counting(record)
        for h in self.widths():
            one, name = record.sel(heads=h), "one head" if h == 1 else f"{h} heads"
            counts, id = stages.sel(heads=h), "one" if h == 1 else "several"
            yield claim.above(
                f"unique-{id}",
                f"4.3, {name} a layer: the first winner is alone (share of networks).",
                stats.share(one.first_gap.values > 1e-9),
                0.5,
                control=(f"{h + 1} heads", stats.share(one.more_gap.values > 1e-9)),
                **({} if h == 1 else dict(expected=False, because=TIES)),
            )
            yield claim.below(
                f"times-{id}",
                f"Stages of {name} a layer come at T_k + C_k/L (relative error, median over stages).",
                stats.median(_toys.late(one.half_rise, law.due.sel(heads=h), counts)),
                0.001,
                control=("T_k alone", stats.median(_toys.late(one.half_rise, one["T"], counts))),
                **({} if h == 1 else dict(expected=False, because=FLAT)),
            )
            yield claim.below(
                f"plateaus-{id}",
                f"With {name} a layer, no product is far from the saddle's in the middle of a plateau "
                f"(distance, "
                "median over plateaus).",
                stats.median(finite(one.apart.where(counts).values)),
                0.02,
                control=("at half-rises", stats.median(finite(one.apart_rising.where(counts).values))),
                expected=False,
                because=NARROW if h == 1 else FLAT,
            )
        few, many = (record.sel(heads=h).least.where(stages.sel(heads=h)) for h in self.widths())
        yield claim.above(
            "strict-minimum",
            "4.4: with one head a layer every saddle is a strict minimum (smallest eigenvalue, of all "
            "stages).",
            stats.least(finite(few.values)),
            1e-6,
            control=(f"{self.heads} heads", stats.least(finite(many.values))),
        )
        first, later = record.value_first.sel(stage=0), record.value_first.isel(stage=slice(1, None))
        yield claim.above(
            "value-first",
            "The first coordinate is of w_V w_O (share of networks).",
            stats.share(finite(first.values) == 1),
            0.7,
            control=("later coordinates", stats.share(finite(later.values) == 1)),
        )

    def draw(self, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
        from saltus.papers.rank.studies import _deep_pictures

        return _deep_pictures.deep(self, record, law)


def first_gap(g: Any) -> float:
    """How much longer the second waits than the first winner, relatively: 1 / |g| at 0."""
    size = np.sort(np.abs(np.asarray(g)))
    return float(size[-1] / size[-2] - 1)


@lru_cache(maxsize=64)
def _programs(loss: Any) -> tuple[Any, Any]:
    """Gradient and outputs, compiled once for all networks of a kind."""
    from saltus._lazy import jax

    return jax.jit(loss.pull), jax.jit(loss.outputs)


@lru_cache(maxsize=64)
def _problem(dim: int, layers: int, heads: int, hidden: int, tokens: int, samples: int, run: int) -> Problem:
    from saltus._lazy import jnp
    from saltus.papers.rank.law.objective import Problem
    from saltus.papers.rank.model import Transformer, TransformerLoss
    from saltus.papers.rank.world import normals

    model = Transformer(dim, layers, heads)
    X = normals(50_000 + 4 * run, (samples, tokens, dim))
    frozen = normals(50_001 + 4 * run, (layers, 2, dim, hidden)) / np.sqrt(max(dim, hidden))
    k, q, v, o = normals(50_002 + 4 * run, (4, layers, heads, dim))
    teacher = np.stack([k * q / np.sqrt(dim), v * o], axis=2).ravel()
    u, v = normals(50_003 + 4 * run, (2, model.size))
    u, v = np.where(abs(u) < abs(v), (v, u), (u, v))
    loss = TransformerLoss(model)
    Y = _programs(loss)[1](jnp.asarray(teacher), jnp.asarray(X), jnp.asarray(frozen))
    return Problem(loss, (jnp.asarray(X), Y, jnp.asarray(frozen)), abs(u), np.sign(u) * v)
