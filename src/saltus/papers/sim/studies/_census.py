"""A census over starts of the symmetric two-layer model, with the paths of a few of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from saltus._lazy import np, xr
from saltus.core import stats
from saltus.papers.sim.studies._symmetric import THETAS, Symmetric

if TYPE_CHECKING:
    import xarray

    from saltus.core.lab import Lab
    from saltus.core.stats import Estimate

__all__ = ["KEEP", "census", "chosen", "describe", "law", "shares", "which"]

KEEP = 64  # paths kept
ENOUGH = 24  # of them for an interval that can decide something
PIECE = 4096  # starts whose paths are in memory at once


def census(study: Symmetric, lab: Lab) -> xarray.Dataset:
    """Every start under the chosen dynamics, the flow and the recursion; and the paths of a few.

    **Returns:** by `how` and `start`: `descents` [theta], `half_time` and `end` [axis], `end_loss`,
    `negative_at` and `diverged_at` (times, infinite for never); `control_descents` [control, twin, theta], of
    diagonal starts and of starts with both signs; `U0`; and of up to 64 starts (`member`) with as many
    descents as concepts at `picked_theta`, after the one to show: `W`, `loss`, `train`. See `pick`.
    """
    U0 = study.draw_starts(study.starts)
    ways = list(dict.fromkeys([study.dynamics, "flow", "recursion"]))
    with lab.progress("starts") as tick:
        first = lab.keep(f"{study.dynamics}, paths", lambda: _with_paths(study, U0))
        tick(1, len(ways))
        counts = [first[COUNTED]]
        for number, how in enumerate(ways[1:], 2):
            counts.append(lab.keep(how, partial(_other, study, U0, how)))
            tick(number, len(ways))
    data = first.drop_vars(COUNTED).drop_vars("how").merge(xr.concat(counts, "how"))
    data["U0"] = (("start", "axis", "column"), U0)
    d = study.dim
    return describe(
        data.assign_coords(start=np.arange(len(U0)), theta=list(THETAS), axis=np.arange(1, d + 1))
    )


def _other(study: Symmetric, U0: Any, how: str) -> xarray.Dataset:
    return _counts(study, study.evolve(U0, how), how)


COUNTED = ["descents", "half_time", "end", "end_loss", "negative_at", "diverged_at"]


def _counts(study: Symmetric, found: dict[str, Any], how: str) -> xarray.Dataset:
    eta, n = study.step(how), len(found["loss"])
    per_axis = ("how", "start", "axis")
    data = {
        "descents": (("how", "start", "theta"), found["descents"][None]),
        "half_time": (per_axis, found["hit"][None, :, 0]),
        "end": (per_axis, np.diagonal(found["w"], axis1=1, axis2=2)[None]),
        "end_loss": (("how", "start"), found["loss"][None]),
        "negative_at": (("how", "start"), eta * found["negative_step"][None]),
        "diverged_at": (("how", "start"), eta * found["diverged_step"][None]),
    }
    return xr.Dataset(data, coords={"how": [how], "start": np.arange(n)})


def twins(study: Symmetric, U0: Any) -> Any:
    """Starts to compare with [2, n/2, d, d']: diagonal ones of the same diagonal, ones with both signs."""
    half = len(U0) // 2
    diagonal = np.zeros_like(U0[:half])
    both = np.arange(min(diagonal.shape[1:]))
    diagonal[:, both, both] = np.sqrt(np.sum(U0[:half] ** 2, axis=2))[:, both]
    # The same second moment as U(0, scale), and its own keys.
    signed = study.draw_starts(half, start="gaussian", scale=study.scale / 3**0.5)
    return np.stack([diagonal, signed])


def _with_paths(study: Symmetric, U0: Any) -> xarray.Dataset:
    n, other = len(U0), twins(study, U0)
    every = np.concatenate([U0, *other])
    pieces = [every[i : i + PIECE] for i in range(0, len(every), PIECE)]
    found = [study.evolve(piece, study.dynamics, looks=study.looks) for piece in pieces]
    whole = {
        k: np.concatenate([f[k] for f in found])
        for k in ("descents", "hit", "w", "loss", "negative_step", "diverged_step")
    }
    seen = whole["descents"][:n]
    theta, members, shown = pick(seen, whole["diverged_step"][:n], study.s)
    members = np.concatenate([[shown], members])
    paths = {
        k: np.stack([found[i // PIECE][f"path_{k}"][i % PIECE] for i in members])
        for k in ("w", "loss", "train")
    }
    data = _counts(study, {k: v[:n] for k, v in whole.items()}, study.dynamics)
    data["control_descents"] = (
        ("control", "twin", "theta"),
        whole["descents"][n:].reshape(2, -1, seen.shape[1]),
    )
    data["W"] = (("member", "time", "row", "col"), paths["w"])
    data["loss"] = (("member", "time"), paths["loss"])
    data["train"] = (("member", "time"), paths["train"])
    data["picked_theta"] = ((), theta)
    data["shown_theta"] = (
        (),
        max([t for t, n in zip(THETAS[:2], seen[shown], strict=False) if n == study.s] or [theta]),
    )
    return data.assign_coords(member=members, time=found[0]["time"], control=["diagonal", "both signs"])


def pick(descents: Any, diverged: Any, wanted: int) -> tuple[float, Any, int]:
    """Threshold, starts for the claims, and the start to show.

    The first starts with that many descents at the largest theta at which there are enough; to be shown, the
    first at the largest theta at which there is any. Starts that diverge are passed over, and where no start
    has that many descents, those with the most are taken. descents [start, theta], diverged [start].
    """
    well = ~np.isfinite(diverged)
    hits = [np.flatnonzero((descents[:, k] == wanted) & well) for k in (1, 0)]
    shown = next((int(h[0]) for h in hits if h.size), -1)
    for theta, found in zip((THETAS[1], THETAS[0]), hits, strict=True):
        if found.size >= ENOUGH or (theta == THETAS[0] and found.size):
            return theta, found[:KEEP], shown
    most = np.where(well, descents[:, 0], -1)
    found = np.flatnonzero(most == most.max())[:KEEP]
    return THETAS[0], found, int(found[0])


def chosen(study: Symmetric, record: xarray.Dataset) -> xarray.Dataset:
    """The census under the study's own dynamics."""
    return record.sel(how=study.dynamics)


def shares(descents: Any, number: int) -> Estimate:
    """The share of starts with that many descents or more, with its interval."""
    return stats.share(np.asarray(descents) >= number)


def which(study: Symmetric, record: xarray.Dataset) -> str:
    """Which start is shown and why, in words."""
    theta = float(record.shown_theta)
    counts = int(chosen(study, record).descents.sel(start=record.member[0], theta=theta))
    return (
        f"shown: start {int(record.member[0])}, the first of {record.sizes['start']} with {counts} "
        f"descent{'s' if counts != 1 else ''} at θ = {theta:.1%}"
    )


def law(study: Symmetric, record: xarray.Dataset) -> xarray.Dataset:
    """When each axis passes 1/2, and the logistic it then follows: closed forms of W(0).

    `half_time` [start, axis]; `blind` the same from w_kk(0) alone; `major` [member, time, axis].
    """
    from saltus.papers.sim.law import hitting, two_layer

    a, U0 = study.rates(), record.U0.values
    s = study.s
    sigma = np.asarray(hitting.schur(U0, a))
    own = np.sum(U0**2, axis=2)
    with np.errstate(divide="ignore"):
        blind = np.where(a > 0, -np.log(own) / (2 * np.where(a > 0, a, 1.0)), np.inf)
    shown = sigma[record.member.values]
    major = two_layer.logistic(record.time.values[:, None], shown[:, None, :s], a[:s])
    data = xr.Dataset(
        {
            "half_time": (("start", "axis"), np.asarray(hitting.half_time(U0, a))),
            "blind": (("start", "axis"), blind),
            "major": (("member", "time", "concept"), np.asarray(major)),
        },
        coords={"start": record.start, "axis": record.axis, "member": record.member, "time": record.time},
    )
    for name, words, unit in (
        ("half_time", "time at which w_kk passes 1/2, by its Schur complement", "time"),
        ("blind", "the same from w_kk(0), as if axes did not interact", "time"),
        ("major", "logistic from the Schur complement", "1"),
    ):
        data[name].attrs.update(long_name=words, units=unit)
    return data


WORDS = {
    "descents": ("descents of the loss at the test point by more than theta L(0)", "1"),
    "half_time": ("time at which w_kk passes 1/2, infinite if never", "time"),
    "end": ("diagonal of W at the end", "1"),
    "end_loss": ("loss at the test point at the end", "1"),
    "negative_at": ("first time with a negative diagonal entry, infinite if never", "time"),
    "diverged_at": ("first time with a loss above a million of its start, infinite if never", "time"),
    "control_descents": ("descents from starts to compare with", "1"),
    "W": ("Jacobian along the path", "1"),
    "loss": ("loss at the test point", "1"),
    "train": ("training loss", "1"),
    "picked_theta": ("threshold at which the paths were picked", "1"),
    "shown_theta": ("threshold at which the first path has as many descents as concepts", "1"),
    "U0": ("start", "1"),
    "time": ("time in the paper's clock", "time"),
}


def describe(data: xarray.Dataset) -> xarray.Dataset:
    for name, (words, unit) in WORDS.items():
        if name in data:
            data[name].attrs.update(long_name=words, units=unit)
    return data
