"""The lemmas of appendix D.2 held against many starts at once: which bounds break, by how much, when."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from saltus._lazy import jax, jnp, np, xr
from saltus.core.errors import BadInput
from saltus.papers import sim

if TYPE_CHECKING:
    import xarray

    from saltus.papers.sim.law.inequalities import Constants
    from saltus.papers.sim.law.lemmas import LemmaReport

__all__ = [
    "CONSTANTS",
    "CONTROLS",
    "DYNAMICS",
    "Batch",
    "batch",
    "constants_of",
    "controls",
    "hold",
    "label",
    "path",
    "starts_of",
]

DYNAMICS = ("recursion", "gd")
CONSTANTS = ("alpha", "gamma", "beta", "ln_omega", "K", "ln_P", "kappa", "C")
CONTROLS = ("kappa", "step", "signals")
CHUNK = 64
FIGURE5 = (0.5025, 1.1275)


@dataclass(frozen=True)
class Batch:
    """Starts W(0) [n, d, d] of one set of signals, the constants they share, the step, and how many steps."""

    a: Any
    W0: Any
    constants: Constants
    eta: float
    steps: int


def label(a: Sequence[float]) -> str:
    """`1,18`."""
    return ",".join(f"{x:.6g}" for x in a)


def batch(a: Sequence[float], n: int, *, beta: float, kappa: float, slack: float, base: int) -> Batch:
    """Random admissible starts, at the largest step of assumption D.2, run past the end of learning."""
    from saltus.papers.sim.law import admissible

    signals = np.asarray(a, float)
    limit = float(admissible.log10_omega_max(signals, beta, kappa=kappa)) - slack
    if limit < -149:
        raise BadInput(
            f"signals {label(a)}: admissible starts are 1e{limit:.0f}; float64 loses their products below "
            "1e-149; try a smaller kappa, beta or slack, or ratios near 10"
        )
    W0 = admissible.random_starts(signals, n, beta=beta, kappa=kappa, slack=slack, seed=base)
    c = sim.law.assumptions.shared_constants(signals, W0, kappa=kappa)
    eta = 0.999 * c.eta_max
    return Batch(signals, W0, c, eta, sim.law.lemmas.steps_to_learn(signals, W0, eta))


def hold(b: Batch) -> dict[str, Any]:
    """Every bound at every step, both dynamics: `excess`, `first` [dynamics, bound, n], `entry`, `stopped`.

    Chunks of fixed size, one to a device at a time, so that results do not depend on how many there are.
    """
    from saltus._jax import workers

    devices, n = workers(), len(b.W0)
    chunks = [np.arange(k, k + CHUNK) % n for k in range(0, n, CHUNK)]
    jobs = [(dynamics, chunk) for dynamics in DYNAMICS for chunk in chunks]

    def one(k: int) -> LemmaReport:
        dynamics, chunk = jobs[k]
        with jax.default_device(devices[k % len(devices)]):
            return sim.law.lemmas.check(
                b.a, b.W0[chunk], b.eta, b.constants, b.steps, "gd" if dynamics == "gd" else "recursion"
            )

    with ThreadPoolExecutor(len(devices)) as pool:
        reports = list(pool.map(one, range(len(jobs))))

    def joined(part: Callable[[LemmaReport], Any]) -> Any:
        """[chunk, start, ...] of each dynamics, end to end, without the starts that filled the last chunk."""
        own = [[part(r) for r in reports if r.dynamics == dynamics] for dynamics in DYNAMICS]
        return np.stack([np.concatenate(parts)[:n] for parts in own])

    def bounds(name: str) -> Any:
        found = joined(lambda r: np.stack([getattr(x, name) for x in r.bounds.values()], axis=1))
        return np.moveaxis(found, 2, 1)

    return {
        "excess": bounds("worst"),
        "first": bounds("first"),
        "entry": bounds("entry"),
        "stopped": joined(lambda r: r.stopped),
    }


def controls(b: Batch, n: int) -> xarray.Dataset:
    """`control_violated` [control, dynamics, bound, case]: the same bounds where assumptions are broken.

    - "kappa": the first starts with 1/kappa for kappa, until the strongest axis has saturated;
    - "step": the same with a step of 1.2/max a, hundreds of times what D.2 allows;
    - "signals": the signals of figure 5, omega = 1e-6, and the largest P that D.4 allows.
    """
    from saltus.papers.sim.law import inequalities

    case = np.arange(n) % len(b.W0)
    strong = float(b.a[-1])
    ln_omega = float(np.log(np.abs(b.W0)).min())
    soon = math.ceil(1.3 * -ln_omega / (2.0 * strong * b.eta))
    overshoot = 1.2 / strong
    a5 = np.array(FIGURE5)
    W5 = 1e-6 * np.abs(b.W0[case][:, -2:, -2:]) / math.exp(ln_omega)
    c5 = sim.law.assumptions.shared_constants(a5, W5, kappa=b.constants.kappa)
    rho = inequalities.pair_gap(a5)[0]
    free = inequalities.window(rho, 2, c5.gamma, c5.beta, c5.ln_omega, c5.K, c5.kappa)
    c5 = replace(c5, ln_P=free.x_hi)
    eta5 = 0.999 * c5.eta_max
    cases = {
        "kappa": replace(
            b, W0=b.W0[case], constants=replace(b.constants, kappa=1 / b.constants.kappa), steps=soon
        ),
        "step": Batch(b.a, b.W0[case], b.constants, overshoot, math.ceil(-2.0 * ln_omega / math.log(3.4))),
        "signals": Batch(a5, W5, c5, eta5, sim.law.lemmas.steps_to_learn(a5, W5, eta5)),
    }
    violated = [hold(cases[name])["first"] >= 0 for name in CONTROLS]
    return xr.Dataset(
        {"control_violated": (("control", "dynamics", "bound", "case"), np.array(violated))},
        coords={"control": list(CONTROLS), "dynamics": list(DYNAMICS), "bound": list(sim.law.lemmas.BOUNDS)},
    )


def starts_of(b: Batch, axes: int) -> xarray.Dataset:
    """What was put in, padded with NaN to `axes`: enough, in full precision, to run any start again."""
    from saltus.papers.sim.law.inequalities import failing, margins

    n, d = len(b.W0), len(b.a)
    W0, a = np.full((n, axes, axes), np.nan), np.full(axes, np.nan)
    W0[:, :d, :d], a[:d] = b.W0, b.a
    ok = [not failing(margins(b.a, np.log(np.abs(w)), b.eta, b.constants)) for w in b.W0]
    scalars = {name: ((), float(getattr(b.constants, name))) for name in CONSTANTS}
    return xr.Dataset(
        {
            "a": ("axis", a, {"long_name": "signal strengths, strongest last"}),
            "W0": (("start", "row", "column"), W0, {"long_name": "start"}),
            "admissible": ("start", np.array(ok), {"long_name": "D.1-D.5 hold as printed"}),
            "eta": ((), b.eta, {"long_name": "step"}),
            "steps": ((), b.steps, {"long_name": "steps run"}),
            **scalars,
        }
    )


def constants_of(record: xarray.Dataset) -> Constants:
    """The constants of one set of signals, back from a record."""
    from saltus.papers.sim.law.inequalities import Constants

    return Constants(*(float(record[name]) for name in CONSTANTS))


def _segment(dynamics: str) -> Any:
    """Steps t0 to t1 of one run, compiled; a run past 1e6 stays where it was."""
    from saltus.papers.sim.law import unrolled

    step = unrolled.gd if dynamics == "gd" else unrolled.recursion

    def advance(w: Any, a: Any, eta: Any, count: Any) -> Any:
        def one(_: Any, w: Any) -> Any:
            new = step(w, a, eta)
            alive = jnp.max(jnp.abs(jnp.stack(new))) <= 1e6
            return tuple(jnp.where(alive, x, y) for x, y in zip(new, w, strict=True))

        return jax.lax.fori_loop(0, count, one, w)

    return jax.jit(advance)


def path(b: Batch, W0: Any, dynamics: str, at: Any) -> Any:
    """W [step, d, d] of one start at the steps `at`, increasing from 0."""
    from saltus.papers.sim.law import unrolled

    advance, w, seen = _segment(dynamics), unrolled.pack(jnp.asarray(W0[None])), []
    for count in np.diff(at, prepend=0):
        w = advance(w, jnp.asarray(b.a), jnp.asarray(b.eta), jnp.asarray(count))
        seen.append(np.asarray(unrolled.unpack(w))[0])
    return np.stack(seen)
