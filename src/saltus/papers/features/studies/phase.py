"""The phase diagram of both tasks over n SNR^2 and sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from saltus._lazy import np, xr
from saltus.core.errors import BadInput
from saltus.core.settings import setting
from saltus.core.study import study
from saltus.papers.features.studies import _phase
from saltus.papers.features.studies._phase import Size

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab

GRID = (0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 7.0, 10.0, 16.0)


@study(
    "features/phase",
    cites="han2025feature",
    figure="Theorem 3.2",
    version=2,
    cost="10 min on two cores: 11000 trainings",
    checks=(
        "the classifier's ratio crosses 1 where both products reach size 1 at the same step",
        "that n SNR^2 falls towards 2 as the start gets smaller",
        "the transition gets steeper as the start gets smaller",
        "the denoiser's early ratio has power 1 in n SNR^2 at every size",
        "its last ratio is the one solved for at every size, and has not",
    ),
)
@dataclass(frozen=True)
class Phase:
    """The classifier's boundary is a formula; the denoiser has none, and its power is below 1 at every size.

    Trainings of both tasks over n SNR² at the paper's sizes, and with n, d, m and the start's size varied one
    at a time: the n SNR² at which the classifier's largest products are equal when its loss is down to 0.1,
    and the power of n SNR² that the denoiser's ratio of means goes with, early and at rest.
    """

    scale: str = setting("default", "number of draws", choices=("default", "full"))
    n: tuple[int, ...] = setting((30, 10, 90), "training points; the first is the base", low=2)
    d: tuple[int, ...] = setting((1000, 300, 4000, 16000), "dimensions; the first is the base", low=10)
    m: tuple[int, ...] = setting((20, 5, 60), "neurons; the first is the base", low=1)
    sigma0: tuple[float, ...] = setting(
        (0.001, 0.0001, 0.00001, 0.000001), "standard deviations of the start; the first is the base", above=0
    )
    chi: tuple[float, ...] = setting(GRID, "values of n SNR^2, ascending", above=0)
    chi_denoiser: tuple[float, ...] = setting(
        (0.25, 0.75, 1.5, 3.0, 6.75, 12.0), "those of the denoiser, ascending", above=0
    )
    seeds: int = setting(64, "draws of each classifier", low=1)
    seeds_denoiser: int = setting(32, "draws of each denoiser", low=1)
    base: int = setting(0, "key that all draws share", low=0, high=2**32 - 1)

    presets: ClassVar = {"scale": {"full": {"seeds": 256, "seeds_denoiser": 128}}}

    def check(self) -> None:
        for name in ("chi", "chi_denoiser"):
            values = getattr(self, name)
            if len(values) < 3 or list(values) != sorted(set(values)):
                raise BadInput(f"{name.replace('_', '-')} needs three values or more in ascending order")
        for name in ("n", "d", "m", "sigma0"):
            if len(set(getattr(self, name))) < len(getattr(self, name)):
                raise BadInput(f"{name} has a value twice")

    def sizes(self, task: str) -> list[tuple[str, Size]]:
        """What is varied, and the sizes: the base first. A denoiser does not depend on a start this small."""
        n, d, m, s = self.n[0], self.d[0], self.m[0], self.sigma0[0]
        found = [("base", Size(n, d, m, s))]
        found += [("n", Size(x, d, m, s)) for x in self.n[1:]]
        found += [("d", Size(n, x, m, s)) for x in self.d[1:]]
        found += [("m", Size(n, d, x, s)) for x in self.m[1:]]
        if task == "classifier":
            found += [("σ₀", Size(n, d, m, x)) for x in self.sigma0[1:]]
        return found

    def trainings(self) -> int:
        """How many networks are trained."""
        classifiers = len(self.sizes("classifier")) * len(self.chi) * self.seeds
        return classifiers + len(self.sizes("denoiser")) * len(self.chi_denoiser) * self.seeds_denoiser

    def run(self, lab: Lab) -> xarray.Dataset:
        lab.show.say(f"  {self.trainings()} trainings")
        of, denoise = self.sizes("classifier"), self.sizes("denoiser")
        total, done = len(of) + len(denoise), 0
        parts: dict[str, list[Any]] = {"classifier": [], "denoiser": []}
        with lab.progress("sizes") as tick:
            for task, sizes, chis, seeds in (
                ("classifier", of, self.chi, self.seeds),
                ("denoiser", denoise, self.chi_denoiser, self.seeds_denoiser),
            ):
                for _, size in sizes:
                    make = partial(getattr(_phase, task), size, chis, seeds, self.base)
                    parts[task].append(lab.keep(f"{task}, {size.name}", make))
                    done += 1
                    tick(done, total)
        first = xr.concat(parts["classifier"], "size").assign_coords(size=[s.name for _, s in of])
        names = {"chi": "chi_denoiser", "seed": "seed_denoiser"}
        second = xr.concat(parts["denoiser"], "size_denoiser").rename(names)
        second = second.assign_coords(size_denoiser=[s.name for _, s in denoise])
        data = first.merge(second)
        for name, words in (
            ("ratio", "classifier: largest product with signal over noise when the loss is first below 0.1"),
            ("early", "denoiser: mean product with signal over noise before saturation"),
            ("end", "denoiser: the same at the end of training"),
            ("solved", "denoiser: the same at the solved stationary point"),
            ("spread", "denoiser: largest coefficient of variation over neurons at the end"),
            ("slope", "denoiser: norm of the gradient at the end"),
        ):
            data[name].attrs.update(long_name=words, units="1")
        return data

    def law(self, record: xarray.Dataset) -> xarray.Dataset:
        """The boundary chi* of every size, and the denoiser's ratio with equal classes."""
        from saltus.papers.features.law import ddpm, stationary

        star = [self.boundary(size) for _, size in self.sizes("classifier")]
        alpha, beta = ddpm.ALPHA_BETA
        ratios = []
        for _, size in self.sizes("denoiser"):
            mu = np.asarray([size.mu(x) for x in self.chi_denoiser])
            point = stationary.symmetric(np.asarray(self.chi_denoiser), size.m, alpha, beta, mu=mu)
            ratios.append(point.a[:, 0] / point.a[:, 1])
        data = xr.Dataset({"boundary": ("size", star), "ratio": (("size_denoiser", "chi_denoiser"), ratios)})
        data.boundary.attrs.update(
            long_name="n SNR^2 at which both products reach size 1 together", units="1"
        )
        data.ratio.attrs.update(long_name="ratio at the stationary point, equal classes", units="1")
        return data.assign_coords(size=record["size"], size_denoiser=record.size_denoiser)

    def boundary(self, size: Size) -> float:
        """chi* at that size; mu is the one that chi* itself asks for."""
        from saltus.papers.features.law import classifier

        chi = 2.5
        for _ in range(50):
            chi = float(classifier.boundary(size.sigma0, size.mu(chi), 1.0, size.d))
        return chi

    def claims(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        from saltus.papers.features.studies import _phase_claims

        return _phase_claims.claims(self, record, law)

    def draw(self, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
        from saltus.papers.features.studies import _phase_pictures

        return _phase_pictures.phase(self, record, law)
