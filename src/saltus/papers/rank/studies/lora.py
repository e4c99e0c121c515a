"""Does the rank that training reaches tell the rank of adapters that would have sufficed?"""

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

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab

ENERGY = 0.9  # of a change's squared size: how much its rank must hold
GAP = 0.1  # of what attention gains: how much adapters may leave
TASKS = ("parity", "digits", "random")


@study(
    "rank/lora",
    cites="boixadsera2023rank",
    cost="3 minutes on two cores",
    checks=(
        "settings in which training reaches a higher rank need adapters of a higher rank (control: shuffled)",
        "the rank reached is within a factor of two of what suffices (control: rank of random changes)",
        "adapters of low rank suffice (control: adapters of rank one)",
    ),
)
@dataclass(frozen=True)
class Adapters:
    """The rank that training reaches does not tell the rank of adapters that suffices.

    A small ViT on 512 digits, of which only attention and the head learn: once freely, and from the same
    first weights by adapters of rank 1, 2, 4, ... (Hu et al. 2022). Over tasks (parity, ten digits, ten
    random classes), scales of the initial values and seeds: the rank of the free change (90% of its squared
    size), and the rank at which adapters close 90% of the gap in training loss that attention makes.
    """

    tasks: tuple[str, ...] = setting(TASKS, "what is learnt", choices=None)
    scales: tuple[float, ...] = setting((1.0, 0.3, 0.1), "of the initial values", above=0)
    ranks: tuple[int, ...] = setting((1, 2, 4, 8), "of the adapters", low=1)
    seeds: int = setting(2, "networks of each setting", low=1)
    points: int = setting(512, "digits learnt", low=32, high=1797)
    batch: int = setting(32, "digits a step", low=1)
    epochs: int = setting(60, "passes over the digits", low=1)
    lr: float = setting(3e-3, "learning rate of Adam", above=0)
    depth: int = setting(2, "layers", low=1)
    heads: int = setting(4, "heads of each layer", low=1)
    head: int = setting(8, "width of a head", low=1)
    width: int = setting(32, "numbers of a token", low=4)
    base: int = setting(0, "key that all seeds share", low=0, high=2**32 - 1)

    def check(self) -> None:
        for name in self.tasks:
            if name not in TASKS:
                raise BadInput(f"tasks are among {', '.join(TASKS)}; {name!r} is not")
        if len(set(self.tasks)) != len(self.tasks) or len(set(self.scales)) != len(self.scales):
            raise BadInput("tasks and scales name each setting once")
        if list(self.ranks) != sorted(set(self.ranks)) or self.ranks[-1] > min(
            self.width, self.heads * self.head
        ):
            raise BadInput("ranks go up, each once, to the size of the matrices at most")
        if self.batch > self.points:
            raise BadInput(f"batch must be at most the number of points, {self.points}, not {self.batch}")

    def of_ranks(self) -> tuple[float, ...]:
        """None, the adapters, any."""
        return (0.0, *map(float, self.ranks), self.ranks[-1] + 1.0)

    def run(self, lab: Lab) -> xarray.Dataset:
        with lab.progress("tasks") as tick:
            parts = []
            for number, task in enumerate(self.tasks, 1):
                parts.append(lab.keep(task, partial(self.learn, task)))
                tick(number, len(self.tasks))
        data = xr.concat(parts, "task").assign_coords(task=list(self.tasks))
        for name, words, unit in (
            ("loss", "training loss at the end", "1"),
            ("begun", "training loss at the beginning", "1"),
            ("values", "singular values of what each matrix gained, trained freely", "1"),
            ("diverged_at", "first step that is not finite, -1 if none", "step"),
            ("rank", "rank of the adapters", "1"),
            ("scale", "scale of the initial values", "1"),
        ):
            data[name].attrs.update(long_name=words, units=unit)
        return data

    def learn(self, task: str) -> xarray.Dataset:
        """Every scale, rank and seed of one task."""
        from saltus import data, descent, model
        from saltus.descent import network
        from saltus.papers.rank.studies import _adapters

        table = network.images(data.load("digits"), self.points)[0]
        table = network.Table(table.x, self.labels(task, table.y), table.mean, table.std)
        base = model.ViT(
            image=table.x.shape[1:3], channels=1, patch=4, classes=10, depth=self.depth, heads=self.heads,
            width=self.width, head=self.head, mlp=self.width,
        )  # fmt: skip
        pairs = tuple((rank, scale) for scale in self.scales for rank in self.of_ranks())
        found = network.fit(
            _adapters.Adapted(base, self.ranks[-1], pairs),
            table,
            descent.adam(self.lr, epochs=self.epochs, batch=self.batch),
            seeds=self.seeds,
            scales=tuple(map(float, range(len(pairs)))),
            at=descent.at.log(3),
            evaluate=self.points,
            base=self.base,
        )
        shape = (len(self.scales), len(self.of_ranks()), self.seeds)
        free = [k for k in range(len(found.seeds)) if pairs[int(found.scales[k])][0] > self.ranks[-1]]
        gained = [[np.asarray(w)[free] for w in one.values()] for one in _changes(found.params)]
        values = np.stack([np.linalg.svd(w, compute_uv=False) for layer in gained for w in layer], 1)
        at = ("scale", "rank", "seed")
        return xr.Dataset(
            {
                "loss": (at, found.seen["loss_train"][:, -1].reshape(shape).astype(float)),
                "begun": (at, found.seen["loss_train"][:, 0].reshape(shape).astype(float)),
                "diverged_at": (at, found.diverged_at.reshape(shape)),
                "values": (
                    ("scale", "seed", "matrix", "index"),
                    values.reshape(shape[0], shape[2], *values.shape[1:]).astype(float),
                ),
            },
            coords={"scale": list(self.scales), "rank": list(self.of_ranks()), "seed": np.arange(self.seeds)},
        )

    def labels(self, task: str, y: Any) -> Any:
        """The classes of a task [n]; random ones are drawn once."""
        if task == "random":
            return np.random.default_rng(self.base).integers(0, 10, len(y)).astype(np.uint8)
        return y % 2 if task == "parity" else y

    def law(self, record: xarray.Dataset) -> xarray.Dataset:
        """The prediction: the rank that the free change reached [task, scale, seed], by two measures."""
        energy = record["values"].values ** 2
        share = energy.cumsum(-1) / energy.sum(-1, keepdims=True)
        needed = 1 + (share < ENERGY).sum(-1)
        stable = energy.sum(-1) / energy[..., 0]
        dims = ("task", "scale", "seed")
        data = xr.Dataset(
            {"reached": (dims, needed.mean(-1)), "stable": (dims, stable.mean(-1))},
            coords={"task": record.task, "scale": record.scale, "seed": record.seed},
        )
        data.reached.attrs.update(long_name=f"rank that holds {ENERGY:.0%} of the squared change", units="1")
        data.stable.attrs.update(long_name="stable rank of the change", units="1")
        return data

    def suffices(self, record: xarray.Dataset) -> Any:
        """The rank at which adapters leave 10% of the gap [task, scale, seed], between the ranks tried.

        Twice the largest where none of them does.
        """
        loss = record.loss.transpose("task", "scale", "seed", "rank").values
        left = (loss[..., :-1] - loss[..., -1:]) / (loss[..., :1] - loss[..., -1:])
        ranks = np.asarray(self.of_ranks()[:-1])
        out = np.full(left.shape[:-1], 2.0 * ranks[-1])
        for place in np.ndindex(out.shape):
            below = np.flatnonzero(left[place] <= GAP)
            if below.size:
                k = int(below[0])
                part = (left[place][k - 1] - GAP) / (left[place][k - 1] - left[place][k])
                low = max(ranks[k - 1], 0.5)
                out[place] = low * (ranks[k] / low) ** part
        return out

    def claims(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        needed, reached = self.suffices(record).ravel(), law.reached.values.ravel()
        rng = np.random.default_rng(self.base)
        pairs = self.by_setting(record, law)
        mixed = np.stack([rng.permutation(pairs[:, 0]), pairs[:, 1]], 1)
        yield claim.above(
            "order",
            "settings in which free training reaches a higher rank need adapters of a higher rank "
            "(Spearman's correlation over tasks and scales, seeds averaged)",
            stats.bootstrap(pairs, _spearman),
            0.0,
            control=("the ranks reached, shuffled", stats.bootstrap(mixed, _spearman)),
            expected=False,
            because="a correlation is there in the median; nine settings do not settle it",
        )
        other = self.of_random()
        yield claim.above(
            "factor-of-two",
            "the rank reached is within a factor of two of the one that suffices (share of networks)",
            stats.share(abs(np.log2(reached / needed)) <= 1),
            0.5,
            control=(
                f"the rank of random changes of that shape, {other:.0f}",
                stats.share(abs(np.log2(other / needed)) <= 1),
            ),
            expected=False,
            because="it is several times too high for true labels and too low for random ones",
        )
        half = self.ranks[-1] / 2
        yield claim.above(
            "low-rank-suffices",
            f"adapters of rank {half:g} close {1 - GAP:.0%} of the gap (share of networks)",
            stats.share(needed <= half),
            0.5,
            control=(f"of rank {self.ranks[0]}", stats.share(needed <= self.ranks[0])),
            expected=False,
            because="two networks in three; eighteen do not settle that it is more than half",
        )

    def by_setting(self, record: xarray.Dataset, law: xarray.Dataset) -> Any:
        """The rank reached and the one that suffices [task * scale, 2], geometric means over seeds.

        Seeds share their first draws among settings: a setting counts once.
        """
        both = (law.reached.transpose("task", "scale", "seed").values, self.suffices(record))
        return np.stack([np.exp(np.log(x).mean(-1)).ravel() for x in both], 1)

    def of_random(self) -> float:
        """The rank that holds 90% of the squared size of a random matrix of that shape."""
        draw = np.random.default_rng(self.base).standard_normal((64, self.width, self.heads * self.head))
        energy = np.linalg.svd(draw, compute_uv=False) ** 2
        share = energy.cumsum(-1) / energy.sum(-1, keepdims=True)
        return float((1 + (share < ENERGY).sum(-1)).mean())

    def note(self) -> str:
        return (
            f"ViT of {self.depth} layers, {self.heads} heads of width {self.head}, tokens of {self.width}, "
            f"on {self.points} digits; only attention and the head learn; adam, lr {self.lr:g}, "
            f"batch {self.batch}, {self.epochs} epochs, {self.seeds} seeds"
        )

    def draw(self, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
        from saltus.papers.rank.studies import _lora_pictures

        return _lora_pictures.adapters(self, record, law)


def _changes(params: Any) -> Any:
    """W - W_0 of every member, block and matrix."""
    from saltus._jax import jax
    from saltus.papers.rank.studies import _adapters

    return jax.vmap(_adapters.changes)(params)


def _spearman(pairs: Any) -> float:
    """The correlation of ranks, ties sharing theirs; of columns of pairs [n, 2]."""
    x, y = (_ranks(c) for c in np.asarray(pairs, float).T)
    x, y = x - x.mean(), y - y.mean()
    size = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / size if size else 0.0


def _ranks(values: Any) -> Any:
    return np.asarray([((values < v).sum() + (values <= v).sum() - 1) / 2 for v in values])
