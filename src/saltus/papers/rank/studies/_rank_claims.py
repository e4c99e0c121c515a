"""What the paper says of trained heads, put to the test on the record of a training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.core import claim, stages, stats

if TYPE_CHECKING:
    import xarray

    from saltus.core.claim import Claim
    from saltus.core.stages import Stages

__all__ = [
    "areas",
    "curves",
    "found_stages",
    "grows",
    "learns",
    "low_rank",
    "reference",
    "staged",
    "well_below",
]

HALF = 0.5  # "well below", "low rank": at most half of what it is compared with
ALARM = 0.05
LOOKS = 48  # of the even grid on which stages are looked for
EARLY = 0.02  # of all steps: when the growth of the rank is measured from


def well_below(
    record: xarray.Dataset, products: tuple[str, ...] = ("KQ", "VO"), **verdict: Any
) -> Iterator[Claim]:
    """Figures 1, 5, 14: the spectrum of what a head gained, below the one it began with."""
    r = record.sel(product=list(products))
    count = r.sizes["of_start"]
    began = areas(r.start.values, count)
    yield claim.below(
        "well-below",
        "area under the normalised spectrum of what a head gained, over that of its first weights "
        "(median over heads)",
        stats.median(areas(r.spectrum.isel(shown=-1).values, count) / began),
        HALF,
        control=("random changes of the same size", stats.median(areas(r.random.values, count) / began)),
        **verdict,
    )


def areas(spectra: Any, count: int) -> Any:
    """The mean of the first so many normalised singular values [..., k]: as many as the first product has."""
    return np.asarray(spectra, float)[..., :count].mean(-1)


def low_rank(
    record: xarray.Dataset, products: tuple[str, ...] = ("KQ", "VO"), **verdict: Any
) -> Iterator[Claim]:
    """The stable rank reached, over that of random changes of the same size in the same heads."""
    r = record.sel(product=list(products)).isel(step=-1)
    other = np.roll(r.random_rank.values, 1, axis=r.random_rank.get_axis_num("head"))
    yield claim.below(
        "low-rank",
        "stable rank of what a head gained, over that of a random change as large (median over heads)",
        stats.median(r["rank"].values / r.random_rank.values),
        HALF,
        control=("random changes in the head's neighbour", stats.median(other / r.random_rank.values)),
        **verdict,
    )


def reference(record: xarray.Dataset) -> Iterator[Claim]:
    """The random change itself against free probability."""
    from saltus.probe import gaussian_change_rank

    d, r = (int(x) for x in record.shape.values)
    seen = record.tiny_rank.values
    known = gaussian_change_rank(d, r)
    yield claim.within(
        "reference",
        f"stable rank of tiny random changes over its closed form, {known:.1f} (mean)",
        stats.mean(seen / known),
        (0.9, 1.3),
        control=("over d/4, as if heads were whole matrices", stats.mean(seen / (d / 4))),
    )


def grows(
    record: xarray.Dataset, products: tuple[str, ...] = ("KQ", "VO"), **verdict: Any
) -> Iterator[Claim]:
    """Figures 4, 12, 15, 20: the stable rank at the end, over that early in the training."""
    r = record.sel(product=list(products))
    steps = record.step.values
    early = int(np.searchsorted(steps, max(1, EARLY * steps[-1])))
    yield claim.above(
        "grows",
        f"stable rank at the end over that after {EARLY:.0%} of the steps (median over heads)",
        stats.median((r["rank"].isel(step=-1) / r["rank"].isel(step=early)).values),
        1.0,
        control=(
            "random walks of the same sizes",
            stats.median((r.random_rank.isel(step=-1) / r.random_rank.isel(step=early)).values),
        ),
        **verdict,
    )


def curves(record: xarray.Dataset, name: str = "rank") -> tuple[Any, Any]:
    """Stable ranks [member, product, layer, head, look] at steps evenly spaced in the logarithm [look].

    The first steps are too few for the logarithm: looks begin where whole numbers are as dense.
    """
    steps = record.step.values.astype(float)
    first = max(4.0, steps[-1] / 1000)
    x = np.geomspace(first, steps[-1], LOOKS)
    y = record[name].transpose("member", "product", "layer", "head", "step").values
    known = steps > 0
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


def staged(record: xarray.Dataset, **verdict: Any) -> Iterator[Claim]:
    """Whether the rank rises in stages: more often than the detector raises false alarms."""
    seen, other = (found_stages(record, name) for name in ("rank", "random_rank"))
    yield claim.above(
        "stages",
        f"layers whose mean rank rises quicker than a smooth trend, at {ALARM:.0%} false alarms (share)",
        stats.share([s.rises > 0 for s in seen]),
        ALARM,
        control=("random walks of the same sizes", stats.share([s.rises > 0 for s in other])),
        **verdict,
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
