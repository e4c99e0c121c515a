"""Which starts break lemma D.3 and which leave the PSD cone, from the start alone; and the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from saltus._lazy import np, xr
from saltus.core import stats

if TYPE_CHECKING:
    import xarray

__all__ = ["REPAIRED", "d3_bound", "law", "shortfall"]

REPAIRED = "Cor D.1, P²"
ROUNDING = 1e-8


def shortfall(a: Any, W0: Any, eta: float, kappa: float) -> Any:
    """By how much lemma D.3 misses w_11 of two axes, in ln w; 0 where it holds.

    While both are small each grows as it would alone. As the strong axis saturates, x = e^{2 a_s t} w_22(0),
    the weak diagonal becomes w_11 (1 - rho^2 x/(1+x)), rho^2 = w_12^2/(w_11 w_22) of the start: in the end
    its Schur complement. D.3 allows (1 - 1/kappa) of the growth until then.

    - `a`: (weak, strong); `W0`: starts [n, 2, 2]; one per start is returned.
    """
    weak, strong = np.asarray(a, float)
    own, off, other = W0[:, 0, 0, None], W0[:, 0, 1, None], W0[:, 1, 1, None]
    # Divided first: the entries' products underflow.
    rho2 = (off / own) * (off / other)
    ln_x = np.linspace(-10.0, 60.0, 1401)
    # Growth per step of gradient descent, 2 ln(1 + eta a), against the bound's 2 eta a / kappa.
    steps = (ln_x - np.log(other)) / (2.0 * np.log1p(eta * strong))
    allowed = steps * (2.0 * np.log1p(eta * weak) - 2.0 * eta * weak / kappa)
    missing = -np.log1p(-rho2 / (1.0 + np.exp(-ln_x))) - allowed
    return np.maximum(missing.max(axis=1), 0.0)


def d3_bound(record: xarray.Dataset) -> tuple[Any, Any]:
    """ln of the lower bound of lemma D.3 on w_11 of the start shown, at the looks, NaN past T_1^(1)."""
    one = record.isel(signals=int(record.shown_signals))
    a, w = float(one.a[0]), float(one.W0[int(record.shown_start), 0, 0])
    t, rate = record.look_step.values, 2.0 * float(one.eta) * a / float(one.kappa)
    end = (float(one.ln_P) + np.log(float(one.beta)) + float(one.ln_omega) - np.log(w)) / rate
    return np.where(t <= end, np.log(w) + rate * t, np.nan), end


def table(record: xarray.Dataset) -> xarray.Dataset:
    """Share of starts violating each bound with its Wilson interval, worst excess, and first step of all."""
    excess = record.excess.sel(bound="Cor D.1") - record.ln_P
    repaired = (excess > ROUNDING).expand_dims(bound=[REPAIRED])
    violated = xr.concat([record["first"] >= 0, repaired], "bound").transpose(
        "signals", "dynamics", "bound", "start"
    )
    worst = xr.concat([record.excess, excess.expand_dims(bound=[REPAIRED])], "bound").max("start")
    steps = record["first"].where(record["first"] >= 0).min("start").reindex(bound=violated.bound)
    found = np.apply_along_axis(
        lambda v: [(e := stats.share(v)).value, e.low, e.high], -1, violated.values.astype(bool)
    )
    dims = ("signals", "dynamics", "bound")
    return xr.Dataset(
        {
            "violated": violated,
            "share": (dims, found[..., 0], {"long_name": "share of starts violating"}),
            "share_low": (dims, found[..., 1]),
            "share_high": (dims, found[..., 2]),
            "worst": worst.assign_attrs(long_name="worst excess, ln"),
            "earliest": steps.assign_attrs(long_name="first step of violation over all starts"),
        },
        coords={"signals": record.signals, "dynamics": record.dynamics, "bound": violated.bound},
    )


def law(record: xarray.Dataset) -> xarray.Dataset:
    """Predictions per start beside the table of what happened."""
    from saltus.papers.sim.law import cone

    n = record.sizes["start"]
    short, doomed = (
        np.full((record.sizes["signals"], n), np.nan),
        np.zeros((record.sizes["signals"], n), bool),
    )
    for k in range(record.sizes["signals"]):
        one = record.isel(signals=k)
        d = int(np.isfinite(one.a.values).sum())
        a, W0 = one.a.values[:d], one.W0.values[:, :d, :d]
        if d == 2:
            short[k] = shortfall(a, W0, float(one.eta), float(one.kappa))
        size = np.sqrt(np.diagonal(W0, axis1=1, axis2=2))
        later = cone.linear_phase(a, W0, float(one.eta)) / size[:, :, None] / size[:, None, :]
        doomed[k] = np.linalg.eigvalsh(later)[:, 0] < 0
    bound, end = d3_bound(record)
    return table(record).assign(
        shortfall=(("signals", "start"), short, {"long_name": "predicted shortfall of D.3, ln"}),
        doomed=(("signals", "start"), doomed, {"long_name": "predicted to leave the cone"}),
        d3=("look", bound, {"long_name": "ln of lemma D.3's lower bound on w_11"}),
        d3_until=((), end),
    )
