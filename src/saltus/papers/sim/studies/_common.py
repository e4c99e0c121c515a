"""What every study of trained networks shares: its settings, and the record of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from saltus._lazy import np, xr
from saltus.core.errors import BadInput
from saltus.core.settings import reading, setting
from saltus.papers import sim
from saltus.papers.sim.ranges import check_batch

if TYPE_CHECKING:
    import xarray

    from saltus.core.lab import Lab
    from saltus.papers.sim.training import Protocol

__all__ = ["Case", "Trained", "case_name", "learnt", "lost_runs", "train_cases"]

Case = tuple[tuple[float, ...], tuple[float, ...]]  # mu, and sigma in the unit of the reading


@dataclass(frozen=True)
class Trained:
    """Settings of a training, those of the paper as defaults (App. F.1)."""

    reading: str = reading()
    dim: int = setting(64, "dimension of the inputs", low=2)
    points: int = setting(5000, "training points in each cluster", low=1)
    lr: float = setting(0.1, "learning rate", above=0)
    batch: int = setting(128, "points a step", low=1)
    epochs: int = setting(40, "passes over the data", low=1)
    seeds: int = setting(32, "runs of each setting", low=1)
    base: int = setting(0, "key that all seeds share", low=0, high=2**32 - 1)
    looks: int = setting(400, "steps recorded, evenly in the logarithm", low=20)

    def check(self) -> None:
        check_batch(self.batch, self.points, self.reading)

    def network(self) -> dict[str, Any]:
        """Fields of the protocol that this study sets besides the common ones."""
        return {}

    def protocol(self, mu: Sequence[float], sigma: Sequence[float], **changes: Any) -> Protocol:
        """The training of one setting."""
        common = dict(dim=self.dim, points=self.points, lr=self.lr, batch=self.batch, epochs=self.epochs)
        return sim.training.protocol(self.reading, mu, sigma, **{**common, **self.network(), **changes})

    @property
    def drawn(self) -> bool:
        return self.reading == "as-drawn"

    def note(self, record: xarray.Dataset) -> str:
        """The small print under a figure."""
        spread = "variance" if self.drawn else "standard deviation"
        words = f"{self.reading}: sigma is the {spread}; d = {self.dim}, lr {self.lr:g}, batch {self.batch}, "
        words += f"{self.epochs} epochs; {record.sizes['seed']} seeds, bands hold 80% of them"
        lost = lost_runs(record)
        return words + (f"; {lost:.0%} of the runs diverged" if lost else "")


def case_name(case: Case) -> str:
    """`mu 1,2 sigma 0.05,0.05`."""
    return " ".join(
        f"{n} {','.join(f'{x:.4g}' for x in v)}" for n, v in zip(("mu", "sigma"), case, strict=True)
    )


def look_at(steps: int, looks: int) -> Any:
    """Step numbers: 0, then evenly in the logarithm, so that the first ones are all there."""
    return np.unique(np.concatenate([[0], np.round(np.geomspace(1, steps, looks)).astype(int)]))


def train_cases(study: Trained, lab: Lab, cases: Sequence[Case], **changes: Any) -> xarray.Dataset:
    """Train every case and put the runs together.

    **Returns:** `output` [setting, seed, step, axis] and `loss` [setting, seed, step] at x̂, `start`
    [setting, seed, axis, source] (output of the untrained network at the centre of each source alone, its
    offset taken off, per unit of mu), `offset` [setting, seed, axis] (its output at 0), `mu`, `sigma`
    [setting, axis], and `diverged_at` [setting, seed].
    """
    unique = list(dict.fromkeys(cases))
    with lab.progress("training") as tick:
        parts = []
        for number, case in enumerate(unique):
            parts.append(lab.keep(case_name(case), partial(_train, study, case, changes)))
            tick(number + 1, len(unique))
    data = xr.concat(parts, "setting")
    data = data.assign_coords(setting=[case_name(c) for c in unique], axis=[1, 2], source=[1, 2])
    _describe(data)
    return data


def _train(study: Trained, case: Case, changes: dict[str, Any]) -> xarray.Dataset:
    mu, sigma = case
    if len(mu) != 2:
        raise BadInput("these paths lie in a plane: give two concepts, as in mu 1,2")
    how = study.protocol(mu, sigma, **changes)
    # The untrained network at the centres and at 0 is all of its start that the theory needs.
    watch = np.concatenate([[mu], np.diag(mu), [[0.0, 0.0]]])
    seen = sim.training.train(
        how,
        seeds=study.seeds,
        at=look_at(how.steps, study.looks),
        watch=watch,
        base=study.base,
        train_loss=False,
    )
    offset = seen["output"][:, 0, 3]
    start = np.moveaxis(seen["output"][:, 0, 1:3] - offset[:, None], 1, -1) / np.asarray(mu)
    return xr.Dataset(
        {
            "output": (("setting", "seed", "step", "axis"), seen["output"][None, :, :, 0]),
            "loss": (("setting", "seed", "step"), seen["loss_test"][None]),
            "start": (("setting", "seed", "axis", "source"), start[None]),
            "offset": (("setting", "seed", "axis"), offset[None]),
            "diverged_at": (("setting", "seed"), seen["diverged_at"][None]),
            "mu": (("setting", "axis"), np.asarray([mu], float)),
            "sigma": (("setting", "axis"), np.asarray([sigma], float)),
        },
        coords={"seed": seen["seed"], "step": seen["step"]},
    )


def _describe(data: xarray.Dataset) -> None:
    for name, long_name, units in (
        ("output", "output at the test point", "1"),
        ("loss", "loss at the test point", "1"),
        ("start", "Jacobian before training, between concept axes", "1"),
        ("offset", "output at 0 before training", "1"),
        ("diverged_at", "first step that is not finite, -1 if none", "step"),
        ("mu", "distance of the cluster", "1"),
        ("sigma", "spread of the cluster, in the unit of the reading", "1"),
        ("step", "training step", "step"),
    ):
        data[name].attrs.update(long_name=long_name, units=units)


def learnt(record: xarray.Dataset) -> xarray.DataArray:
    """g_k = output_k / mu_k: 0 when nothing of a concept is learnt, 1 when all of it is."""
    return record.output / record.mu


def lost_runs(record: xarray.Dataset) -> float:
    """The share of runs that became infinite."""
    return float((record.diverged_at >= 0).mean())
