"""How training tends to the staircase: distances and stage times against log(1/alpha)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from saltus._lazy import np
from saltus.papers.rank.studies import _captions, _toys
from saltus.report import figure

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.papers.rank.studies.limit import TheLimit

__all__ = ["limit"]


def limit(study: TheLimit, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
    """Distance to the staircase, lateness of stages, and what Algorithm 1's constants leave of it."""
    fig, axes = figure.sheet(1, 3, width=3.7, height=3.3)
    powers = record.power.values
    L = powers * np.log(10.0)
    for name, words, colour in (
        ("most_apart", "largest of all times", 1),
        ("outside_due", "outside windows at $T_k + C_k/L$", 2),
        ("mean_apart", "average over time", 0),
    ):
        values = record[name].transpose("run", "power").values
        figure.band(
            axes[0, 0], L, values, label=words, colour=figure.COLOURS[colour], marker="o", markersize=3
        )
    mean = np.median(record.mean_apart.transpose("run", "power").values, axis=0)
    figure.theory(axes[0, 0], L, mean[-1] * L[-1] / L, label="slope -1")
    axes[0, 0].set(xscale="log", yscale="log", xlabel="L = log(1/α)", ylabel="distance to the staircase")
    axes[0, 0].set_title("Theorem 4.1, measured")
    axes[0, 0].legend(fontsize=7, loc="lower right")
    one = record.isel(run=0)
    stages = np.flatnonzero(_toys.counting(one).values)
    for number, k in enumerate(stages):
        shade = figure.COLOURS[number % 6]
        late = (one.half_rise.transpose("power", "stage").values[:, k] - one["T"].values[k]) * L
        axes[0, 1].plot(L, late, "o-", color=shade, markersize=2.5, linewidth=1)
        figure.theory(axes[0, 1], L[[0, -1]], [one.C.values[k]] * 2, label="_", linewidth=0.7)
    figure.theory(axes[0, 1], [], [], label="$C_k$ of Algorithm 1")
    axes[0, 1].set(
        xscale="log", xlabel="L = log(1/α)", ylabel="$(T_k(α) - T_k)\\,L$", title="first teacher's stages"
    )
    values = one.C.values[stages]
    spread = max(1.0, float(np.ptp(values)))
    axes[0, 1].set_ylim(values.min() - 0.4 * spread, values.max() + 0.4 * spread)
    axes[0, 1].legend(fontsize=7)
    stage_dims = ("run", "stage", "power")
    counts = _toys.counting(record)
    for name, said, colour in (("$T_k$", record["T"], 4), ("$T_k + C_k/L$", record["T"] + law.late, 2)):
        off = abs(record.half_rise - said).where(counts)
        rows = off.transpose(*stage_dims).values.reshape(-1, len(powers))
        rows = rows[np.isfinite(rows).any(1)]
        figure.band(
            axes[0, 2], L, rows, label=f"from {name}", colour=figure.COLOURS[colour], marker="o", markersize=3
        )
    axes[0, 2].set(
        xscale="log", yscale="log", xlabel="L = log(1/α)", ylabel="error of a stage's rescaled time"
    )
    axes[0, 2].set_title("all teachers and stages")
    axes[0, 2].legend(fontsize=7)
    _captions.finding(
        fig,
        "The limit is approached as 1/log(1/α); the constants $C_k$, which Algorithm 1 carries along, leave "
        "far less",
        study.note()
        + f"; α from $10^{{-{powers[0]:g}}}$ to $10^{{-{powers[-1]:g}}}$, exact flow; medians, bands "
        "hold 80%",
    )
    return fig
