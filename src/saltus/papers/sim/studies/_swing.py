"""Swing-by of trained networks: their curves at x̂, and how often and how far they turn back."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from saltus._lazy import np, xr
from saltus.core import stats
from saltus.papers import sim

if TYPE_CHECKING:
    import xarray

    from saltus.core.stats import Estimate
    from saltus.papers.sim.training import Protocol

__all__ = ["THETAS_LOSS", "THETAS_REV", "difference", "shallow", "shoulder", "split_half", "swing"]

THETAS_LOSS = (0.001, 0.01, 0.05)
THETAS_REV = (0.01, 0.05, 0.1)


@lru_cache(maxsize=48)
def swing(how: Protocol, seeds: int, base: int, fine: int = 400) -> xarray.Dataset:
    """Train, measure swing-by on every step, and keep the curves at fewer.

    Studies that look at the same networks share them within a process.

    **Returns:** `output` [seed, step, axis] and `loss` [seed, step] at x̂; `s_loss` [seed, theta_loss],
    `s_loss_epochs` (the same seen at epoch starts only), `s_rev` [seed, theta_rev]; `rise`, `drawdown`,
    `centre` (least distance to the strongest centre, in units of |x̂ - centre|), `shoulder`, `learnt_at`
    (first step with less than 1% of the loss, -1 if none), `nearest`, `discarded`, `diverged_at` [seed].
    """
    from saltus.papers.sim.law import descents

    seen = sim.training.train(how, seeds=seeds, base=base, train_loss=False)
    output, loss = seen["output"][:, :, 0], seen["loss_test"]
    mu = how.world.test_point()
    strong, weak = int(np.argmax(mu)), int(np.argmin(mu))
    g = output[..., weak] / mu[weak]
    epochs = loss[:, :: how.steps_per_epoch]
    low = loss < 0.01 * loss[:, :1]
    keep = np.unique(np.concatenate([np.arange(min(fine, how.steps) + 1), _later(fine, how.steps)]))
    per_seed: dict[str, Any] = {
        "rise": descents.rise(loss),
        "drawdown": descents.drawdown(g),
        "centre": np.nanmin(descents.centre_distance(output, mu, strong), axis=1),
        "shoulder": shoulder(loss),
        "learnt_at": np.where(low.any(1), low.argmax(1), -1),
        "nearest": seen["nearest"],
        "discarded": seen["discarded"],
        "diverged_at": seen["diverged_at"],
    }
    measures = {
        "s_loss": ("theta_loss", [descents.s_loss(loss, t) for t in THETAS_LOSS]),
        "s_loss_epochs": ("theta_loss", [descents.s_loss(epochs, t) for t in THETAS_LOSS]),
        "s_rev": ("theta_rev", [descents.s_rev(g, t) for t in THETAS_REV]),
    }
    data = xr.Dataset(
        {
            "output": (("seed", "step", "axis"), output[:, keep]),
            "loss": (("seed", "step"), loss[:, keep]),
            **{name: ("seed", values) for name, values in per_seed.items()},
            **{name: (("seed", dim), np.stack(values, 1)) for name, (dim, values) in measures.items()},
        },
        coords={
            "seed": np.asarray(seen["seed"]),
            "step": keep,
            "axis": np.arange(1, how.world.s + 1),
            "theta_loss": list(THETAS_LOSS),
            "theta_rev": list(THETAS_REV),
        },
    )
    return _describe(data)


def _later(fine: int, steps: int) -> Any:
    return np.round(np.geomspace(max(fine, 1), max(steps, 1), 150)).astype(int) if steps > fine else [steps]


def shallow(how: Protocol) -> Protocol:
    """The control: one layer in the same world, which turns back nowhere (Theorem 4.1)."""
    return replace(how, depth=1)


def shoulder(loss: Any, window: int = 9, floor: float = 0.02, depth: float = 0.2) -> Any:
    """Whether the loss slows down and then speeds up again while it falls.

    The speed is -d log L / dt of the curve smoothed over `window` steps, while L > `floor` L(0), in
    units of its largest value; a shoulder is a fall of that speed and a later rise, each by more than
    `depth`. A sum of decaying exponentials is log-convex: one layer never speeds up again.

    **Arguments:** `loss[seed, step]`.
    """
    from saltus.papers.sim.law import descents

    found = []
    for curve in np.asarray(loss, float):
        below = np.flatnonzero(~(curve > floor * curve[0]))
        end = int(below[0]) if below.size else curve.size
        if end < 3 * window:
            found.append(False)
            continue
        log = np.convolve(np.log(curve[:end]), np.ones(window) / window, mode="valid")
        speed = -np.diff(log)
        top = speed.max()
        if not np.isfinite(top) or top <= 0:
            found.append(False)
            continue
        zigzag = descents.legs(speed / top, depth)
        found.append(bool(zigzag.rising >= (1 if zigzag.falls_first else 2)))
    return np.asarray(found)


def difference(a: Any, b: Any) -> Estimate:
    """Difference of two shares over independent runs, with a bootstrap interval."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    rng = np.random.default_rng(20250102)
    draws = 4000
    means = [v[rng.integers(0, v.size, (draws, v.size))].mean(1) for v in (a, b)]
    low, high = np.quantile(means[0] - means[1], [0.025, 0.975])
    n = min(a.size, b.size)
    if n < 6:
        low, high = -1.0, 1.0
    return stats.Estimate(float(a.mean() - b.mean()), float(low), float(high), n)


def split_half(values: Any) -> Estimate:
    """The same difference between the two halves of one setting's runs: nothing but chance."""
    values = np.asarray(values)
    return difference(values[::2], values[1::2])


def _describe(data: xarray.Dataset) -> xarray.Dataset:
    names = {
        "output": "output at the test point",
        "loss": "loss at the test point, half the squared distance",
        "s_loss": "loss falls, rises and falls, each by more than theta L(0), seen on every step",
        "s_loss_epochs": "the same, seen at epoch starts",
        "s_rev": "weak axis rises, falls and rises, each by more than theta of its target",
        "rise": "largest rise of L/L(0) after its first 1% fall",
        "drawdown": "largest fall of the weak axis after a 5% rise",
        "centre": "least distance to the strongest centre, in units of its distance to the test point",
        "shoulder": "the loss slows down and speeds up again",
        "learnt_at": "first step with less than 1% of the loss, -1 if none",
        "nearest": "distance from the test point to the nearest training point",
        "discarded": "training points drawn again",
        "diverged_at": "first step that is not finite, -1 if none",
    }
    for name, words in names.items():
        data[name].attrs.update(long_name=words, units="step" if name.endswith("_at") else "1")
    return data
