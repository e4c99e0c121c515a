"""More than two patches, and features of unequal length and frequency, which the paper names as open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from saltus._lazy import np, xr
from saltus.core.errors import BadInput
from saltus.core.settings import setting
from saltus.core.study import study
from saltus.papers.features.studies import _patches

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab
    from saltus.papers.features.many import ManyPatch


@study(
    "features/patches",
    cites="han2025feature",
    figure="Section 6",
    cost="4 min on two cores",
    checks=(
        "early a denoiser's products go with frequency times squared length, whatever the number of patches",
        "rare and weak features of the same frequency times squared length are learnt alike",
        "at rest every product is the one solved for, patch by patch",
        "the denoiser learns rare and weak features where the classifier ignores them",
        "it removes more noise from a rare feature than from a direction it never saw",
        "the classifier is a coin where the rare feature stands alone",
        "a linear probe reads the rare feature's class off the denoiser's neurons, and does not",
    ),
)
@dataclass(frozen=True)
class Patches:
    """A denoiser learns rare and weak features that a classifier ignores, but not their classes.

    Points of four patches: a feature that all points hold, a rare one of the same length, a weak one that all
    hold, and noise; the same data for both tasks. The rare one's share and the weak one's squared length are
    lowered together. Then one to eight equal features beside the noise. The paper leaves both for later; its
    closed forms do not ask how many patches there are.
    """

    n: int = setting(30, "training points", low=4)
    d: int = setting(1000, "dimension of a patch", low=20)
    m: int = setting(20, "neurons", low=2)
    sigma_xi: float = setting(1.0, "standard deviation of the noise patches", above=0)
    sigma0: float = setting(0.001, "standard deviation of the start", above=0)
    time: float = setting(0.2, "diffusion time t", above=0, high=5)
    mu: float = setting(15.0, "length of the common feature, and of the rare one", above=0)
    shares: tuple[float, ...] = setting(
        (1.0, 0.5, 0.25, 0.12, 0.06),
        "shares of points that hold the rare feature, from 1 down",
        above=0,
        high=1,
    )
    noises: int = setting(1, "noise patches of a point", low=1, high=10)
    counts: tuple[int, ...] = setting(
        (1, 2, 4, 8), "equal features beside the noise, ascending", low=1, high=50
    )
    classifier_span: float = setting(
        280.0,
        "length of the classifier's training, in units of the common feature's growth",
        above=5,
        high=1000,
    )
    seeds: int = setting(16, "draws of data and start", low=1)
    base: int = setting(0, "key that all draws share", low=0, high=2**32 - 1)

    def check(self) -> None:
        if len(self.shares) < 3 or list(self.shares) != sorted(set(self.shares), reverse=True):
            raise BadInput("shares needs three values or more in descending order, as in 1,0.5,0.1")
        if self.shares[0] != 1:
            raise BadInput("shares must begin with 1, where the three features are equal")
        if len({self.strength(s) for s in self.shares}) < len(self.shares):
            raise BadInput(f"two of the shares are the same number of {self.n // 2} points")
        if list(self.counts) != sorted(set(self.counts)) or len(self.counts) < 2:
            raise BadInput("counts needs two values or more in ascending order")
        for share in self.shares:
            self.three(share)
        for count in self.counts:
            self.equal(count)

    def strength(self, share: float) -> float:
        """omega |x|^2 of the rare feature over that of the common one: its share in whole points."""
        half = self.n // 2
        return max(1, round(share * half)) / half

    def three(self, share: float) -> ManyPatch:
        """The common, the rare and the weak feature, beside noise."""
        from saltus.papers.features.many import ManyPatch

        s = self.strength(share)
        mu = (self.mu, self.mu, float(self.mu * s**0.5))
        n = 2 * (self.n // 2)
        return ManyPatch(n, self.d, mu, (1.0, s, 1.0), self.noises, self.sigma_xi)

    def equal(self, count: int) -> ManyPatch:
        """That many features of equal length and share 1, beside noise."""
        from saltus.papers.features.many import ManyPatch

        n = 2 * (self.n // 2)
        return ManyPatch(n, self.d, (self.mu,) * count, (1.0,) * count, self.noises, self.sigma_xi)

    def noise(self) -> tuple[float, float]:
        from saltus.papers.features.law.ddpm import diffusion

        return diffusion(self.time)

    def run(self, lab: Lab) -> xarray.Dataset:
        make: dict[str, Any] = {}
        for share in self.shares:
            make[f"denoiser, {share:g}"] = partial(_patches.denoiser, self, self.three(share), views=True)
            make[f"classifier, {share:g}"] = partial(_patches.classifier, self, self.three(share), views=True)
        for count in self.counts:
            make[f"{count} features"] = partial(_patches.denoiser, self, self.equal(count))
        made = dict(zip(make, lab.keep_all(make, "settings"), strict=True))
        tasks = []
        for task in ("denoiser", "classifier"):
            parts = [made[f"{task}, {share:g}"] for share in self.shares]
            tasks.append(xr.concat(parts, "strength", join="override"))
        data = tasks[0].merge(tasks[1])
        data = data.assign_coords(
            strength=[self.strength(s) for s in self.shares],
            group=list(_patches.GROUPS),
            seed=np.arange(self.seeds),
        )
        for name in ("early", "end", "solved", "pull"):
            # Features first and noise last, whatever their number: the mean feature over the noise.
            sides = [made[f"{k} features"][name].values for k in self.counts]
            ratio = [v[:, :-1].mean(1) / v[:, -1] for v in sides]
            data[f"many_{name}"] = (("count", "seed"), ratio)
            data[f"many_{name}"].attrs["long_name"] = f"mean feature over noise, {_patches.WORDS[name]}"
        for name in ("gap", "spread", "slope"):
            data[f"many_{name}"] = (
                ("count", "seed"),
                [made[f"{k} features"][name].values for k in self.counts],
            )
            data[f"many_{name}"].attrs["long_name"] = _patches.WORDS[name]
        data = data.assign_coords(count=list(self.counts))
        for name, words in _patches.WORDS.items():
            data[name].attrs.update(long_name=words, units="1")
        data.clock.attrs.update(long_name="training time over that of the blow-up", units="1")
        data.k.attrs.update(
            long_name="classifier's steps times the common feature's growth in one", units="1"
        )
        return data

    def law(self, record: xarray.Dataset) -> xarray.Dataset:
        """Ratios with equal classes and orthogonal noises: early, at rest, and of the classifier's "
        "beginning."""
        from saltus.papers.features.studies import _patches_law

        return _patches_law.law(self)

    def claims(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        from saltus.papers.features.studies import _patches_claims

        return _patches_claims.claims(self, record, law)

    def draw(self, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
        from saltus.papers.features.studies import _patches_pictures

        return _patches_pictures.patches(self, record, law)
