"""What the paper says of trained heads, put to the test on the record of a training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.core import claim, stages, stats

if TYPE_CHECKING:
    import xarray

    from saltus.core.claim import Claim
    from saltus.core.stages import Stages
    from saltus.core.stats import Estimate

__all__ = [
    "areas",
    "curves",
    "documented",
    "found_stages",
    "grows",
    "learns",
    "low_rank",
    "networks",
    "reference",
    "staged",
    "well_below",
]

HALF = 0.5  # "well below", "low rank": at most half of what it is compared with
ALARM = 0.05
LOOKS = 32  # the last ones, on which stages are looked for
EARLY = 0.02  # of all steps: when the growth of the rank is measured from
# Of the figures of stable ranks.
CHECKS = (
    "the stable rank of what heads gain grows (control: random walks of the same sizes)",
    "what heads gained is of low rank (control: their first weights)",
    "the rank rises in stages (control: random walks of the same sizes)",
    "random changes have the rank that free probability gives them (control: whole matrices)",
    "the networks did learn (control: untrained)",
)
NAMES = {"KQ": "W_K W_Q'", "VO": "W_V W_O'"}
BOTH = ("KQ", "VO")
NONE: Mapping[str, str] = MappingProxyType({})
Verdicts = Mapping[str, str]  # why a claim is documented as not holding, by its id


def networks(values: Any) -> Estimate:
    """The median over networks [member, ...] of each one's median: heads of one network are not independent.

    With fewer than six networks the interval is the whole line, and no claim holds.
    """
    values = np.asarray(values, float)
    return stats.median(np.median(values.reshape(len(values), -1), axis=1))


def documented(verdicts: Verdicts, id: str) -> dict[str, Any]:
    """What the study knows of this claim."""
    return dict(expected=False, because=verdicts[id]) if id in verdicts else {}


def well_below(
    record: xarray.Dataset, products: tuple[str, ...] = BOTH, verdicts: Verdicts = NONE
) -> Iterator[Claim]:
    """Figures 1, 5, 14: the spectrum of what a head gained, below the one it began with."""
    for product in products:
        r, id = record.sel(product=product), f"well-below-{product.lower()}"
        count = r.sizes["of_start"]
        began = areas(r.start.values, count)
        yield claim.below(
            id,
            f"area under the normalised spectrum of what {NAMES[product]} of a head gained, over that of its "
            "first value (median over heads, then over networks)",
            networks(areas(r.spectrum.isel(shown=-1).values, count) / began),
            HALF,
            control=("random changes of the same size", networks(areas(r.random.values, count) / began)),
            **documented(verdicts, id),
        )


def areas(spectra: Any, count: int) -> Any:
    """The mean of the first so many normalised singular values [..., k]: as many as the first product has."""
    return np.asarray(spectra, float)[..., :count].mean(-1)


def low_rank(
    record: xarray.Dataset, products: tuple[str, ...] = BOTH, verdicts: Verdicts = NONE
) -> Iterator[Claim]:
    """The stable rank reached, over that of random changes of the same size in the same heads.

    The control is what the paper compares with, the first weights, which are of full rank.
    """
    for product in products:
        r, id = record.sel(product=product).isel(step=-1), f"low-rank-{product.lower()}"
        yield claim.below(
            id,
            f"stable rank of what {NAMES[product]} of a head gained, over that of a random change as large "
            "(median over heads, then over networks)",
            networks(r["rank"].values / r.random_rank.values),
            HALF,
            control=("its first value", networks(r.start_rank.values / r.random_rank.values)),
            **documented(verdicts, id),
        )


def reference(record: xarray.Dataset) -> Iterator[Claim]:
    """The random change itself against free probability."""
    from saltus.probe import gaussian_change_rank

    d, r = (int(x) for x in record.shape.values)
    seen = record.tiny_rank.values
    known = gaussian_change_rank(d, r)
    yield claim.within(
        "reference",
        f"stable rank of tiny random changes over its closed form, {known:.1f} (mean over heads, each a draw "
        "of its own)",
        stats.mean(seen / known),
        (0.9, 1.3),
        control=("over d/4, as if heads were whole matrices", stats.mean(seen / (d / 4))),
    )


def grows(
    record: xarray.Dataset, products: tuple[str, ...] = BOTH, verdicts: Verdicts = NONE
) -> Iterator[Claim]:
    """Figures 4, 12, 15, 20: the stable rank at the end, over that early in the training."""
    steps = record.step.values
    early = early_look(steps)
    for product in products:
        r, id = record.sel(product=product), f"grows-{product.lower()}"
        yield claim.above(
            id,
            f"stable rank of what {NAMES[product]} gained at the end, over that after {EARLY:.0%} of the "
            "steps (median over heads, then over networks)",
            networks(ratio(r["rank"], early)),
            1.0,
            control=("random walks of the same sizes", networks(ratio(r.random_rank, early))),
            **documented(verdicts, id),
        )


def early_look(steps: Any) -> int:
    """Which look is the one early in the training, after the start."""
    return int(np.searchsorted(steps, max(1, EARLY * steps[-1])))


def ratio(ranks: xarray.DataArray, early: int) -> Any:
    """The last over the early one [member, layer, head]."""
    found = ranks.isel(step=-1) / ranks.isel(step=early)
    return found.transpose("member", "layer", "head").values


def curves(record: xarray.Dataset, name: str = "rank") -> tuple[Any, Any]:
    """Stable ranks [member, product, layer, head, look] at the last looks [look], evenly in the logarithm.

    Earlier looks are at every step, not evenly. Looks of a training too short for so many are put between.
    """
    steps = record.step.values.astype(float)
    y = record[name].transpose("member", "product", "layer", "head", "step").values
    if len(steps) > LOOKS:
        return steps[-LOOKS:], y[..., -LOOKS:]
    known = steps > 0
    x = np.geomspace(1.0, steps[-1], LOOKS)
    flat = y[..., known].reshape(-1, known.sum())
    out = np.stack([np.interp(np.log(x), np.log(steps[known]), one) for one in flat])
    return x, out.reshape(*y.shape[:-1], LOOKS)


def found_stages(record: xarray.Dataset, name: str = "rank") -> list[Stages]:
    """Stages of the mean over the heads of every layer, for each member and product."""
    x, y = curves(record, name)
    return [
        stages.find(y[m, p, k], x, alarm=ALARM)
        for m in range(y.shape[0])
        for p in range(y.shape[1])
        for k in range(y.shape[2])
    ]


def staged(record: xarray.Dataset, verdicts: Verdicts = NONE) -> Iterator[Claim]:
    """Whether the rank rises in stages, by more than what random walks of the same sizes do."""
    shares = {}
    for name in ("rank", "random_rank"):
        rises = np.asarray([s.rises > 0 for s in found_stages(record, name)], float)
        shares[name] = rises.reshape(record.sizes["member"], -1).mean(1)
    walks = shares["random_rank"]
    yield claim.above(
        "stages",
        "share of a network's layers and products whose mean rank rises quicker than a smooth trend, less "
        "that of random walks of the same sizes (median over networks)",
        stats.median(shares["rank"] - walks),
        ALARM,
        control=("the walks of the next network", stats.median(np.roll(walks, 1) - walks)),
        **documented(verdicts, "stages"),
    )


def learns(record: xarray.Dataset, least: float) -> Iterator[Claim]:
    """That there is anything to look at: the networks did learn."""
    right = record.accuracy_test.values
    yield claim.above(
        "learns",
        "share of test points that the trained networks get right (least over networks)",
        stats.least(right[:, -1]),
        least,
        control=("untrained", stats.worst(right[:, 0])),
    )
