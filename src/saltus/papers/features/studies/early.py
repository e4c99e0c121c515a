"""The denoiser's first stage: the ratio it gives, what it keeps, and when it ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from saltus._lazy import np, xr
from saltus.core.errors import BadInput
from saltus.core.settings import setting
from saltus.core.study import study
from saltus.papers.features.studies import _early, _early_claims
from saltus.papers.features.studies._runs import Synthetic

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab


@study(
    "features/early",
    cites="han2025feature",
    figure="Lemma 4.1",
    cost="2 min on two cores",
    version=2,
    checks=(
        "before saturation the ratio of mean products is n SNR^2 / 2, with slope 1 in n SNR^2",
        "the first stage follows its closed form, and keeps |w| sin^3 of the angle to the mean patch",
        "the loss falls when the closed form blows up",
        "that step goes with sigma0 to the power -1 and d to the power -1/2, not as T_2 does",
        "linear growth has the constant 4 alpha beta / sqrt(m)",
        "all products with signals are positive at T_mu; T_xi and T_1 lie beyond the fall of the loss",
        "all products are positive when the stage ends",
    ),
)
@dataclass(frozen=True)
class Early(Synthetic):
    """Early on the ratio is n SNR²/2, exactly linear; it is set by the mean patch alone.

    While the weights are small the denoiser obeys dw/dt = κ(|w|² x̄ + 2<w, x̄>w) with x̄ the mean patch and
    κ = 4αβ/√m: solved here in closed form. Trainings of the paper's setting over a range of n SNR², and of
    other starts and dimensions, are compared with it.
    """

    chis: tuple[float, ...] = setting(
        (0.1, 0.3, 0.75, 1.5, 3.0, 4.5, 7.0), "values of n SNR^2, by the length of the signal", above=0
    )
    level: float = setting(0.15, "saturation: the first mean product over this", above=0)
    starts: tuple[float, ...] = setting(
        (0.0001, 0.0003, 0.001), "standard deviations of the start, at n SNR^2 = 0.75", above=0
    )
    dims: tuple[int, ...] = setting(
        (1000, 16000, 256000), "dimensions, with sigma_xi^2 d held, from the smallest start", low=100
    )
    seeds: int = setting(16, "draws of data and start", low=1)

    def check(self) -> None:
        super().check()
        for name in ("chis", "starts", "dims"):
            values = getattr(self, name)
            if len(values) < 2 or list(values) != sorted(set(values)):
                raise BadInput(f"{name} needs two values or more in ascending order")

    def run(self, lab: Lab) -> xarray.Dataset:
        parts = []
        with lab.progress("runs") as tick:
            total = len(self.chis) + len(self.starts) + len(self.dims)
            for chi in self.chis:
                parts.append(lab.keep(f"n SNR^2 = {chi:g}", partial(_early.sweep, self, chi)))
                tick(len(parts), total)
            onsets: dict[str, list[Any]] = {"sigma0": [], "dim": []}
            for name, values in (("sigma0", self.starts), ("dim", self.dims)):
                for value in values:
                    made = lab.keep(f"{name} = {value:g}", partial(_early.onset, self, name, value))
                    onsets[name].append(made)
                    tick(len(parts) + sum(map(len, onsets.values())), total)
        data = xr.concat(parts, "chi").assign_coords(chi=list(self.chis), seed=np.arange(self.seeds))
        for name, values in (("sigma0", self.starts), ("dim", self.dims)):
            found = xr.concat(onsets[name], name).assign_coords({name: list(values)})
            data[f"onset_{name}"] = found.onset
            data[f"blow_up_{name}"] = found.blow_up
        for name, words in _early.WORDS.items():
            data[name].attrs.update(long_name=words, units="1")
        return data

    def law(self, record: xarray.Dataset) -> xarray.Dataset:
        """n SNR²/2, the ratio of the solved stationary points, and stage times in the paper's orders."""
        from saltus.papers.features.law import stage_one
        from saltus.papers.features.studies import _theory

        chi = record.chi.values
        point = _theory.symmetric(self, chi, np.asarray([self.mu_of(x) for x in chi]))
        alpha, beta = self.noise()
        orders = [
            stage_one.orders(
                self.n,
                self.d,
                self.m,
                self.mu_of(x),
                self.sigma_xi,
                self.sigma0,
                self.step,
                alpha,
                beta,
                c=self.factor(),
            )
            for x in chi
        ]
        data = xr.Dataset(
            {
                "early": ("chi", chi / 2),
                "stationary": ("chi", point.a[:, 0] / point.a[:, 1]),
                **{
                    name: ("chi", [getattr(o, name) for o in orders])
                    for name in ("T_mu", "T_xi", "T_1", "T_2")
                },
                "onset": ("chi", [o.onset for o in orders]),
            },
            coords={"chi": chi},
        )
        for name, words, unit in (
            ("early", "n SNR^2 / 2", "1"),
            ("stationary", "ratio of products at the stationary point, equal classes", "1"),
            *((n, f"the paper's {n} without its constant", "step") for n in ("T_mu", "T_xi", "T_1", "T_2")),
            ("onset", "pi / (4 kappa |x̄| sigma0 sqrt(d))", "step"),
        ):
            data[name].attrs.update(long_name=words, units=unit)
        return data

    def claims(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        return _early_claims.claims(self, record, law)

    def draw(self, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
        from saltus.papers.features.studies import _early_pictures

        return _early_pictures.early(self, record, law)
