"""One push of the weights, and where training goes after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from saltus._lazy import np, xr

if TYPE_CHECKING:
    import xarray

    from saltus.papers.rank.law.flow import Flow

__all__ = ["push"]

LOOKS = 61


def push(
    flow: Flow, when: float, lasts: float, noise: Any, everything: bool, large: float, atol: float
) -> xarray.Dataset:
    """The path after a push of the weights above `large`, or of all, beside the path without it.

    **Arguments:** `when` in rescaled time; `lasts` not rescaled; `noise` [2, p] on u and on v.
    """
    from saltus.papers.rank.law.flow import onward

    u, v = flow.weights(when)
    chosen = everything | (np.maximum(abs(u), abs(v)) > large)
    up, vp = u + chosen * noise[0], v + chosen * noise[1]
    # Where nothing was pushed the logarithms are kept: u - v is far below what u and v resolve.
    P, Q = flow.logs(when)
    with np.errstate(divide="ignore"):
        P = np.where(chosen, np.log(abs(up + vp)), P)
        Q = np.where(chosen, np.log(abs(up - vp)), Q)
    after = onward(flow.problem, P, P + Q, lasts, flow.L, atol=atol)
    share = np.linspace(0.0, 1.0, LOOKS)
    there = np.minimum(share * lasts / flow.L, after.until)
    pushed = after.products(there)
    plain = _later(flow, when + there, atol)
    ours, theirs = after.logs(there[-1]), flow.logs(min(when + there[-1], flow.until))
    weights = max(float(np.abs(w).max()) for w in _weight_gaps(ours, theirs))
    return xr.Dataset(
        {
            "off": ("look", abs(pushed - plain).max(1)),
            "off_weights": ((), weights),
            "pushed": (("look", "coordinate"), pushed),
            "plain": (("look", "coordinate"), plain),
        },
        coords={"look": share},
    ).rename(look="share")


def _later(flow: Flow, times: Any, atol: float) -> Any:
    """Products of the path that was not pushed, also beyond where it was followed to."""
    from saltus.papers.rank.law.flow import onward

    inside = times <= flow.until
    values = flow.products(np.minimum(times, flow.until))
    if not inside.all():
        P, _ = flow.logs(flow.until)
        more = onward(flow.problem, P, flow.K, (times[-1] - flow.until) * flow.L, flow.L, atol=atol)
        values[~inside] = more.products(times[~inside] - flow.until)
    return values


def _weight_gaps(ours: Any, theirs: Any) -> list[Any]:
    """Differences of the larger and of the smaller of |u|, |v|, from log |u + v| and log |u - v|."""
    both = [(np.exp(P), np.exp(Q)) for P, Q in (ours, theirs)]
    return [(both[0][0] + s * both[0][1]) / 2 - (both[1][0] + s * both[1][1]) / 2 for s in (1, -1)]
