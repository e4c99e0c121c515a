"""Smaller initial values: figures 6 and 7."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from saltus._lazy import np
from saltus.core import claim, stats
from saltus.core.errors import BadInput
from saltus.core.settings import setting
from saltus.core.study import study
from saltus.papers.rank.studies import _rank_claims as claims_
from saltus.papers.rank.studies import _training
from saltus.papers.rank.studies._vision import SCALES, Vision

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab
    from saltus.core.stats import Estimate

COST = "4 minutes on two cores, shared by figures 6 and 7"
SWEEP: dict[str, Any] = {
    "scale": {name: {**changes} for name, changes in SCALES["scale"].items()},
    "data": SCALES["data"],
}


@dataclass(frozen=True)
class Scaled(Vision):
    """One training for each scale of the initial values; the map from patches to tokens keeps its own."""

    seeds: int = setting(6, "networks trained at each scale", low=1)
    patch: int = setting(4, "side of a patch", low=1)
    scales: tuple[float, ...] = setting((1.0, 0.5, 0.2, 0.1), "of the initial values", above=0)

    presets: ClassVar[dict[str, Any]] = SWEEP
    verdicts: ClassVar[dict[str, str]] = {}  # why a claim is documented as not holding, by its id

    def check(self) -> None:
        super().check()
        if len(self.scales) < 3 or list(self.scales) != sorted(set(self.scales), reverse=True):
            raise BadInput("scales needs three or more, in descending order, as in 1,0.5,0.1")

    def run(self, lab: Lab) -> xarray.Dataset:
        return _training.trained(self, lab, self.scales)

    def law(self, record: xarray.Dataset) -> None:
        """The theory's statement is about the limit of small scales; here its direction is tested."""

    def by_scale(self, record: xarray.Dataset, name: str) -> Any:
        """[scale, product, seed, layer, head], of a variable at the last step."""
        r = record[name].isel(step=-1) if "step" in record[name].dims else record[name]
        last = r.transpose("member", "product", "layer", "head").values
        found = [last[record.scale.values == x] for x in self.scales]
        return np.moveaxis(np.stack(found), 1, 2)  # from [scale, seed, product, ...]

    def note(self) -> str:
        return super().note() + "; initial values times " + ", ".join(f"{x:g}" for x in self.scales)


def trend(values: Any, scales: Any) -> Any:
    """Kendall's tau between values [scale, ...] and the scales: 1 where values rise with every scale."""
    v = np.asarray(values, float)
    signs = [np.sign(scales[i] - scales[j]) * np.sign(v[i] - v[j]) for i in range(len(v)) for j in range(i)]
    return np.mean(signs, axis=0)


def smallest(record: xarray.Dataset) -> xarray.Dataset:
    """The networks of the smallest scale."""
    return record.isel(member=np.flatnonzero(record.scale.values == record.scale.values.min()))


def per_network(values: Any, scales: Any) -> Estimate:
    """The median over networks of the mean tau of all that is in one: values [scale, seed, ...]."""
    tau = trend(values, scales)
    return stats.median(tau.reshape(len(tau), -1).mean(1))


def shuffled(values: Any, seed: int) -> Any:
    """The scales of each network [scale, seed, ...] in an order of their own, the same for all its heads."""
    rng = np.random.default_rng(seed)
    v = np.asarray(values, float)
    return np.stack([v[rng.permutation(len(v)), n] for n in range(v.shape[1])], axis=1)


@study(
    "rank/fig7",
    cites="boixadsera2023rank",
    figure="7",
    cost=COST,
    checks=(
        "smaller initial values give a lower stable rank of what heads gain (control: scales shuffled)",
        "also over that of random changes of the same size, which falls too (control: scales shuffled)",
        "what heads gained is of low rank at the smallest scale (control: their first weights)",
        "the networks did learn (control: untrained)",
    ),
)
@dataclass(frozen=True)
class RankByScale(Scaled):
    """Smaller initial values lead to heads of lower rank, by more than random changes lose.

    The stable rank of what W_K W_Q' gained, for every head and scale of the initial values, after the
    training; a trend test over heads.
    """

    def claims(self, record: xarray.Dataset, law: None) -> Iterator[Claim]:
        ranks, chance = self.by_scale(record, "rank"), self.by_scale(record, "random_rank")
        for k, (product, words) in enumerate(claims_.NAMES.items()):
            for id, values, what in (
                ("lower", ranks[:, k], f"stable rank of what {words} gained"),
                ("further-below-chance", (ranks / chance)[:, k], "the same over that of random changes"),
            ):
                id = f"{id}-{product.lower()}"
                yield claim.above(
                    id,
                    f"smaller scale, lower {what} (Kendall's tau, mean over heads, median over networks)",
                    per_network(values, self.scales),
                    0.0,
                    control=(
                        "the scales of each network shuffled",
                        per_network(shuffled(values, self.base), self.scales),
                    ),
                    **claims_.documented(self.verdicts, id),
                )
        for one in claims_.low_rank(smallest(record), verdicts=self.verdicts):
            yield replace(one, says=f"at scale {min(self.scales):g}, {one.says}")
        yield from claims_.learns(record, 0.5)

    def draw(self, record: xarray.Dataset, law: None) -> Figure:
        from saltus.papers.rank.studies import _scale_pictures as pictures

        return pictures.final(self, record)


@study(
    "rank/fig6",
    cites="boixadsera2023rank",
    figure="6",
    cost=COST,
    checks=(
        "at smaller scales the first singular value leads the second by more (control: scales shuffled)",
        "stages stand out more at smaller scales (control: scales shuffled)",
        "the networks did learn (control: untrained)",
    ),
)
@dataclass(frozen=True)
class ValuesByScale(Scaled):
    """At smaller initial values one singular value leads the others by more, and stages stand out more.

    The ten largest singular values of what W_K W_Q' and W_V W_O' gained, in one randomly drawn head of the
    second layer, over the training. The paper calls them eigenvalues; the matrices are not symmetric.
    """

    def claims(self, record: xarray.Dataset, law: None) -> Iterator[Claim]:
        lead = self.leads(record)
        for k, (product, words) in enumerate(claims_.NAMES.items()):
            id = f"one-by-one-{product.lower()}"
            yield claim.above(
                id,
                f"{words}: the second singular value's share of the first is lower at smaller scales, "
                "averaged over the logarithm of the steps (Kendall's tau, mean over heads, median over "
                "networks)",
                per_network(lead[:, k], self.scales),
                0.0,
                control=(
                    "the scales of each network shuffled",
                    per_network(shuffled(lead[:, k], self.base), self.scales),
                ),
                **claims_.documented(self.verdicts, id),
            )
        clear = np.moveaxis(self.clearness(record), 1, 2)
        yield claim.below(
            "clearer-stages",
            "the largest stage of a layer's mean rank is clearer at smaller scales (Kendall's tau of its "
            "statistic over the threshold with the scale, mean over layers and products, median over "
            "networks)",
            per_network(clear, self.scales),
            0.0,
            control=(
                "the scales of each network shuffled",
                per_network(shuffled(clear, self.base), self.scales),
            ),
            **claims_.documented(self.verdicts, "clearer-stages"),
        )
        yield from claims_.learns(record, 0.5)

    def leads(self, record: xarray.Dataset) -> Any:
        """s_2 / s_1 of what was gained, averaged over looks [scale, product, seed, layer, head]."""
        values = record["values"].isel(step=slice(1, None))
        second = (values.isel(order=1) / values.isel(order=0)).mean("step")
        return self.by_scale(record.assign(second=second), "second")

    def clearness(self, record: xarray.Dataset) -> Any:
        """The largest statistic of stages over its threshold [scale, product, seed, layer]."""
        found = claims_.found_stages(record)
        each = [s.highest / s.threshold if np.isfinite(s.threshold) else 0.0 for s in found]
        over = np.reshape(each, [record.sizes[n] for n in ("member", "product", "layer")])
        split = [over[record.scale.values == x] for x in self.scales]
        return np.moveaxis(np.stack(split), 1, 2)

    def draw(self, record: xarray.Dataset, law: None) -> Figure:
        from saltus.papers.rank.studies import _scale_pictures as pictures

        return pictures.evolution(self, record)
