"""Training over the staircase of Algorithm 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.papers.rank.studies import _captions, _toys
from saltus.report import figure

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.papers.rank.studies.staircase import StaircaseOverTraining

__all__ = ["staircase"]


def staircase(study: StaircaseOverTraining, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
    """Loss and products of the first teacher over Algorithm 1, and all teachers' stage times against the
    due ones."""
    fig, axes = figure.sheet(1, 3, width=3.7, height=3.2)
    one, said = record.isel(run=0), law.isel(run=0)
    time = one.time.values
    axes[0, 0].plot(time, one.loss.values, color=figure.COLOURS[0], label="training")
    figure.theory(axes[0, 0], time, said.loss.values, label="Algorithm 1")
    axes[0, 0].set(xlabel="time / log(1/α)", ylabel="loss", yscale="log", title="loss, first teacher")
    axes[0, 0].legend()
    half = one.sizes["coordinate"] // 2
    for i in range(2 * half):
        grown = abs(one.products.values[:, i]).max() > 1e-2
        shade = figure.MUTED if not grown else figure.COLOURS[int(i >= half)]
        axes[0, 1].plot(time, one.products.values[:, i], color=shade, linewidth=1.2)
        figure.theory(axes[0, 1], time, said.products.values[:, i], label="_", linewidth=0.8)
    for name, colour in (("$w_K w_Q$", 0), ("$w_V w_O$", 1)):
        axes[0, 1].plot([], [], color=figure.COLOURS[colour], label=name)
    figure.theory(axes[0, 1], [], [], label="Algorithm 1")
    axes[0, 1].set(xlabel="time / log(1/α)", ylabel="product u v", title="its products")
    axes[0, 1].legend(loc="upper left", fontsize=7)
    counts = _toys.counting(record)
    due, seen = (x.where(counts).values.ravel() for x in (law.due, record.half_rise))
    plain = record["T"].where(counts).values.ravel()
    axes[0, 2].axhline(0, color=figure.THEORY, linestyle=(0, (4, 2)), linewidth=1.1)
    for x, number, label in ((plain, 4, "$T_k$"), (due, 2, "$T_k + C_k/L$")):
        axes[0, 2].plot(due, seen / x - 1, "o", markersize=3.5, color=figure.COLOURS[number], label=label)
    axes[0, 2].set(
        xscale="log",
        yscale="symlog",
        xlabel="due, $T_k + C_k/L$",
        ylabel="seen / said - 1",
        title="stage times",
    )
    axes[0, 2].set_yscale("symlog", linthresh=1e-3)
    axes[0, 2].set_ylim(-0.5, 0.5)
    axes[0, 2].xaxis.set_major_formatter("{x:g}")
    axes[0, 2].xaxis.set_minor_formatter("")
    axes[0, 2].legend(loc="lower right")
    good = _share(_toys.late(record.half_rise, law.due, counts) < 0.01)
    _captions.finding(
        fig,
        f"From α = $10^{{-{study.power:g}}}$ training climbs Algorithm 1's staircase; {good:.0%} of stages "
        f"come "
        "within 1% of when they are due",
        study.note() + f"; exact flow; {int(counts.sum())} stages to {study.learnt:.0%} of the loss",
    )
    return fig


def _share(hits: Any) -> float:
    return float(np.mean(hits)) if np.size(hits) else float("nan")
