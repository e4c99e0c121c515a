"""The assumptions drawn, stage by stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from saltus._lazy import np
from saltus.papers.rank.studies import _captions, _toys
from saltus.papers.rank.studies._toys import finite
from saltus.report import figure

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.papers.rank.studies.assumptions import Assumptions

__all__ = ["assumptions"]


def assumptions(study: Assumptions, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
    """Gaps of winners and L_min, rates of return against eigenvalues, and where noisy transitions end."""
    fig, axes = figure.sheet(1, 3, width=3.7, height=3.2)
    last = record["last"].values.astype(int)
    for r in range(record.sizes["run"]):
        gaps = finite(record.gap_winner.isel(run=r).values)
        L = float(record.least_log.isel(run=r))
        axes[0, 0].plot(
            np.maximum(gaps.min(initial=np.inf), 1e-4), max(L, 1.0), "o", color=figure.COLOURS[r % 6]
        )
    axes[0, 0].axhline(32 * np.log(10), color=figure.MUTED, linewidth=0.9)
    axes[0, 0].annotate(
        "α = $10^{-32}$", (0.02, 32 * np.log(10)), xycoords=("axes fraction", "data"), xytext=(0, 3),
        textcoords="offset points", fontsize=7, color=figure.MUTED,
    )  # fmt: skip
    axes[0, 0].set(xscale="log", yscale="log", xlabel="smallest gap to a runner-up", ylabel="$L_{min}$")
    axes[0, 0].xaxis.set_minor_formatter("")
    axes[0, 0].set_title("4.3: one dot a teacher")
    counts = _toys.counting(record)
    seen, said = (x.where(counts).values.ravel() for x in (record.returns, law.rate))
    known = np.isfinite(seen) & np.isfinite(said)
    axes[0, 1].plot(said[known], seen[known], "o", markersize=3.5, color=figure.COLOURS[0])
    if known.any():
        ends = np.asarray([said[known].min(), said[known].max()])
        figure.theory(axes[0, 1], ends, ends, label="equal")
    axes[0, 1].set(xscale="log", yscale="log", xlabel="half the smallest eigenvalue", ylabel="rate of return")
    axes[0, 1].set_title("4.4: one dot a stage")
    axes[0, 1].legend()
    bins = np.geomspace(1e-14, 10, 46)
    groups = [
        (f"noise {d:g}", finite(record.spread.sel(delta=d).values), figure.COLOURS[n % 6])
        for n, d in enumerate(record.delta.values)
    ]
    groups.append(("wrong sign", finite(record.flipped.values), figure.MUTED))
    for label, values, colour in groups:
        axes[0, 2].hist(
            np.clip(values, 1e-14, 10), bins, histtype="step", color=colour, label=label, linewidth=1.3
        )
    axes[0, 2].set(xscale="log", xlabel="distance of the end from $θ^{k+1}$", ylabel="transitions")
    axes[0, 2].set_title("4.5: noisy transitions")
    axes[0, 2].legend(fontsize=7, loc="upper center")
    _captions.finding(
        fig,
        f"All {int(last.sum())} stages meet 4.3-4.5; "
        f"{int((record.least_log.values > 32 * np.log(10)).sum())} of {len(last)} teachers need a start "
        f"below "
        "$10^{-32}$ for the right order"
        if bool((record.gap_winner.fillna(1) > 0).all())
        else "Winners tie at some stage",
        study.note(),
    )
    return fig
