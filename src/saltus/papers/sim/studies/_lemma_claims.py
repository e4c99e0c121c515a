"""One claim a lemma and dynamics, each with the setting where it must fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from saltus._lazy import np
from saltus.core import claim, stats
from saltus.papers import sim
from saltus.papers.sim.studies._lemma_law import REPAIRED

if TYPE_CHECKING:
    import xarray

    from saltus.core.claim import Claim

__all__ = ["all_of", "claims"]

# Lemma: the bounds that it is made of, and the control in which it must fail.
LEMMAS = {
    "Cor D.1": (("Cor D.1",), "factor"),
    "Cor D.1 repaired": ((REPAIRED,), "printed"),
    "D.1": (("D.1",), "kappa"),
    "D.2": (("D.2", "D.2 phase"), "kappa"),
    "D.3": (("D.3", "D.3 phase"), "kappa"),
    "D.4": (("D.4",), "kappa"),
    "D.5 lower": (("D.5 lower",), "step"),
    "D.5 upper": (("D.5 upper",), "step"),
    "Cor D.2": (("Cor D.2",), "step"),
    "D.6": (("D.6",), "step"),
    "D.7": (("D.7",), "signals"),
    "D.8": (("D.8",), "signals"),
}
NAMES = {"recursion": "recursion D.2 on W", "gd": "gradient descent on U"}
BROKEN = {
    "kappa": "with 1/kappa for kappa",
    "step": "with steps of 1.2/max a, far above D.2's",
    "signals": "signals of Fig. 5, omega = 1e-6, D.5 broken",
    "factor": "tightened by another factor P",
    "printed": "as printed, with P",
}
# What was found to fail, and why.
FAILS = {
    "recursion": {
        "Cor D.1": "the products |w_ki w_kj| reach (P beta omega)^2: the bound is short of a factor P",
        "D.1": "past the PSD cone suppression has changed sign, and w outgrows its bound",
        "D.3": "w_11 falls to its Schur complement, or below zero, when a stronger axis saturates",
        "D.5 lower": "the recursion drops eta^2 M W M of gradient descent and leaves the PSD cone",
        "Cor D.2": "a negative w_ii runs away, doubling at rate 2 a_i",
        "D.7": "where signals are close the run-away of w_11 takes the off-diagonal entries with it",
    },
    "gd": {
        "Cor D.1": "the products |w_ki w_kj| reach (P beta omega)^2: the bound is short of a factor P",
        "D.3": "w_11 falls to its Schur complement when a stronger axis saturates",
    },
}


def none_of(n: int) -> float:
    """The upper end of the interval that no violation in n starts leaves: passed only if there is none."""
    return stats.share_of(0, n).high


def all_of(n: int) -> float:
    """Its mirror: the lower end if all of n starts comply."""
    return stats.share_of(n, n).low


def claims(record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
    """Lemma by lemma for both dynamics, then the two predictions of which starts fail."""
    for dynamics in NAMES:
        for lemma in LEMMAS:
            yield _lemma(record, law, lemma, dynamics)
    yield from _predictions(record, law)


def _lemma(record: xarray.Dataset, law: xarray.Dataset, lemma: str, dynamics: str) -> Claim:
    bounds, broken = LEMMAS[lemma]
    mine = law.sel(dynamics=dynamics, bound=list(bounds))
    violated = mine.violated.any("bound")
    reason = FAILS[dynamics].get(lemma, "")
    by = ", ".join(
        f"{float(v):.0%} at a = {s}" for s, v in zip(law.signals.values, violated.mean("start"), strict=True)
    )
    if reason:
        earliest = float(mine.earliest.min())
        reason += f"; violated by {by}" + (f"; first at step {earliest:.0f}" if np.isfinite(earliest) else "")
    statement = (
        sim.law.lemmas.BOUNDS[bounds[0]] if lemma != "Cor D.1 repaired" else "|N_ij| <= 2 P^2 gamma ..."
    )
    name = lemma.lower().replace(" ", "-").replace(".", "")
    return claim.below(
        f"{name}-{dynamics}",
        f"{lemma} holds at every step from every start, {NAMES[dynamics]}: {statement} (share of "
        "starts violating it; passed only if none does)",
        stats.share(violated.values),
        none_of(violated.size),
        control=(_words(lemma, dynamics, broken), _control(record, law, lemma, dynamics)),
        expected=not reason,
        because=reason,
    )


def _words(lemma: str, dynamics: str, broken: str) -> str:
    if (lemma, dynamics) == ("D.5 lower", "gd"):
        return "the recursion from the same starts"
    return BROKEN[broken]


def _control(record: xarray.Dataset, law: xarray.Dataset, lemma: str, dynamics: str) -> stats.Estimate:
    """The share violating the same bounds where it must be large."""
    bounds, broken = LEMMAS[lemma]
    if (lemma, dynamics) == ("D.5 lower", "gd"):
        # W = U U^T cannot leave the cone whatever the step.
        return stats.share(law.violated.sel(dynamics="recursion", bound="D.5 lower").values)
    if broken == "printed":
        return stats.share(law.violated.sel(dynamics=dynamics, bound="Cor D.1").values)
    if broken == "factor":
        tight = record.excess.sel(dynamics=dynamics, bound="Cor D.1") + record.ln_P
        return stats.share((tight > 0).values)
    found = record.control_violated.sel(control=broken, dynamics=dynamics, bound=list(bounds))
    return stats.share(found.any("bound").values)


def _predictions(record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
    """Theory of the failures against the failures; two axes only, where it is a closed form."""
    pair = law.shortfall.notnull().all("start")
    if not bool(pair.any()):
        return
    pairs = pair.values
    said = law.shortfall.values[pairs]
    seen = np.maximum(record.excess.sel(dynamics="gd", bound="D.3").values[pairs], 0.0)
    falls = (said > 0) | (seen > 0)
    yield claim.below(
        "d3-is-schur",
        "what D.3 is short of under gradient descent is the Schur complement's fall (gap in ln w, median)",
        stats.median(np.abs(said - seen)[falls]),
        0.05,
        control=(
            "predicted from another start",
            stats.median(np.abs(np.roll(said, 1, axis=1) - seen)[falls]),
        ),
    )
    doomed = law.doomed.values[pairs]
    left = law.violated.sel(dynamics="recursion", bound="D.5 lower").values[pairs]
    yield claim.above(
        "cone-is-linear-phase",
        "the starts that leave the PSD cone are those the recursion's linear phase predicts (share agreeing)",
        stats.share(doomed == left),
        0.9,
        control=("predicted from another start", stats.share(np.roll(doomed, 1, axis=1) == left)),
    )
