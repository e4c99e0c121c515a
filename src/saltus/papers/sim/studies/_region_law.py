"""The largest admissible start in closed form: where it was searched, and as curves."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from saltus._lazy import np, xr

if TYPE_CHECKING:
    import xarray

    from saltus.papers.sim.studies.assumptions import AdmissibleRegion

__all__ = ["law"]


def law(study: AdmissibleRegion) -> xarray.Dataset:
    """log10 of the largest omega over signal ratio, beta and kappa, and the smallest ratio for each omega."""
    from saltus.papers.sim.law import admissible
    from saltus.papers.sim.law.inequalities import JUST_ABOVE, K_MIN, KAPPA_MIN, bracket

    first = KAPPA_MIN * JUST_ABOVE
    top = max(1000.0, 1.2 * max(study.ratios))
    grid = np.exp(np.linspace(math.log(3.003), math.log(top), study.points))
    best = [admissible.best_ratio(s) for s in study.concepts]
    a = [admissible.geometric(s, R) for s, (R, _) in zip(study.concepts, best, strict=True)]
    beta = np.geomspace(JUST_ABOVE, max(100.0, *study.betas), study.points)
    kappa = np.linspace(first, max(2.0, *study.kappas), study.points)
    omega = -np.linspace(62.0, -study.closeness, 16)
    value = admissible.log10_omega_max

    def infimum(held: bool) -> Any:
        return [admissible.ratio_infimum(x, alpha_is_min=held) for x in omega]

    def alone(s: int, signals: Any) -> float:
        """D.4 with P = 2 and nothing else."""
        return math.log10(bracket(first) / (2.0 * K_MIN * s * signals[-1] / signals[0]))

    pairs = list(zip(study.concepts, a, strict=True))
    return xr.Dataset(
        {
            "searched": (
                ("concepts", "searched_ratio"),
                admissible.table(study.ratios, study.concepts),
            ),
            "searched_other_kappa": (
                ("concepts", "searched_ratio"),
                np.array(
                    [
                        [
                            float(value(admissible.geometric(s, R), kappa=study.kappas[0]))
                            for R in study.ratios
                        ]
                        for s in study.concepts
                    ]
                ),
            ),
            "beta_searched": ("searched_beta", value(a[0], np.asarray(study.betas))),
            "kappa_searched": (
                "searched_kappa",
                np.array([float(value(a[0], kappa=k)) for k in study.kappas]),
            ),
            "best_ratio": ("concepts", np.array([R for R, _ in best])),
            "best": ("concepts", np.array([x for _, x in best])),
            "without_D5": ("concepts", np.array([alone(s, x) for s, x in pairs])),
            "curve": (("concepts", "ratio"), admissible.table(grid.tolist(), study.concepts)),
            "by_beta": (("concepts", "beta"), np.stack([value(x, beta) for x in a])),
            "by_kappa": (
                ("concepts", "kappa"),
                np.array([[float(value(x, kappa=k)) for k in kappa] for x in a]),
            ),
            "infimum": ("log10_omega_asked", np.array(infimum(False))),
            "infimum_alpha_min": ("log10_omega_asked", np.array(infimum(True))),
        },
        coords={
            "concepts": list(study.concepts),
            "searched_ratio": list(study.ratios),
            "searched_beta": list(study.betas),
            "searched_kappa": list(study.kappas),
            "ratio": grid,
            "beta": beta,
            "kappa": kappa,
            "log10_omega_asked": omega,
        },
    )
