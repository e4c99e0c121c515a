"""The theory of `features/patches`, with equal classes and orthogonal noises."""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from saltus._lazy import np, xr
from saltus.papers.features.studies._patches import GROUPS

if TYPE_CHECKING:
    import xarray

    from saltus.papers.features.many import ManyPatch
    from saltus.papers.features.studies.patches import Patches


def at_rest(study: Patches, world: ManyPatch) -> Any:
    """Products solved for [feature..., noise], the classes of a feature being equal."""
    from saltus.papers.features.law import stationary

    alpha, beta = study.noise()
    held = [sum(h) / world.n / 2 for h in world.holders()]
    features = 2 * len(world.mu)
    omega = np.full(world.distinct, 1 / world.n)
    omega[:features] = np.repeat(held, 2)
    size = np.full(world.distinct, world.sigma_xi**2 * world.d)
    size[:features] = np.repeat(np.square(world.mu), 2)
    a = stationary.solve(omega, np.diag(size), study.m, alpha, beta).a
    return np.append(a[:features:2], a[-1])


def largest_of(m: int) -> float:
    """The median of the largest of m |N(0, 1)|."""
    return NormalDist().inv_cdf((1 + 0.5 ** (1 / m)) / 2)


def classifier_ratio(strength: Any, length: Any, start: float) -> Any:
    """Largest product of a feature over the common one's when that reaches 1.

    While |l'| = 1/2 products grow as exp(lambda k) with lambda proportional to omega |x|^2, from sigma0 |x|
    times the largest of m Gaussians: `start` for the common feature. Once that is at 1, a feature of relative
    `strength` (of omega |x|^2) and `length` (of |x|) is at length start^(1 - strength).
    """
    return np.asarray(length) * start ** (1 - np.asarray(strength))


def law(study: Patches) -> xarray.Dataset:
    strength = [study.strength(s) for s in study.shares]
    rest = np.stack([at_rest(study, study.three(s)) for s in study.shares])
    fine = np.geomspace(0.5 * min(strength), 1, 40)
    start = study.sigma0 * study.mu * largest_of(study.m)
    many = [at_rest(study, study.equal(k)) for k in study.counts]
    chi = study.n * study.mu**2 / (study.sigma_xi**2 * study.d)
    data = xr.Dataset(
        {
            "rest": (("strength", "group"), rest / rest[:, :1]),
            "early": ("fine", fine),
            "classifier_rare": ("fine", classifier_ratio(fine, 1.0, start)),
            "classifier_weak": ("fine", classifier_ratio(fine, fine**0.5, start)),
            "reached_rare": ("strength", classifier_ratio(strength, 1.0, start)),
            "reached_weak": ("strength", classifier_ratio(strength, np.sqrt(strength), start)),
            "many_rest": ("count", [a[0] / a[-1] for a in many]),
            "many_early": ((), chi / 2),
        },
        coords={
            "strength": strength,
            "fine": fine,
            "count": list(study.counts),
            "group": list(GROUPS),
        },
    )
    for name, words in (
        ("rest", "product at the stationary point over the common feature's"),
        ("early", "product over the common feature's in the first stage"),
        ("classifier_rare", "classifier: the same for a rare feature when the common one's is 1"),
        ("classifier_weak", "classifier: the same for a weak feature"),
        ("reached_rare", "the same at the strengths trained"),
        ("reached_weak", "the same at the strengths trained"),
        ("many_rest", "feature over noise at the stationary point"),
        ("many_early", "n SNR^2 / 2: feature over noise in the first stage"),
    ):
        data[name].attrs.update(long_name=words, units="1")
    return data
