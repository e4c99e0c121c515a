"""How the turns of the loss line up with the stages of the Jacobian, over the paths of a census."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.papers.sim.studies._symmetric import Symmetric

if TYPE_CHECKING:
    import xarray

    from saltus.papers.sim.law.stages import LossLeg, Stage

__all__ = ["Lined", "inside", "line_up", "ordered", "stages_of"]

WITHIN = 0.9  # of a rise's time


@dataclass(frozen=True)
class Lined:
    """Of each path, the same questions asked of its own stages and of a control [member]."""

    ordered: Any  # every turn of the loss at x̂ is the growth or suppression it should be
    ordered_at_centre: Any  # likewise the loss at the strongest cluster's centre
    inside: Any  # every rise of the loss falls into suppression
    inside_other: Any  # into that of another start
    rises: Any  # the suppressed entries, as the loss names them, one list a path


def stages_of(study: Symmetric, record: xarray.Dataset, member: int) -> list[Stage]:
    from saltus.papers.sim.law import stages

    return stages.find(record.time.values, record.W.values[member], study.rates(), study.s)


def legs_of(
    study: Symmetric, record: xarray.Dataset, member: int, found: list[Stage], z: Any
) -> list[LossLeg]:
    from saltus.papers.sim.law import stages

    theta = float(record.picked_theta)
    return stages.loss_legs(record.time.values, record.W.values[member], z, found, theta)


def ordered(legs: Sequence[LossLeg], s: int) -> bool:
    """Falls by growth of w_ss, ..., w_11 in turn, rises by suppression of an entry off the diagonal, each
    within a stage that is just that."""
    if len(legs) != 2 * s - 1:
        return False
    for number, leg in enumerate(legs):
        axis = s - 1 - number // 2
        falling = leg.kind == "growth" and leg.driver == (axis, axis)
        rising = leg.kind == "suppression" and leg.driver[0] != leg.driver[1]
        if leg.stage is None or not (rising if number % 2 else falling):
            return False
    return True


def inside(legs: Sequence[LossLeg], found: Sequence[Stage]) -> bool:
    """Whether the time in which the loss rises lies in stages of suppression, at least 90% of it."""
    rises = [leg for leg in legs if leg.change > 0]
    total = sum(leg.end - leg.start for leg in rises)
    shared = sum(
        max(0.0, min(leg.end, one.end) - max(leg.start, one.start))
        for leg in rises
        for one in found
        if one.kind == "suppression"
    )
    return total > 0 and shared >= WITHIN * total


def line_up(study: Symmetric, record: xarray.Dataset) -> Lined:
    """Put both questions to every path but the one shown; the other start is the next one."""
    members = range(1, record.sizes["member"])
    target = study.target()
    centre = np.where(np.arange(study.dim) == int(np.argmax(study.rates())), target, 0.0)
    found = [stages_of(study, record, m) for m in members]
    legs = [legs_of(study, record, m, f, target) for m, f in zip(members, found, strict=True)]
    at_centre = [legs_of(study, record, m, f, centre) for m, f in zip(members, found, strict=True)]
    order = np.argsort(np.argsort(study.rates()[: study.s]))  # weakest first, as the figures have it
    plain = bool(np.all(order == np.arange(study.s)))
    return Lined(
        ordered=np.asarray([plain and ordered(one, study.s) for one in legs]),
        ordered_at_centre=np.asarray([plain and ordered(one, study.s) for one in at_centre]),
        inside=np.asarray([inside(one, f) for one, f in zip(legs, found, strict=True)]),
        inside_other=np.asarray([inside(one, f) for one, f in zip(legs, found[1:] + found[:1], strict=True)]),
        rises=[[leg.driver for leg in one if leg.change > 0] for one in legs],
    )
