"""Lemmas D.1-D.8 of the two-layer theory held against random admissible starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from saltus._lazy import np, xr
from saltus.core import claim, stats
from saltus.core.errors import BadInput
from saltus.core.settings import setting
from saltus.core.study import study
from saltus.papers import sim
from saltus.papers.sim.studies import _lemma_claims, _lemma_runs
from saltus.papers.sim.studies._lemma_runs import DYNAMICS, Batch, label

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab
    from saltus.papers.sim.law.lemmas import LemmaReport

__all__ = ["Lemmas", "replay"]

BLOCK = 256


@study(
    "sim/lemmas",
    cites="yang2025dynamics",
    figure="Lemmas D.1-D.8",
    cost="5 min on two cores; --starts 64 gives a first look in half a minute",
    checks=(
        "every start tried satisfies D.1-D.5",
        "Cor D.1, D.1-D.8 and Cor D.2, one by one, hold at every step from every start, for the recursion",
        "the same for gradient descent on U",
        "Cor D.1 holds for both with P^2 for P",
        "what D.3 is short of is the fall of the weak diagonal to its Schur complement",
        "the starts from which the recursion leaves the PSD cone are those its linear phase names",
    ),
)
@dataclass(frozen=True)
class Lemmas:
    """Inside their own assumptions two of the theory's ten statements fail for GD on U, six for eq. D.2.

    Lemmas D.1-D.8 and corollaries D.1, D.2 as bounds, at every step and entry, from random starts that
    satisfy D.1-D.5, until every concept has been learnt. Cor D.1 is short of a factor P and always fails.
    D.3 fails because a weak diagonal falls to its Schur complement when a stronger one saturates. The
    recursion on W (eq. D.2) leaves the cone of PSD matrices, and D.1, D.5 (w_ii >= 0), Cor D.2 and D.7
    with it; gradient descent on U does not. The record holds every start, in full precision; to run the worst
    again:

        record = saltus.load(path)
        from saltus.papers.sim.studies.lemmas import replay
        print(replay(record, "1,18", "D.3", "gd").explain())
    """

    signals: tuple[tuple[float, ...], ...] = setting(
        ((1.0, 3.1), (1.0, 18.0), (1.0, 11.0, 121.0)), "signal strengths a, strongest last", above=0, high=1e6
    )
    starts: int = setting(1024, "random admissible starts of each set of signals", low=1, high=10**6)
    base: int = setting(0, "key that all starts share", low=0, high=2**32 - 1)
    beta: float = setting(1.5, "entries of W(0) are spread over a factor of this size", above=1, high=100)
    kappa: float = setting(1.1001, "the constant kappa", above=1.1, high=2)
    slack: float = setting(0.6, "decades below the largest admissible omega", low=0.5, high=100)
    cases: int = setting(64, "starts of each control", low=1, high=10**5)
    looks: int = setting(400, "points of the trajectory drawn", low=10, high=10**5)
    scale: str = setting(
        "default", "how many starts: default, or four times as many", choices=("default", "full")
    )

    presets: ClassVar = {"scale": {"full": {"starts": 4096}}}

    def check(self) -> None:
        if len(set(self.signals)) < len(self.signals):
            raise BadInput("signals holds the same set twice")
        for a in self.signals:
            if not 2 <= len(a) <= 4:
                raise BadInput(f"a set of signals has two to four strengths, not {len(a)}: {label(a)}")
            if any(a[i] <= 3 * a[j] for i in range(len(a)) for j in range(i)):
                raise BadInput(f"signals {label(a)}: each must exceed 3 times those before it (D.5)")

    def batch(self, a: tuple[float, ...]) -> Batch:
        return _lemma_runs.batch(
            a, self.starts, beta=self.beta, kappa=self.kappa, slack=self.slack, base=self.base
        )

    def run(self, lab: Lab) -> xarray.Dataset:
        axes, batches = max(len(a) for a in self.signals), [self.batch(a) for a in self.signals]
        work = [b.steps * len(b.W0) for b in batches]
        found = []
        with lab.progress("lemmas") as tick:
            for k, (a, b) in enumerate(zip(self.signals, batches, strict=True)):

                def done(n: int, k: int = k, steps: int = b.steps) -> None:
                    tick(sum(work[:k]) + n * steps, sum(work))

                found.append(xr.merge([_lemma_runs.starts_of(b, axes), self.hold(lab, a, b, done)]))
        data = xr.concat(found, "signals").assign_coords(signals=[label(a) for a in self.signals])
        control = lab.keep("controls", lambda: _lemma_runs.controls(batches[0], self.cases))
        return xr.merge([data, control, lab.keep("trajectory", lambda: self.trajectory(data, batches))])

    def hold(self, lab: Lab, a: tuple[float, ...], b: Batch, done: Callable[[int], None]) -> xarray.Dataset:
        """All starts of one set of signals, in parts of `BLOCK`."""
        names = list(sim.law.lemmas.BOUNDS)
        blocks = []
        for begin in range(0, self.starts, BLOCK):
            some = Batch(b.a, b.W0[begin : begin + BLOCK], b.constants, b.eta, b.steps)

            def one(some: Batch = some) -> xarray.Dataset:
                both = _lemma_runs.hold(some)
                dims = ("dynamics", "bound", "start")
                return xr.Dataset(
                    {
                        "excess": (dims, both["excess"], {"long_name": "ln of seen over allowed, the worst"}),
                        "first": (dims, both["first"], {"long_name": "first step over the bound, -1 never"}),
                        "entry": (
                            (*dims, "which"),
                            both["entry"],
                            {"long_name": "its row and column, from 1"},
                        ),
                        "stopped": (
                            ("dynamics", "start"),
                            both["stopped"],
                            {"long_name": "step an entry passed 1e6, -1 never"},
                        ),
                    },
                    coords={"dynamics": list(DYNAMICS), "bound": names},
                )

            blocks.append(lab.keep(f"{label(a)} from {begin}", one))
            done(min(begin + BLOCK, self.starts))
        return xr.concat(blocks, "start")

    def trajectory(self, data: xarray.Dataset, batches: list[Batch]) -> xarray.Dataset:
        """`path` [dynamics, look]: w_11 of the start with which the recursion leaves the cone soonest."""
        left = data["first"].sel(dynamics="recursion", bound="D.5 lower")
        last = left.where(left >= 0, np.inf).argmin(("signals", "start"))
        where = {d: int(v) for d, v in last.items()}
        b = batches[where["signals"]]
        W0 = b.W0[where["start"]]
        saturated = -np.log(W0[-1, -1]) / (2.0 * b.a[-1] * b.eta)
        end = np.linspace(0, b.steps, self.looks // 2)
        at = np.unique(np.round(np.concatenate([np.linspace(0, 3 * saturated, self.looks // 2), end])))
        paths = [_lemma_runs.path(b, W0, dynamics, at.astype(int)) for dynamics in DYNAMICS]
        weak = np.stack([p[:, 0, 0] for p in paths])
        return xr.Dataset(
            {
                "path": (("dynamics", "look"), weak, {"long_name": "w_11 of one start"}),
                "look_step": ("look", at, {"long_name": "step"}),
                "shown_signals": ((), where["signals"], {"long_name": "its set of signals"}),
                "shown_start": ((), where["start"], {"long_name": "its number"}),
            },
            coords={"dynamics": list(DYNAMICS)},
        )

    def law(self, record: xarray.Dataset) -> xarray.Dataset:
        """What is predicted of each start, `shortfall` and `doomed`; the table of shares; D.3's bound."""
        from saltus.papers.sim.studies import _lemma_law

        return _lemma_law.law(record)

    def claims(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        ok = record.admissible.values
        yield claim.above(
            "starts-admissible",
            "every start tried satisfies D.1-D.5 as printed (share; passed only if all do)",
            stats.share(ok),
            _lemma_claims.all_of(ok.size),
            control=("with 8 decades added to omega", stats.share(self.enlarged(record))),
        )
        yield from _lemma_claims.claims(record, law)

    def enlarged(self, record: xarray.Dataset) -> Any:
        """Whether each start is still admissible when it is 10^8 times larger."""
        from saltus.papers.sim.law import admissible

        found = []
        for k in range(record.sizes["signals"]):
            one = record.isel(signals=k)
            d = int(np.isfinite(one.a.values).sum())
            W = 1e8 * one.W0.values[:, :d, :d]
            found.append(admissible.is_admissible(one.a.values[:d], W, float(one.eta)))
        return np.concatenate(found)

    def draw(self, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
        from saltus.papers.sim.studies import _lemma_pictures

        return _lemma_pictures.sheet(self, record, law)


def replay(
    record: xarray.Dataset, signals: str, bound: str, dynamics: str, start: int | None = None
) -> LemmaReport:
    """Run one start of a record again: the one on which `bound` came out worst, unless `start` says which.

    - `record`: of this study; `signals`: as in its coordinate, "1,18"; `dynamics`: "recursion" or "gd".
    """
    for name, value in (("signals", signals), ("bound", bound), ("dynamics", dynamics)):
        if value not in record[name].values:
            raise BadInput(f"{name} is one of {'; '.join(map(str, record[name].values))}, not {value!r}")
    one = record.sel(signals=signals)
    d = int(np.isfinite(one.a.values).sum())
    excess = one.excess.sel(bound=bound, dynamics=dynamics).values
    k = int(np.nanargmax(excess)) if start is None else start
    return sim.law.lemmas.check(
        one.a.values[:d],
        one.W0.values[k, :d, :d],
        float(one.eta),
        _lemma_runs.constants_of(one),
        int(one.steps),
        "gd" if dynamics == "gd" else "recursion",
    )
