"""Assumptions D.1-D.5 put to the paper's own figures, to random starts, and to a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from saltus._lazy import np, xr
from saltus.papers import sim

if TYPE_CHECKING:
    import xarray

__all__ = [
    "FAILING",
    "Setting",
    "figures",
    "inside_and_above",
    "searches",
    "settings",
    "shares",
    "unit_starts",
]

FAILING = ("D.2 step", "D.3-D.5 no P", "D.5 three-fold")
MOST = 8


@dataclass(frozen=True)
class Setting:
    """A figure's signals [axis] in ascending order, its step, and the size of U(0)."""

    name: str
    a: tuple[float, ...]
    eta: float
    scale: float


def settings(drawn: bool, eta: float, lr: float, scale: float) -> list[Setting]:
    """The settings of the paper's figures on their concept axes (App. F).

    - `drawn`: whether as their code has them: the theory's figures integrate with A squared; the data have
      sigma as the variance and a cluster at the origin; the step is 0.2/d on the paper's loss.
    """
    theory: dict[str, tuple[tuple[float, ...], Any]] = {
        "fig5": ((1.0, 1.5), 0.05),
        "fig8": ((1.0, 1.5, 2.2), 0.05),
        "fig9": ((1.0, 1.5, 2.2, 2.7), (0.05, 0.05, 0.05, 0.5)),
        "fig10": ((0.7, 1.7, 3.0), 0.05),
    }
    sampled: dict[str, tuple[tuple[float, ...], Any]] = {
        "fig2": ((1.0, 2.0), 0.05),
        "fig7": ((1.0, 2.0, 3.0, 4.0), 0.5),
        "fig14": ((2.0, 4.0), 0.05),
    }
    found = []
    for name, (mu, sigma) in {**theory, **sampled}.items():
        if name in theory:
            a = sim.World(mu, sigma, dim=len(mu)).second_moment()
            a, step = (a**2 if drawn else a), eta
            size = 2.0 * scale if drawn and name == "fig5" else scale
        else:
            world = sim.World.reading("as-drawn" if drawn else "as-written", mu, sigma, dim=len(mu))
            a, step, size = world.second_moment(), (0.2 / 64 if drawn else lr), scale
        found.append(Setting(name, tuple(np.sort(a).tolist()), step, size))
    return sorted(found, key=lambda s: int(s.name[3:]))


def unit_starts(base: int, n: int, d: int) -> Any:
    """W = U U^T with U [d, d] uniform on (0, 1), run k from its own key; [n, d, d]."""
    from saltus.papers.sim import symmetric

    # A block of one draw for every d.
    U = symmetric.starts(n, MOST, scale=1.0, base=base)[:, :d, :d]
    return U @ U.transpose(0, 2, 1)


def _size(W: Any) -> tuple[Any, Any]:
    """omega and beta of each start."""
    sizes = np.abs(W).reshape(len(W), -1)
    return sizes.min(1), sizes.max(1) / sizes.min(1)


def _best(d: int, beta: Any) -> Any:
    """log10 of the largest omega that any geometric signals on d axes admit, for each unevenness beta."""
    from saltus.papers.sim.law import admissible

    ratios = np.geomspace(3.02, 300.0, 100)
    return np.max([admissible.log10_omega_max(admissible.geometric(d, R), beta) for R in ratios], axis=0)


def figures(chosen: Sequence[Setting], base: int, seeds: int, looked: int) -> xarray.Dataset:
    """The checker at the starts of every figure: `admissible` [figure, seed], and why not [figure, look].

    `short_of_P`, `step_over`, `omega_over` in decades (positive: fails); `omega_over` is measured from the
    largest omega that any signals on as many axes admit, as most figures' own admit none.
    """
    law = sim.law.assumptions
    from saltus.papers.sim.law import admissible

    axes = max(len(s.a) for s in chosen)
    a = np.full((len(chosen), axes), np.nan)
    ok = np.zeros((len(chosen), seeds), bool)
    wide = np.zeros((len(chosen), seeds), bool)
    fails = np.zeros((len(chosen), looked, len(FAILING)), bool)
    short, over, step, omega = (np.zeros((len(chosen), looked)) for _ in range(4))
    for k, s in enumerate(chosen):
        d = len(s.a)
        a[k, :d] = s.a
        W = s.scale**2 * unit_starts(base, max(seeds, looked), d)
        ok[k] = admissible.is_admissible(np.array(s.a), W[:seeds], s.eta)
        # The same starts in a space with one more dimension, on which the data have no signal.
        padded = np.zeros((seeds, d + 1, d + 1))
        padded[:, :d, :d] = W[:seeds]
        wide[k] = admissible.is_admissible(np.array([*s.a, 0.0]), padded, s.eta)
        least, beta = _size(W[:looked])
        omega[k] = np.log10(least)
        over[k] = omega[k] - _best(d, beta)
        for j in range(looked):
            found = law.decide(np.array(s.a), W[j], s.eta)
            assert found.window is not None
            short[k, j], step[k, j] = -found.window.decades, -found.margins["D.2"]
            fails[k, j] = (step[k, j] > 0, short[k, j] > 0, found.margins["D.5 gap"] < 0)
    two, three = ("figure", "look"), ("figure", "look", "failing")
    return xr.Dataset(
        {
            "a": (("figure", "axis"), a, {"long_name": "signal strengths, ascending"}),
            "eta": ("figure", [s.eta for s in chosen], {"long_name": "step"}),
            "admissible": (("figure", "seed"), ok, {"long_name": "D.1-D.5 hold for some constants"}),
            "admissible_wide": (("figure", "seed"), wide, {"long_name": "the same with d = s + 1"}),
            "fails": (three, fails, {"long_name": "what fails"}),
            "short_of_P": (two, short, {"long_name": "missing width of ln P", "units": "decades"}),
            "step_over": (two, step, {"long_name": "step over the largest of D.2", "units": "decades"}),
            "omega_over": (two, over, {"long_name": "omega over the largest for any a", "units": "decades"}),
            "log10_omega": (two, omega, {"long_name": "smallest entry of W(0)", "units": "decades"}),
        },
        coords={"figure": [s.name for s in chosen], "failing": list(FAILING)},
    )


def searches(
    concepts: Sequence[int], ratios: Sequence[float], betas: Sequence[float], kappas: Sequence[float]
) -> xarray.Dataset:
    """log10 of the largest omega by brute force on the printed inequalities.

    `searched` [concepts, searched_ratio]; at the best ratio of the fewest concepts also `beta_searched`,
    `kappa_searched` (constants held there) and `best_searched`.
    """
    from saltus.papers.sim.law import admissible

    best = admissible.geometric(concepts[0], admissible.best_ratio(concepts[0])[0])
    table = [
        [admissible.log10_omega_search(admissible.geometric(s, R), decades=400.0) for R in ratios]
        for s in concepts
    ]
    by_beta = [admissible.log10_omega_search(best, b) for b in betas]
    by_kappa = [
        admissible.log10_omega_search(best, kappa=(k,), C=(1.001, 5.0), decades=300.0) for k in kappas
    ]
    name = {"long_name": "largest admissible log10 omega, by search", "units": "decades"}
    return xr.Dataset(
        {
            "searched": (("concepts", "searched_ratio"), np.array(table), name),
            "beta_searched": ("searched_beta", np.array(by_beta), name),
            "kappa_searched": ("searched_kappa", np.array(by_kappa), name),
            "best_searched": ((), admissible.log10_omega_search(best), name),
        },
        coords={
            "concepts": list(concepts),
            "searched_ratio": list(ratios),
            "searched_beta": list(betas),
            "searched_kappa": list(kappas),
        },
    )


def shares(concepts: Sequence[int], decades: Any, base: int, seeds: int) -> xarray.Dataset:
    """Which random starts are admissible at which scale of U: `held` [concepts, scale, seed].

    Signals are the best there are, and the step is always as small as D.2 asks.
    """
    from saltus.papers.sim.law import admissible

    held = np.zeros((len(concepts), len(decades), seeds), bool)
    for k, s in enumerate(concepts):
        a = admissible.geometric(s, admissible.best_ratio(s)[0])
        W = unit_starts(base, seeds, s)
        for j, decade in enumerate(decades):
            held[k, j] = admissible.is_admissible(a, 10.0 ** (2.0 * decade) * W, 0.999 / (180.0 * a[-1]))
    name = {"long_name": "D.1-D.5 hold for some constants"}
    return xr.Dataset(
        {"held": (("concepts", "log10_scale", "seed"), held, name)},
        coords={"concepts": list(concepts), "log10_scale": np.asarray(decades, float)},
    )


def inside_and_above(
    concepts: Sequence[int], base: int, looked: int, inside: float, above: float
) -> xarray.Dataset:
    """D.1-D.5 as printed, at random starts `inside` decades below their own limit and `above` over it.

    `inside_holds`, `above_holds`, `descending_holds`, `wide_holds` [concepts, look]: the third is the first
    with the signals in descending order, the fourth with a dimension without signal.
    """
    decide = sim.law.assumptions.decide
    from saltus.papers.sim.law import admissible

    names = ("inside_holds", "above_holds", "descending_holds", "wide_holds")
    found = {name: np.zeros((len(concepts), looked), bool) for name in names}
    for k, s in enumerate(concepts):
        a = admissible.geometric(s, admissible.best_ratio(s)[0])
        eta, W = 0.999 / (180.0 * a[-1]), unit_starts(base, looked, s)
        least, beta = _size(W)
        limit = admissible.log10_omega_max(a, beta)
        for j in range(looked):
            small = W[j] / least[j] * 10.0 ** (limit[j] - inside)
            wide = np.zeros((s + 1, s + 1))
            wide[:s, :s] = small
            cases = (
                (a, small),
                (a, small * 10.0 ** (inside + above)),
                (a[::-1], small[::-1, ::-1]),
                (np.append(a, 0.0), wide),
            )
            for name, (signals, start) in zip(names, cases, strict=True):
                found[name][k, j] = decide(signals, start, eta).admissible
    return xr.Dataset(
        {n: (("concepts", "look"), v, {"long_name": "D.1-D.5 hold as printed"}) for n, v in found.items()},
        coords={"concepts": list(concepts)},
    )
