"""Fig. 7: the losses at all corners respect the order of their components."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from saltus._lazy import np, xr
from saltus.core import claim, stats
from saltus.core.errors import BadInput
from saltus.core.settings import Presets, reading, setting
from saltus.core.study import study
from saltus.papers import sim

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab
    from saltus.papers.sim.training import Protocol

SHUFFLES = 20  # random relabellings of the corners, for the control


def pairs(corners: Any, *, origin: bool) -> Any:
    """Index pairs (u, v) with u below v in the component-wise order, with or without the origin corner."""
    v = np.asarray(corners) > 0
    below = np.all(v[:, None] <= v[None], axis=-1) & np.any(v[:, None] < v[None], axis=-1)
    if not origin:
        below &= np.any(v, axis=-1)[:, None]
    return np.argwhere(below)


def in_order(loss: Any, chosen: Any) -> Any:
    """Share of the pairs whose losses are in order (eq. B.2); `loss[..., corner]`."""
    return np.mean(loss[..., chosen[:, 0]] <= loss[..., chosen[:, 1]], axis=-1)


@study(
    "sim/fig7",
    cites="yang2025dynamics",
    figure="7",
    cost="10 s on two cores",
    checks=(
        "from the first epoch to the last, corners other than the origin are in order (control: shuffled)",
        "every comparable pair is in order after every epoch (control: shuffled corners)",
        "after epochs 1, 3 and 5, most comparable pairs are in order (control: shuffled corners)",
        "after one epoch the order is strict in most runs (control: after two)",
    ),
)
@dataclass(frozen=True)
class ComponentOrder:
    """Corners are learnt in component-wise order, except for the origin corner.

    The paper says that the order is strict. As drawn it is real for the 50 pairs without the origin corner,
    whose own loss is that of the biases; the single corners overtake it. As written training is nearly over
    within one epoch, and the last minibatches put a few pairs of what is left out of order. Untrained
    networks are in order trivially: their loss is the size of x.
    """

    reading: str = reading()
    mu: tuple[float, ...] = setting((1.0, 2.0, 3.0, 4.0), "distances of the clusters", above=0)
    sigma: float = setting(0.5, "spread along every concept axis, in the reading's unit", low=0)
    dim: int = setting(64, "dimension of the inputs", low=2)
    width: int = setting(64, "hidden width", low=1)
    depth: int = setting(2, "layers", low=1, high=16)
    activation: str = setting("relu", "after every layer but the last", choices=("relu", "linear"))
    lr: float = setting(0.1, "learning rate", above=0)
    batch: int = setting(128, "points a step", low=1)
    epochs: int = setting(6, "passes over the data; the figure shows epochs 1, 3, 5", low=1)
    points: int = setting(5000, "training points in each cluster", low=1)
    seeds: int = setting(32, "runs", low=1)
    base: int = setting(0, "key that all seeds share", low=0, high=2**32 - 1)

    presets: ClassVar[Presets] = {"reading": {"as-drawn": {}}}

    def check(self) -> None:
        if not 2 <= len(self.mu) <= 8:
            raise BadInput(f"mu needs two to eight values, not {len(self.mu)}: every corner is drawn")
        self.protocol()

    def protocol(self) -> Protocol:
        sizes: dict[str, Any] = dict(dim=self.dim, points=self.points, depth=self.depth, width=self.width)
        steps: dict[str, Any] = dict(
            activation=self.activation, lr=self.lr, batch=self.batch, epochs=self.epochs
        )
        return sim.training.protocol(self.reading, self.mu, self.sigma, **sizes, **steps)

    def run(self, lab: Lab) -> xarray.Dataset:
        how = self.protocol()
        at = np.arange(self.epochs + 1) * how.steps_per_epoch
        with lab.progress("training") as tick:
            seen = sim.training.train(
                how,
                seeds=self.seeds,
                at=at,
                watch=how.world.corners(),
                base=self.base,
                train_loss=False,
                progress=tick,
            )
        bits = (how.world.corners() > 0).astype(int)
        return xr.Dataset(
            {
                "loss": (
                    ("seed", "epoch", "corner"),
                    seen["loss"],
                    {"long_name": "half the squared distance at the corner", "units": "1"},
                ),
                "present": (
                    ("corner", "concept"),
                    bits,
                    {"long_name": "which concepts the corner joins", "units": "1"},
                ),
                "diverged_at": (
                    "seed",
                    seen["diverged_at"],
                    {"long_name": "first step that is not finite, -1 if none", "units": "step"},
                ),
            },
            coords={
                "seed": seen["seed"],
                "epoch": np.arange(self.epochs + 1),
                "corner": ["".join(map(str, b)) for b in bits],
                "concept": np.arange(1, how.world.s + 1),
            },
        )

    def claims(self, record: xarray.Dataset, law: None) -> Iterator[Claim]:
        proper, every = (pairs(record.present.values, origin=o) for o in (False, True))
        trained = record.loss.sel(epoch=slice(1, None)).values
        mixed = _shuffled(trained)
        yield claim.above(
            "order-without-origin",
            f"After every epoch from 1 to {self.epochs}, at least 97% of the {len(proper)} pairs without the "
            "origin corner are in order.",
            _worst_epoch(in_order(trained, proper)),
            0.97,
            control=("corners shuffled", _worst_epoch(in_order(mixed, proper))),
            expected=self.drawn,
            because=""
            if self.drawn
            else "as written training is nearly over within one epoch: the losses left are those of the last "
            "minibatches, which put one pair in twenty out of order",
        )
        yield claim.above(
            "strict-order",
            f"After every epoch from 1 to {self.epochs} all {len(every)} pairs are in order in at least 90% "
            "of the runs: the order is strict.",
            stats.share(np.all(in_order(trained, every) == 1, axis=1)),
            0.9,
            control=("corners shuffled", stats.share(np.all(in_order(mixed, every) == 1, axis=1))),
            expected=False,
            because="the origin corner keeps the loss of the biases while single corners are already learnt"
            if self.drawn
            else "one pass over the data nearly ends the training; see order-without-origin",
        )

        for epoch in self.shown:
            yield claim.above(
                f"in-order-{epoch}",
                f"After epoch {epoch}, at least 80% of all {len(every)} comparable pairs are in order.",
                stats.mean(in_order(trained[:, epoch - 1], every)),
                0.8,
                control=("corners shuffled", stats.mean(in_order(mixed[:, epoch - 1], every))),
            )
        if self.epochs > 1:
            strict = np.all(record.loss.values[..., every[:, 0]] <= record.loss.values[..., every[:, 1]], -1)
            yield claim.above(
                "strict-once",
                f"After one epoch all {len(every)} pairs are in order in at least half of the runs.",
                stats.share(strict[:, 1]),
                0.5,
                control=("after two epochs", stats.share(strict[:, 2])),
                expected=self.drawn,
                because="" if self.drawn else "training is nearly over by then; see order-without-origin",
            )

    @property
    def shown(self) -> list[int]:
        """The epochs of the published figure, as far as there are so many."""
        return [e for e in (1, 3, 5) if e <= self.epochs] or [self.epochs]

    @property
    def drawn(self) -> bool:
        return self.reading == "as-drawn"

    def draw(self, record: xarray.Dataset, law: None) -> Figure:
        from saltus.report import figure

        shown = self.shown
        fig, axes = figure.sheet(1, len(shown) + 1, width=3.1, height=2.5)
        bits = record.present.values
        place = _places(bits)
        edges = [(i, j) for i, j in pairs(bits, origin=True) if (bits[j] - bits[i]).sum() == 1]
        points: Any = None
        most = float(np.median(record.loss.sel(epoch=shown).values, axis=0).max())
        top = min(most, 1.0)
        for ax, epoch in zip(axes[0], shown, strict=False):
            loss = np.median(record.loss.sel(epoch=epoch).values, axis=0)
            for i, j in edges:
                good = loss[i] <= loss[j]
                ax.plot(*place[[i, j]].T, color=figure.MUTED if good else figure.COLOURS[1],
                        linewidth=0.7 if good else 1.6, zorder=0)  # fmt: skip
            points = ax.scatter(
                *place.T, c=np.minimum(loss, top), cmap="viridis", vmin=0, vmax=top, s=190, clip_on=False
            )
            for name, (x, y), value in zip(record.corner.values, place, loss, strict=True):
                light = "black" if value > 0.6 * top else "white"
                ax.text(x, y, name, ha="center", va="center", fontsize=4.6, color=light)
            ax.set(title=f"after epoch {epoch}", xticks=[], yticks=[])
            ax.margins(0.08, 0.12)
            ax.grid(False)
            for side in ("left", "bottom"):
                ax.spines[side].set_visible(False)
        fig.colorbar(
            points,
            ax=list(axes[0, : len(shown)]),
            label="median loss" + (", cut at 1" if most > 1 else ""),
            aspect=25,
            pad=0.01,
        )
        ax = axes[0, -1]
        for origin, label, colour in ((False, "without the origin", 0), (True, "all pairs", 1)):
            chosen = pairs(bits, origin=origin)
            runs = in_order(record.loss.values, chosen)
            figure.band(ax, record.epoch.values, runs, label=label, colour=figure.COLOURS[colour])
        ax.axhline(0.5, color=figure.MUTED, linestyle=":", linewidth=0.9)
        ax.text(0, 0.51, "chance", fontsize=7, color=figure.MUTED)
        ax.set(xlabel="epoch", ylabel="share of pairs in order", ylim=(0.45, 1.02))
        ax.legend(loc="center right")
        trained = record.loss.sel(epoch=slice(1, None)).values
        least = [_worst_epoch(in_order(trained, pairs(bits, origin=o))).value for o in (False, True)]
        figure.finding(
            fig,
            f"At the worst epoch {least[0]:.0%} of the pairs without the origin corner are in order, "
            f"{least[1]:.0%} of all",
            f"{self.reading}: {self.depth} layers, {self.activation}, mu {self.mu}, sigma {self.sigma:g}; "
            f"{record.sizes['seed']} seeds; orange edges: out of order in the median",
        )
        return fig


def _places(bits: Any) -> Any:
    """Corners in columns by the number of concepts they join."""
    level = bits.sum(1)
    place = np.zeros((len(bits), 2))
    for k in np.unique(level):
        members = np.flatnonzero(level == k)
        members = members[np.lexsort(bits[members].T[::-1])[::-1]]
        place[members] = np.column_stack(
            [np.full(len(members), k), np.linspace(-1, 1, len(members)) * (len(members) - 1) / 2]
        )
    return place


def _worst_epoch(shares: Any) -> stats.Estimate:
    """Mean over runs at the epoch where it is least; `shares[run, epoch]`."""
    return stats.mean(shares[:, np.argmin(shares.mean(axis=0))])


def _shuffled(loss: Any) -> Any:
    """The runs several times over, each time with the corners relabelled at random."""
    rng = np.random.default_rng(7)
    return np.concatenate([loss[..., rng.permutation(loss.shape[-1])] for _ in range(SHUFFLES)])
