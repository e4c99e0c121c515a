"""Claims that several studies of paths put to the test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.core import claim, compare, stats
from saltus.papers.sim.studies import _trends

if TYPE_CHECKING:
    import xarray

    from saltus.core.claim import Claim

__all__ = ["distances", "follows_law", "rate_claim", "slows_down", "usable", "while_learning"]


def usable(values: Any) -> Any:
    """The numbers that exist: a run whose fit window holds too few looks has none."""
    values = np.asarray(values, float).ravel()
    return values[np.isfinite(values)]


def while_learning(record: xarray.Dataset, law: xarray.DataArray, median: xarray.DataArray) -> Any:
    """The law up to the look at which its median has both concepts to 2%; later both sides are at 1."""
    left = abs(1 - median).max("axis") > 0.02
    return law.where(left.cumsum("step") == np.arange(1, record.sizes["step"] + 1))


def distances(record: xarray.Dataset, g: xarray.DataArray, law: xarray.Dataset, name: str) -> Any:
    """Distance of every run from the law while there is something to learn; g, law[name] as in the law."""
    said = while_learning(record, law[name], law.g_median)
    seen = g.to_dataset(name="g")
    return compare.distance(seen, said.to_dataset(name="g")).g.values


def slows_down(record: xarray.Dataset) -> Iterator[Claim]:
    """Sec. 3.2: the same amount of loss takes longer at the end than at the start."""
    steps, loss = record.step.values, record.loss.values
    yield claim.above(
        "slow-down",
        "from 25% to 5% of the loss at x̂ takes longer than its first 20% (ratio of steps, median over runs)",
        stats.median(_trends.slowing(steps, loss, 0.25, 0.05)),
        3.0,
        control=("the second 20%", stats.median(_trends.slowing(steps, loss, 0.8, 0.6))),
    )


def follows_law(record: xarray.Dataset, g: xarray.DataArray, law: xarray.Dataset) -> Iterator[Claim]:
    """Distance of every run to the law from its own start, and how much of the scatter the start explains."""
    own = distances(record, g, law, "g")
    shifted = law.assign(g=law.g.copy(data=np.roll(law.g.values, 1, axis=0)))
    yield claim.below(
        "law",
        "each run follows the law from its own start (relative distance while learning, median over runs)",
        stats.median(own),
        0.05,
        control=("the law of the next setting", stats.median(distances(record, g, shifted, "g"))),
    )
    other = law.assign(g=law.g.copy(data=np.roll(law.g.values, 1, axis=1)))
    blind = distances(record, g, law, "g_median")
    yield claim.below(
        "own-start",
        "what runs differ by is their start: distance to the law from it, over that to the law's median",
        stats.median(own / blind),
        0.5,
        control=("another network's start", stats.median(distances(record, g, other, "g") / blind)),
    )


def rate_claim(
    record: xarray.Dataset,
    g: xarray.DataArray,
    settings: Sequence[Any],
    predicted: Any,
    eta: float,
    id: str,
    says: str,
    **verdict: Any,
) -> Claim:
    """Relative error of the predicted rates, median over runs and axes; the control swaps the axes.

    predicted: [setting, axis], for the settings named.
    """
    fitted = _trends.fitted_rate(
        record.step.values, g.sel(setting=list(settings)).transpose(..., "axis", "step").values, eta
    )
    predicted = np.asarray(predicted, float)[:, None]
    return claim.below(
        id,
        says + " (relative error, median over runs and axes)",
        stats.median(usable(abs(fitted / predicted - 1))),
        0.1,
        control=("the other axis' rate", stats.median(usable(abs(fitted / predicted[..., ::-1] - 1)))),
        **verdict,
    )
