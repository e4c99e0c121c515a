"""Figures 17 and 18: what the training set sees while the test loss falls, rises and falls."""

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
from saltus.papers.sim.studies import _census
from saltus.papers.sim.studies._symmetric import DRAWN, THETAS, Symmetric

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab

CITES = "yang2025dynamics"
PATHS = 256  # starts whose whole path is kept


@dataclass(frozen=True)
class Training(Symmetric):
    """Starts of figure 5, in steps, with the training loss and the outputs at the training centres."""

    dynamics: str = setting("gd", "flow of U, gd on U, or recursion D.2", choices=("flow", "gd", "recursion"))
    coarse: float = setting(1.5, "step of the control, in time constants of the strongest axis", above=0)
    theta: float = setting(
        0.01, "a descent is a fall by more than this share of L(0)", choices=THETAS, drawing=True
    )

    presets: ClassVar[dict[str, Any]] = {"reading": {"as-drawn": DRAWN}}
    looks: ClassVar[int] = 401
    logarithmic: ClassVar[bool] = False

    def check(self) -> None:
        super().check()
        if self.s != 2 or self.mu[0] > self.mu[1]:
            raise BadInput("give two concepts, the weaker first, as in mu 1,1.5")

    def run(self, lab: Lab) -> xarray.Dataset:
        U0 = self.draw_starts(self.starts)
        with lab.progress("starts") as tick:
            data = lab.keep("starts", partial(self.watch, U0))
            tick(1, 2)
            coarse = lab.keep("coarse", partial(self.too_coarse, U0))
            tick(2, 2)
        data = data.merge(coarse)
        for name, words, unit in (
            ("descents", "descents of the loss at the test point by more than theta L(0)", "1"),
            ("train_rise", "largest rise of the training loss in one step, in units of its start", "1"),
            ("coarse_rise", "the same of gradient descent with a coarse step", "1"),
            ("diverged_at", "first time with a loss above a million of its start, infinite if never", "time"),
            ("W", "Jacobian along the path", "1"),
            ("W_diagonal", "the same from diagonal starts", "1"),
            ("loss", "loss at the test point", "1"),
            ("train", "training loss", "1"),
            ("time", "time in the paper's clock", "time"),
        ):
            data[name].attrs.update(long_name=words, units=unit)
        return data

    def watch(self, U0: Any) -> xarray.Dataset:
        pieces = [U0[i : i + PATHS] for i in range(0, len(U0), PATHS)]
        pieces.append(_census.twins(self, U0[:PATHS])[0])
        *found, diagonal = [self.evolve(piece, self.dynamics, looks=self.looks) for piece in pieces]
        whole = {
            k: np.concatenate([f[k] for f in found]) for k in ("descents", "train_rise", "diverged_step")
        }
        return xr.Dataset(
            {
                "descents": (("start", "theta"), whole["descents"]),
                "train_rise": ("start", whole["train_rise"]),
                "diverged_at": ("start", self.step(self.dynamics) * whole["diverged_step"]),
                "W": (("member", "time", "row", "col"), found[0]["path_w"]),
                "W_diagonal": (("twin", "time", "row", "col"), diagonal["path_w"]),
                "loss": (("member", "time"), found[0]["path_loss"]),
                "train": (("member", "time"), found[0]["path_train"]),
            },
            coords={"start": np.arange(len(U0)), "theta": list(THETAS), "time": found[0]["time"]},
        ).assign_coords(member=np.arange(len(found[0]["loss"])))

    def too_coarse(self, U0: Any) -> xarray.Dataset:
        from saltus.papers.sim import symmetric as engine

        found = engine.evolve(
            self.moment(), self.target(), min(PATHS, len(U0)), how="gd", power=self.power,
            eta=self.coarse / float(self.rates().max()), steps=200, start=U0[:PATHS], watch=(engine.Rises(),),
        )  # fmt: skip
        return xr.Dataset({"coarse_rise": ("member", found["train_rise"])})

    def well(self, record: xarray.Dataset) -> Any:
        """Paths along which W keeps a positive diagonal, as every U U^T does [member]."""
        diagonal = np.diagonal(record.W.values, axis1=2, axis2=3)[..., :2]
        return np.isfinite(record.W.values).all((1, 2, 3)) & (diagonal >= 0).all((1, 2))

    def shown(self, record: xarray.Dataset) -> int:
        """The first start whose test loss falls twice, of those whose path is kept."""
        twice = record.descents.sel(theta=self.theta).values[: record.sizes["member"]] >= 2
        well = ~np.isfinite(record.diverged_at.values[: len(twice)])
        return int(np.argmax(twice & well))

    def words(self, record: xarray.Dataset) -> str:
        count = int(record.descents.sel(theta=self.theta)[self.shown(record)])
        return (
            f"shown: start {self.shown(record)}, the first of {record.sizes['start']} with {count} "
            f"descent{'s' if count != 1 else ''} of the test loss at θ = {self.theta:.1%}"
        )


@study(
    "sim/fig17",
    cites=CITES,
    figure="17",
    cost="6 s on two cores",
    checks=(
        "the training loss rises at no step (control: a step above the stability limit)",
        "the test loss of the same starts falls, rises and falls (control: their training loss)",
    ),
)
@dataclass(frozen=True)
class TrainingLoss(Training):
    """The training loss falls at every step while the test loss rises in between.

    The starts and the world of figure 5, moved in steps: gradient descent on U as written, where no start's
    training loss ever rises. As drawn, by the recursion on W, it rises from starts that leave the PSD cone.
    """

    def claims(self, record: xarray.Dataset, law: None) -> Iterator[Claim]:
        drawn = self.dynamics == "recursion"
        yield claim.below(
            "training-loss-falls",
            "The training loss rises at some step in at most 0.5% of starts.",
            stats.share(~(record.train_rise.values <= 1e-12)),
            0.005,
            control=(
                f"gradient descent with η = {self.coarse:g} / a of the strongest axis",
                stats.share(~(record.coarse_rise.values <= 1e-12)),
            ),
            expected=not drawn,
            because="the recursion on W leaves the PSD cone from some starts and then diverges"
            if drawn
            else "",
        )
        yield claim.above(
            "test-loss-rises",
            f"The test loss falls, rises and falls by over θ = {self.theta:.1%} in 10% of starts or more.",
            stats.share(record.descents.sel(theta=self.theta).values >= 2),
            0.1,
            control=(
                "the training loss rises by as much in one step",
                stats.share(record.train_rise.values > self.theta),
            ),
        )

    def draw(self, record: xarray.Dataset, law: None) -> Figure:
        from saltus.papers.sim.studies import _training_view_pictures

        return _training_view_pictures.losses(self, record)


@study(
    "sim/fig18",
    cites=CITES,
    figure="18",
    cost="6 s on two cores",
    checks=(
        "outputs at both training centres leave their axis and come back (control: diagonal starts)",
        "they turn at different stages: w_22, then the peak of w_12, then w_11 (control: other peaks)",
    ),
)
@dataclass(frozen=True)
class TrainingOutputs(Training):
    """Outputs at both training centres stray off their axes, at different stages of training.

    The output at the strong centre strays while it grows, that at the weak centre before it does: what both
    share is w_12, which grows with w_22 and is suppressed before w_11 grows.
    """

    def claims(self, record: xarray.Dataset, law: None) -> Iterator[Claim]:
        time, W = record.time.values, record.W.values[self.well(record)]
        yield claim.above(
            "both-stray",
            "The outputs at both centres leave their axis and come back, by w_12 > 0.1 (share of starts).",
            stats.share(stray(W) > 0.1),
            0.5,
            control=("diagonal starts", stats.share(stray(record.W_diagonal.values) > 0.1)),
        )
        strong, weak = (passes(time, W[:, :, k, k]) for k in (1, 0))
        peak = time[abs(W[:, :, 0, 1]).argmax(1)]
        other = np.roll(peak, 1)
        yield claim.above(
            "different-stages",
            "w_22 passes 1/2, then |w_12| peaks, then w_11 passes 1/2 (share of starts).",
            stats.share((strong < peak) & (peak < weak)),
            0.9,
            control=("the peak of the next start", stats.share((strong < other) & (other < weak))),
        )

    def draw(self, record: xarray.Dataset, law: None) -> Figure:
        from saltus.papers.sim.studies import _training_view_pictures

        return _training_view_pictures.outputs(self, record)


def stray(W: Any) -> Any:
    """How far |w_12| comes down again from its peak [start]; W [start, time, d, d]."""
    off = abs(W[:, :, 0, 1])
    return off.max(1) - off[:, -1]


def passes(time: Any, curve: Any, level: float = 0.5) -> Any:
    """The first look at which a curve [start, time] is at the level; infinite if none."""
    over = curve >= level
    return np.where(over.any(1), time[over.argmax(1)], np.inf)
